"""FedMMF's two attacks by their definitions, and masked ratings taken from uploads made here."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.audit.masks import Masked, binned, exact_rate, guessed, hit_ratio, recovered, recovery_rate
from tacit.audit.reconstruction import Gradient, two_rounds
from tacit.data.interactions import Scale

STARS = Scale(1, 5, 1)


def orders(values):
    """Every order of the places that puts larger values first."""
    places = range(len(values))
    return [p for p in permutations(places) if all(values[a] >= values[b] for a, b in pairwise(p))]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=5),
    st.sampled_from([0.1, 0.3, 0.5, 0.9]),
)
def test_hits_are_the_mean_over_all_ways_to_break_ties(pairs, share):
    masked, truth = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    count = max(1, round(share * len(truth)))
    hits = [len(set(a[:count]) & set(b[:count])) / count for a in orders(masked) for b in orders(truth)]
    assert hit_ratio(masked, truth, share) == pytest.approx(np.mean(hits))


def test_random_masked_values_hit_as_often_as_chance():
    draw = np.random.default_rng(0)
    truth = draw.integers(1, 6, 50)
    hits = [hit_ratio(draw.normal(size=50), truth, 0.3) for _ in range(4000)]
    assert abs(np.mean(hits) - 0.3) < 5 * np.std(hits) / np.sqrt(len(hits))


@given(st.lists(st.integers(1, 5), min_size=2, max_size=20), st.floats(-3, 3), st.floats(0.1, 4))
def test_a_mask_that_only_shifts_and_stretches_is_no_mask(ratings, shift, stretch):
    truth = np.array(ratings, dtype=float)
    found = recovered(shift + stretch * truth, low=truth.min(), high=truth.max())
    np.testing.assert_allclose(found, truth, atol=1e-9)


def test_recovery_counts_errors_strictly_below():
    guess, truth = np.array([1.0, 2.5, 5.0]), np.array([1.0, 2.0, 4.0])
    assert [recovery_rate(guess, truth, g) for g in (0.5, 1.0, 1.5)] == [1 / 3, 2 / 3, 1.0]
    assert exact_rate(np.array([0.2, 3.4, 7.0]), np.array([1.0, 3.0, 5.0]), STARS) == 1.0


def test_bins_are_closed_at_the_top():
    assert binned([0.0, 0.199, 0.2, 1.0]).tolist() == [0.5, 0.25, 0.0, 0.0, 0.25]


def test_a_stronger_attack_adds_what_everybody_knows():
    mine = Masked(np.array([2, 0], "i4"), np.array([0.5, -1.0]))
    means, truth = np.array([4.0, 9.0, 3.0]), np.array([3.0, 3.0])
    assert guessed(mine, "item-means", truth, means, 3.5).tolist() == [3.5, 3.0]
    assert guessed(mine, "centred", truth, means, 3.5).tolist() == [4.0, 2.5]


def test_masks_come_off_in_two_rounds(upload_of):
    """Whatever was subtracted on the device: the server ends up with the masked ratings themselves."""
    draw = np.random.default_rng(9)
    ids, ratings = np.arange(30), draw.integers(1, 6, 30).astype(float)
    masked = ratings - draw.normal(3.5, 0.6, 30)
    sent = [
        upload_of(draw.normal(0, 0.3, (30, 8)), draw.normal(0, 0.5, 8), ids, masked, 0.1, kind="f4")
        for _ in range(2)
    ]
    known = masked + draw.normal(0, 1.0, 30)
    _, found = two_rounds(*sent, Gradient(0.1), hint=known)
    assert np.abs(found.ratings - masked).max() < 1e-3
