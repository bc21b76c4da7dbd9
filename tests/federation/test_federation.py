"""Cohorts hold exactly their people's rows; chunks partition whom they are given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.federation.sampling import Everyone, FixedSize
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation


@given(st.sets(st.integers(0, 19), min_size=1), st.integers(0, 50))
def test_a_cohort_is_its_peoples_rows(people, seed):
    federation = tiny_federation(20, 12, seed, silent=2)
    users = np.array(sorted(people), dtype="i4")
    cohort = federation.cohort(users)
    assert len(cohort) == len(users)
    for place, user in enumerate(users):
        mine = slice(cohort.offsets[place], cohort.offsets[place + 1])
        theirs = slice(federation.offsets[user], federation.offsets[user + 1])
        assert np.array_equal(cohort.items[mine], federation.items[theirs])
        assert np.array_equal(cohort.values[mine], federation.values[theirs])


@given(st.sets(st.integers(0, 19)), st.integers(1, 200))
def test_chunks_partition_in_order(people, pairs):
    federation = tiny_federation(20, 12, silent=3)
    users = np.array(sorted(people), dtype="i4")
    chunks = federation.chunks(users, pairs)
    assert np.array_equal(np.concatenate([*chunks, np.zeros(0, "i4")]), users)
    assert all(len(chunk) for chunk in chunks)
    for chunk in chunks:
        rows = np.diff(federation.offsets)[chunk] + 1
        assert rows[1:].sum() <= pairs


def test_people_without_data_take_no_part():
    assert tiny_federation(10, 8, silent=4).people.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TacitError, match="nobody"):
        Federation(np.zeros(1, "i8"), np.zeros(0, "i4"), np.zeros(0, "f4"), 3)


def test_a_fixed_size_draw_is_fresh_rising_and_fair():
    """10,000 draws of 3 of 10: each person within 5 standard deviations of 3,000 (false alarm 6e-6)."""
    people, keys = np.arange(10, dtype="i4"), SeededKeys(3)
    counts = np.zeros(10)
    for round in range(10_000):
        drawn = FixedSize(3).draw(people, round, keys)
        assert np.all(np.diff(drawn) > 0)
        counts[drawn] += 1
    assert np.abs(counts - 3000).max() < 5 * np.sqrt(10_000 * 0.3 * 0.7)
    assert np.array_equal(Everyone().draw(people, 0, keys), people)
    with pytest.raises(TacitError, match="asks nobody"):
        FixedSize(0).draw(people, 0, keys)
