"""Rows along one line: items met at one end, whatever the formula; nothing to part in noise."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.audit.rated_set import area_under_curve
from tacit.audit.shared_line import CLEAR, along, met_scores, parted


@given(seed=st.integers(0, 10_000), count=st.integers(2, 15), flip=st.booleans())
def test_items_pulled_and_items_pushed_are_told_apart(seed, count, flip):
    draw = np.random.default_rng(seed)
    met = np.arange(30) < count
    pulls = np.where(met, draw.uniform(1.0, 1.5, 30), -draw.uniform(0.2, 0.5, 30)) * (-1 if flip else 1)
    rows = pulls[:, None] * draw.normal(size=8)
    popularity = 0.2 + 0.5 * met + 0.1 * draw.random(30)
    scores, named = met_scores([(np.arange(30), rows)], popularity)
    found, clear = parted(scores)
    assert named.all()
    assert clear > CLEAR
    assert set(np.argsort(-scores)[:found].tolist()) == set(range(count))


def test_noise_on_every_number_leaves_neither_groups_nor_order():
    draw = np.random.default_rng(1)
    areas, clears = [], []
    for _ in range(100):
        met = draw.random(300) < 0.1
        rows = np.where(met, 1.0, -0.3)[:, None] * draw.normal(size=16) / 4 + draw.normal(0, 10, (300, 16))
        places, straight = along(rows, draw.random(300))
        areas.append(area_under_curve(places, met))
        clears.append(parted(places)[1])
        assert straight < 0.2
    assert max(clears) < CLEAR
    assert abs(np.mean(areas) - 0.5) < 0.02


def test_a_straight_table_outweighs_a_crooked_one():
    draw = np.random.default_rng(2)
    met = np.arange(40) < 8
    straight = np.where(met, 1.0, -0.2)[:, None] * draw.normal(size=16)
    scores, _ = met_scores(
        [(np.arange(40), straight), (np.arange(40), draw.normal(size=(40, 16)))], 1.0 * met
    )
    assert set(np.argsort(-scores)[:8].tolist()) == set(range(8))


def test_rows_that_say_nothing_score_nothing():
    for rows in (np.zeros((4, 2)), np.full((4, 2), np.nan), np.zeros((0, 2)), np.ones((4, 2))):
        places, straight = along(rows, np.arange(float(len(rows))))
        assert not places.any()
        assert straight == 0
    assert parted(np.zeros(5)) == (5, 0.0)
