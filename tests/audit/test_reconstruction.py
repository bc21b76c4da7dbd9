"""The closed forms give back what went in: exactly in doubles, to the last star in what really travels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.audit.reconstruction import Gradient, Upload, line_of, one_round, two_rounds
from tacit.data.interactions import Scale

STARS, HALVES = Scale(1, 5, 1), Scale(0.5, 5, 0.5)


def person_of(seed, items, rated, dim, scale):
    draw = np.random.default_rng(seed)
    ids = np.sort(draw.permutation(items)[:rated])
    ratings = scale.low + scale.step * draw.integers(0, scale.levels, rated)
    ratings[:2] = scale.low, scale.high
    return draw, draw.normal(0, 0.3, (items, dim)), draw.normal(0, 0.7, dim), ids, ratings


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rated=st.integers(8, 40),
    dim=st.integers(2, 12),
    scale=st.sampled_from([STARS, HALVES]),
    reg=st.sampled_from([0.0, 0.04]),
    gain=st.sampled_from([1.0, -2.0, 0.5]),
)
def test_one_upload_gives_everything_away(upload_of, seed, rated, dim, scale, reg, gain):
    _, table, person, ids, ratings = person_of(seed, 60, rated, dim, scale)
    upload = upload_of(table, person, ids, ratings, reg, gain)
    found = one_round(upload, Gradient(reg, gain), scale)
    assert found.rated.all()
    np.testing.assert_allclose(found.ratings, ratings, atol=1e-6)
    np.testing.assert_allclose(found.vector, person, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rho=st.sampled_from([1, 2, 3]), kind=st.sampled_from(["f4", "f8"]))
def test_made_up_ratings_hide_nothing(upload_of, seed, rho, kind):
    """Fillers carry the mean rating, which is no level of the scale."""
    draw, table, person, ids, ratings = person_of(seed, 200, 25, 10, STARS)
    ratings[2] = ratings[2] if ratings.mean() % 1 else ratings[2] % 5 + 1
    if ratings.mean() % 1 < 1e-3:
        ratings[3] = ratings[3] % 5 + 1
    if ratings.mean() % 1 < 1e-3:
        return
    others = np.setdiff1d(np.arange(200), ids)
    fillers = draw.permutation(others)[: rho * len(ids)]
    everything = np.concatenate([ids, fillers])
    order = np.argsort(everything)
    values = np.concatenate([ratings, np.full(len(fillers), ratings.mean())])
    upload = upload_of(table, person, everything[order], values[order], 0.04, kind=kind)
    found = one_round(upload, Gradient(0.04, mixed=True), STARS)
    assert np.array_equal(upload.ids[found.rated], ids)
    np.testing.assert_allclose(found.ratings[found.rated], ratings, atol=1e-3)


def test_an_order_of_rows_says_nothing(upload_of):
    _, table, person, ids, ratings = person_of(3, 60, 20, 6, STARS)
    upload = upload_of(table, person, ids, ratings)
    turned = Upload(upload.ids[::-1].copy(), upload.rows[::-1].copy(), table)
    here, there = one_round(upload, Gradient(), STARS), one_round(turned, Gradient(), STARS)
    np.testing.assert_allclose(here.ratings, there.ratings[::-1], atol=1e-9)


@pytest.mark.parametrize("kind", ["f2", "f4"])
def test_coarse_numbers_do_not_protect(upload_of, kind):
    """The tolerance follows how far the rows lie off their line."""
    _, table, person, ids, ratings = person_of(5, 80, 30, 10, STARS)
    found = one_round(upload_of(table, person, ids, ratings, kind=kind), Gradient(), STARS)
    np.testing.assert_array_equal(np.rint(found.ratings), ratings)


def test_noise_leaves_no_ratings(upload_of):
    draw, table, person, ids, ratings = person_of(7, 200, 40, 10, STARS)
    upload = upload_of(table, person, ids, ratings)
    noisy = Upload(upload.ids, draw.normal(0, 100 * np.abs(upload.rows).max(), upload.rows.shape), table)
    found = one_round(noisy, Gradient(), STARS)
    right = found.rated & (np.abs(found.ratings - ratings) < 0.5)
    assert right.mean() < 0.5
    assert line_of(noisy, Gradient()).rest > 0.5


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.full((3, 2), np.nan)])
def test_empty_or_broken_uploads_give_nothing(rows):
    upload = Upload(np.arange(3, dtype="i4"), rows, np.ones((3, 2)))
    found = one_round(upload, Gradient(), STARS)
    assert not found.rated.any()
    assert not found.vector.any()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), items=st.integers(8, 50), dim=st.integers(2, 10), shift=st.floats(-5, 0))
def test_two_uploads_give_any_numbers_away(upload_of, seed, items, dim, shift):
    """Ratings off any scale, masked ones included: the sign follows the public guess."""
    draw = np.random.default_rng(seed)
    ids = np.arange(items)
    truth = draw.uniform(0.5, 5.0, items) + shift
    sent = [
        upload_of(draw.normal(0, 0.5, (items, dim)), draw.normal(0, 1, dim), ids, truth, 0.1)
        for _ in range(2)
    ]
    both, found = two_rounds(*sent, Gradient(0.1), hint=truth)
    assert np.array_equal(both, ids)
    np.testing.assert_allclose(found.ratings, truth, atol=1e-4)


def test_two_rounds_leave_out_what_changed(upload_of):
    """Predicted fillers differ between the rounds; those that every upload names are known anyway."""
    draw = np.random.default_rng(11)
    ids, rated = np.arange(60), np.arange(40)
    sent = []
    for _ in range(2):
        ratings = np.where(ids < 40, 1.0 + ids % 5, draw.uniform(1, 5, 60))
        sent.append(upload_of(draw.normal(0, 0.5, (60, 6)), draw.normal(0, 1, 6), ids, ratings))
    _, found = two_rounds(*sent, Gradient(mixed=True), hint=np.full(60, 3.0), among=rated)
    np.testing.assert_allclose(found.ratings, 1.0 + rated % 5, atol=1e-6)
    _, alone = two_rounds(*sent, Gradient(mixed=True), hint=np.full(60, 3.0))
    np.testing.assert_allclose(alone.ratings[:40], 1.0 + rated % 5, atol=1e-4)


def test_two_rounds_with_too_little_in_common(upload_of):
    table = np.random.default_rng(0).normal(size=(9, 3))
    one = upload_of(table, np.ones(3), np.arange(3), np.ones(3))
    both, found = two_rounds(one, one, Gradient(), hint=np.ones(9))
    assert len(both) == 3
    assert not found.rated.any()
