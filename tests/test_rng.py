"""Keys depend on seed, purpose, round and user alone; what they feed is uniform."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.rng import SeededKeys, SystemKeys, mixed, normals, uniforms


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20, unique=True), st.integers(0, 99))
def test_grouping_never_changes_a_key(people, seed):
    keys, people = SeededKeys(seed), np.array(people, "i4")
    together = keys.users(people, "fillers", 3)
    assert np.array_equal(
        together, np.concatenate([keys.users(people[i : i + 1], "fillers", 3) for i in range(len(people))])
    )


def test_every_part_of_a_key_matters():
    people = np.arange(50, dtype="i4")
    drawn = [
        SeededKeys(seed).users(people, purpose, round)
        for seed in (1, 2)
        for purpose in ("fillers", "noise")
        for round in (None, 0, 1)
    ]
    assert len(np.unique(np.concatenate(drawn))) == 50 * len(drawn)


def test_mixing_is_the_finaliser_of_splitmix64():
    """Vigna's generator seeded with 1234567 starts with these numbers."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        states = np.uint64(1234567) + golden * np.arange(1, 4, dtype=np.uint64)
    assert mixed(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniforms_and_normals_have_their_distributions():
    """Kolmogorov-Smirnov on 50,000 draws; each false alarm has probability 1e-6."""
    keys = SeededKeys(1).users(np.arange(5000, dtype="i4"), "test")
    assert stats.kstest(uniforms(keys, 10).ravel(), "uniform").pvalue > 1e-6
    assert stats.kstest(normals(keys, 10).ravel(), "norm").pvalue > 1e-6


def test_a_devices_keys_cannot_be_repeated_but_what_is_kept_is_kept():
    keys, me = SystemKeys(b"secret"), np.zeros(1, "i4")
    assert keys.users(me, "noise", 0) != keys.users(me, "noise", 0)
    assert keys.users(me, "response") == SystemKeys(b"secret").users(me, "response")
    assert keys.users(me, "response") != SystemKeys(b"other").users(me, "response")
    assert keys.generator("x").integers(2**60) != keys.generator("x").integers(2**60)
