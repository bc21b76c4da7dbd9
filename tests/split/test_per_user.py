import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.interactions import Interactions
from tacit.split import per_user, split
from tacit.split.per_user import share_of_each


@pytest.mark.parametrize(("held", "expected"), [(1, 0), (2, 0), (3, 1), (7, 1), (8, 2), (50, 10)])
def test_a_fifth_to_the_nearest_whole(dataset_of, held, expected):
    rows = [(0, item, 1, 0) for item in range(held)] + [(1, item, 1, 0) for item in range(10)]
    parts = split(dataset_of(rows), "per-user-8020", seed=1)
    assert np.bincount(parts.test.users, minlength=2).tolist() == [expected, 2]


counts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(counts, st.integers(0, 5))
def test_the_number_asked_for_is_marked_whatever_the_blocks(held_and_wanted, seed):
    held = np.array([held for held, _ in held_and_wanted])
    wanted = np.array([min(pair) for pair in held_and_wanted])
    users = np.repeat(np.arange(len(held), dtype="i4"), held)
    log = Interactions(users, np.arange(len(users), dtype="i4"), np.ones(len(users), "f4"))
    marked = share_of_each(log, wanted, np.random.default_rng(seed))
    assert np.bincount(users[marked], minlength=len(held)).tolist() == wanted.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_user, "_BLOCK", 5)
        blocks = share_of_each(log, wanted, np.random.default_rng(seed))
    np.testing.assert_array_equal(marked, blocks)


def test_each_row_is_marked_equally_often():
    log = Interactions(np.zeros(8, "i4"), np.arange(8, dtype="i4"), np.ones(8, "f4"))
    draws = np.random.default_rng(1)
    taken = sum(share_of_each(log, np.array([2]), draws).astype(int) for _ in range(2000))
    assert np.abs(taken - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)
