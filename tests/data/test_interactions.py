import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import interactions as module
from tacit.data.interactions import Interactions, Scale, by_user, ordered, user_offsets
from tacit.errors import TacitError

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=60, unique=True)


def log_of(rows, *, times=True):
    users, items = np.array(rows, dtype=np.int32).T
    count = np.arange(len(rows))
    return Interactions(users, items, count.astype(np.float32), count.astype(np.int64) * 7 if times else None)


@given(pairs)
def test_ordered_is_the_sort_by_user_and_item_and_moves_rows_whole(rows):
    log = log_of(rows)
    result = ordered(log)
    expected = sorted(range(len(rows)), key=lambda row: rows[row])
    assert list(zip(result.users.tolist(), result.items.tolist(), strict=True)) == [
        rows[at] for at in expected
    ]
    assert result.values.tolist() == [float(at) for at in expected]
    assert result.times.tolist() == [7 * at for at in expected]
    assert ordered(result) is result


@given(pairs)
def test_ordering_in_small_blocks_changes_nothing(rows):
    whole = ordered(log_of(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 3)
        blocks = ordered(log_of(rows))
        assert ordered(blocks) is blocks
    for column in ("users", "items", "values", "times"):
        np.testing.assert_array_equal(getattr(whole, column), getattr(blocks, column))


def test_rows_of_the_same_pair_keep_their_order():
    log = Interactions(np.array([1, 0, 1], "i4"), np.array([2, 5, 2], "i4"), np.array([9, 8, 7], "f4"))
    assert ordered(log).values.tolist() == [8, 9, 7]


@given(pairs)
def test_by_user_gives_each_user_exactly_their_items_rising(rows):
    log = log_of(rows, times=False)
    offsets, items, values = by_user(log, 8)
    assert offsets.dtype == np.int64
    assert items.dtype == np.int32
    assert values.dtype == np.float32
    assert len(offsets) == 9
    for user in range(8):
        own = sorted((item, float(row)) for row, (who, item) in enumerate(rows) if who == user)
        span = slice(offsets[user], offsets[user + 1])
        assert list(zip(items[span].tolist(), values[span].tolist(), strict=True)) == own


def test_an_ordered_log_is_not_copied():
    log = log_of([(0, 1), (0, 2), (3, 0)])
    _, items, values = by_user(log, 4)
    assert items is log.items
    assert values is log.values


def test_a_user_beyond_the_number_of_users_is_refused():
    with pytest.raises(TacitError, match="names user 3"):
        by_user(log_of([(3, 1)]), 3)


def test_offsets_of_an_empty_log():
    empty = Interactions(np.empty(0, "i4"), np.empty(0, "i4"), np.empty(0, "f4"))
    assert user_offsets(empty, 2).tolist() == [0, 0, 0]
    assert ordered(empty) is empty


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(TacitError, match="different lengths"):
        Interactions(np.zeros(2, "i4"), np.zeros(2, "i4"), np.zeros(2, "f4"), np.zeros(3, "i8"))


def test_half_star_scale_has_ten_levels():
    assert Scale(0.5, 5, 0.5).levels == 10
