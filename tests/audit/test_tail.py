"""People whom rows of their own give away, and the two remedies."""

import numpy as np
import pytest

from tacit.audit.reconstruction import Gradient
from tacit.audit.tail import exposed, groups, lonely
from tacit.data.interactions import Scale

STARS = Scale(1, 5, 1)


@pytest.fixture
def cohort(upload_of):
    """A sum over ten people: rows, counts, the table, and who alone rated what."""
    draw = np.random.default_rng(2)
    table = draw.normal(0, 0.5, (120, 8))
    rows, counts, owners = np.zeros((120, 8)), np.zeros(120), {}
    for user in range(10):
        ids = np.sort(draw.permutation(120)[:20])
        ratings = draw.integers(1, 6, 20)
        told = upload_of(table, draw.normal(0, 0.7, 8), ids, ratings, 0.04)
        rows[ids] += told.rows
        counts[ids] += 1
        for item, rating in zip(ids.tolist(), ratings.tolist(), strict=True):
            owners.setdefault(item, []).append((user, rating))
    return rows, counts, table, owners


def test_exactly_those_with_three_rows_of_their_own_are_exposed(cohort):
    rows, counts, table, owners = cohort
    alone = {}
    for told in owners.values():
        if len(told) == 1:
            alone[told[0][0]] = alone.get(told[0][0], 0) + 1
    found = exposed(rows, counts, table, Gradient(0.04), STARS)
    solved = {owners[int(part.items[0])][0][0]: part for part in found}
    assert set(solved) == {user for user, many in alone.items() if many >= 3}
    for user, part in solved.items():
        assert all(owners[int(item)] == [(user, rating)] for item, rating in zip(
            part.items, np.rint(part.found.ratings).astype(int), strict=True
        ))  # fmt: skip


def test_a_threshold_on_counts_ends_it(cohort):
    rows, counts, table, _ = cohort
    kept = counts >= 2
    assert (
        exposed(np.where(kept[:, None], rows, 0), np.where(kept, counts, 0), table, Gradient(0.04), STARS)
        == []
    )


@pytest.mark.parametrize("noise", [1e-2, 1.0])
def test_noise_on_the_sum_ends_it(cohort, noise):
    rows, counts, table, _ = cohort
    noisy = rows + np.random.default_rng(0).normal(0, noise, rows.shape)
    assert exposed(noisy, counts, table, Gradient(0.04), STARS) == []


def test_two_people_are_not_taken_for_one():
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1e-2], [3.0, 3e-2]])
    assert groups(np.arange(4, dtype="i4"), rows, np.zeros((4, 2)), Gradient()) == []


def test_decoded_counts_may_be_a_little_off():
    assert lonely(np.array([1.0 + 1e-9, 1.2, 0.0])).tolist() == [0]
