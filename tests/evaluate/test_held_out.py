import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.evaluate.held_out import held_out, one_each

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=30)


@given(train=pairs, test=pairs, support=st.none() | pairs)
@settings(deadline=None)
def test_equals_sets_of_python(parts, train, test, support):
    held = held_out(parts(train, test, support), catalogue=8)
    seen = set(train) | set(support or [])
    new = set(test) - seen
    users = sorted({user for user, _ in new})
    assert held.users.tolist() == users
    for row, user in enumerate(users):
        assert held.positives[row].tolist() == sorted(item for owner, item in new if owner == user)
        assert held.seen[row].tolist() == sorted(item for owner, item in seen if owner == user)
        met = {item for owner, item in seen | set(test) if owner == user}
        assert held.met[row].tolist() == sorted(met)
    assert held.repeated == len(set(test) & seen)


def test_low_ratings_may_be_no_positives_but_were_met(parts, log):
    test = log([(0, 1), (0, 2), (1, 3), (2, 4), (2, 4)], [5, 2, 3, 1, 4])
    split = parts([(0, 0)], [])
    held = held_out(type(split)(split.train, test), catalogue=6, relevant_from=4)
    assert held.users.tolist() == [0, 2]
    assert [held.positives[row].tolist() for row in (0, 1)] == [[1], [4]]
    assert [held.met[row].tolist() for row in (0, 1)] == [[0, 1, 2], [4]]
    assert held.seen[0].tolist() == [0]


def test_keeping_and_one_each_stay_within_their_users(parts):
    held = held_out(parts([(0, 0), (2, 1)], [(0, 1), (0, 2), (1, 3), (2, 4), (2, 0)]), catalogue=5)
    kept = held.keeping(held.users != 1)
    assert kept.users.tolist() == [0, 2]
    assert [kept.positives[row].tolist() for row in (0, 1)] == [[1, 2], [0, 4]]
    assert [kept.seen[row].tolist() for row in (0, 1)] == [[0], [1]]
    drawn = {int(one_each(held, np.random.default_rng(seed)).positives[0][0]) for seed in range(40)}
    assert drawn == {1, 2}  # a fair coin misses a side with probability 2 ** -39


@pytest.mark.parametrize("bad", [[(0, 9)], [(0, -1)], [(-1, 0)]])
def test_refuses_what_is_outside_the_catalogue(parts, bad):
    with pytest.raises(TacitError, match="outside the catalogue"):
        held_out(parts([(0, 0)], bad), catalogue=8)
