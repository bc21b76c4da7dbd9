import numpy as np
import pytest

from tacit.data.load import load
from tacit.split import split


@pytest.fixture(scope="module")
def parts():
    return split(load("demo:users=500"), "by-user", seed=1)


def test_a_fifth_of_the_people_are_strangers(parts):
    assert len(parts.test_users) == 100
    assert len(parts.train_users) == 400
    assert set(parts.test_users.tolist()).isdisjoint(parts.train_users.tolist())
    assert set(parts.support.users.tolist()) == set(parts.test_users.tolist())
    assert set(parts.support.users.tolist()).isdisjoint(parts.train.users.tolist())


def test_each_stranger_shows_half_and_is_asked_for_half(parts):
    shown = np.bincount(parts.support.users, minlength=500)
    asked = np.bincount(parts.test.users, minlength=500)
    assert set((shown - asked)[parts.test_users].tolist()) <= {0, 1}
    whole = np.bincount(load("demo:users=500").interactions.users)
    np.testing.assert_array_equal((shown + asked)[parts.test_users], whole[parts.test_users])


def test_people_with_one_interaction_are_never_strangers(dataset_of):
    rows = [(user, 0, 1, 0) for user in range(9)] + [(9, 0, 1, 0), (9, 1, 1, 0)]
    for seed in range(20):
        found = split(dataset_of(rows), "by-user", seed=seed)
        assert found.test_users.tolist() == [9]
        assert len(found.support) == 1


def test_everybody_may_be_drawn():
    data = load("demo:users=60,mean=30")
    drawn = np.zeros(60)
    for seed in range(100):
        drawn[split(data, "by-user", seed=seed).test_users] += 1
    # 100 draws at 1/5: mean 20, standard deviation 4.
    assert drawn.min() >= 2
    assert drawn.max() <= 40
