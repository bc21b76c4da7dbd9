from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.split import split

ROWS = [(0, 4, 1, 9), (0, 2, 1, 8), (0, 7, 1, 7), (1, 3, 1, 5), (3, 1, 1, 6), (3, 2, 1, 2)]


@pytest.mark.parametrize("name", ["leave-one-out", "leave-last-out"])
def test_exactly_one_of_each_user_and_none_of_those_with_one(dataset_of, rows_in, name):
    parts = split(dataset_of(ROWS), name, seed=1)
    assert parts.test.users.tolist() == [0, 3]
    assert (1, 3, 1.0, 5) in rows_in(parts.train)
    assert parts.kind == "ranking"


def test_any_row_is_held_out_equally_often(dataset_of):
    drawn = Counter(
        int(split(dataset_of(ROWS), "leave-one-out", seed=seed).test.items[0]) for seed in range(600)
    )
    assert set(drawn) == {2, 4, 7}
    assert all(abs(count - 200) < 5 * np.sqrt(600 * 2 / 9) for count in drawn.values())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 9)), st.integers(0, 5), min_size=6, max_size=40
    )
)
def test_the_last_one_is_the_latest(dataset_of, log):
    rows = [(user, item, 1, time) for (user, item), time in log.items()]
    parts = split(dataset_of(rows, users=5), "leave-last-out", seed=1)
    for user, item, time in zip(parts.test.users, parts.test.items, parts.test.times, strict=True):
        own = [moment for (who, _), moment in log.items() if who == user]
        assert time == max(own) == log[user, item]
        assert len(own) >= 2
    several = {user for user, _ in log if sum(who == user for who, _ in log) >= 2}
    assert set(parts.test.users.tolist()) == several


def test_ties_are_drawn_evenly_and_counted(dataset_of):
    rows = [(0, item, 1, 50) for item in range(4)] + [(0, 9, 1, 3), (1, 0, 1, 1), (1, 1, 1, 2)]
    drawn = Counter()
    for seed in range(400):
        parts = split(dataset_of(rows), "leave-last-out", seed=seed)
        drawn[int(parts.test.items[0])] += 1
        assert parts.test.items[1] == 1
    assert set(drawn) == {0, 1, 2, 3}
    assert all(abs(count - 100) < 5 * np.sqrt(400 * 3 / 16) for count in drawn.values())
    assert parts.notes == ("1 users have several interactions at their latest time; one of them was drawn",)
