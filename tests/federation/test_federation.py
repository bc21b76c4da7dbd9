"""Cohorts hold exactly their people's rows; chunks partition whom they are given."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account import events
from tacit.account.claim import Adjacency, Claim, Observer
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.federation.sampling import Everyone, FixedSize, Poisson
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts


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


def test_poisson_draws_everybody_alone_and_anew():
    """20,000 rounds of 40 people at rate 0.15: everybody's share, every pair's, and the size of the cohort.

    Bounds at 5.5 standard deviations; 40 people, 780 pairs, 40 neighbouring rounds and two moments of the
    size: a false alarm in 3 of 100,000 seeds, and the seed is fixed.
    """
    people, rate, rounds = np.arange(40, dtype="i4"), 0.15, 20_000
    sampling, keys = Poisson(6), SeededKeys(5)
    assert sampling.rate(40) == rate
    there = np.zeros((rounds, 40), dtype=bool)
    for round in range(rounds):
        drawn = sampling.draw(people, round, keys)
        assert np.all(np.diff(drawn) > 0)
        there[round, drawn] = True

    def near(found, chance, tries=rounds):
        assert np.abs(found - tries * chance).max() < 5.5 * np.sqrt(tries * chance * (1 - chance))

    near(there.sum(axis=0), rate)
    together = there.T.astype("i8") @ there
    near(together[np.triu_indices(40, 1)], rate**2)
    near((there[1::2] & there[::2]).sum(axis=0), rate**2, rounds // 2)  # one round tells nothing of the next
    sizes = there.sum(axis=1)
    spread = 40 * rate * (1 - rate)
    assert abs(sizes.mean() - 6) < 5.5 * np.sqrt(spread / rounds)
    assert abs(sizes.var() / spread - 1) < 5.5 * np.sqrt(2 / rounds)
    assert sizes.min() == 0  # rounds without anybody happen (0.0015 each) and are not drawn again


def test_a_poisson_coin_does_not_depend_on_who_else_there_is():
    keys, sampling = SeededKeys(5), Poisson(0.5)
    some = np.arange(0, 40, 2, dtype="i4")
    for round in range(20):
        everybody = sampling.draw(np.arange(40, dtype="i4"), round, keys)
        assert np.array_equal(sampling.draw(some, round, keys), everybody[everybody % 2 == 0])


FACTS = RoundFacts(0, "train", 40, 6, 6)


@pytest.mark.parametrize(
    ("sampling", "adjacency", "drawn"),
    [
        (Poisson(6), Adjacency.ADD_REMOVE, events.Poisson(0.15)),
        (FixedSize(6), Adjacency.REPLACE_ONE, events.FixedSize(6, 40)),
    ],
)
def test_a_secret_draw_is_claimed_as_it_is_drawn_and_helps_nobody_but_the_release(sampling, adjacency, drawn):
    shown = events.Gaussian(2.0, 1.0)
    claim = Claim.unbounded("raw").with_event(Observer.RELEASE, shown)
    after = sampling.event(claim, FACTS)
    assert after.event(Observer.RELEASE) == events.Sampled(shown, drawn)
    assert after.adjacency is adjacency
    assert after.event(Observer.SERVER) == claim.event(Observer.SERVER)


def test_noise_on_devices_keeps_replace_one_whoever_is_drawn():
    """A person who stays away takes their own noise along: add-remove would halve the server's epsilon."""
    facts = RoundFacts(0, "train", 40, 6, 6, {})
    protections = chain(Clip(0.5), GaussianNoise(3.0, "device"))
    before = protections.event(Claim.unbounded("raw"), protections.init(), facts)
    poisson, fixed = (way.event(before, facts) for way in (Poisson(6), FixedSize(6)))
    assert poisson == before
    assert poisson.adjacency is fixed.adjacency is Adjacency.REPLACE_ONE
    assert fixed.event(Observer.SERVER) == before.event(Observer.SERVER) == events.Gaussian(1.5, 0.5)


@pytest.mark.parametrize(("sampling", "expected"), [(Everyone(), 40), (Poisson(0.25), 10), (FixedSize(6), 6)])
def test_the_expected_cohort_is_public_and_add_remove_says_so(sampling, expected):
    assert sampling.expected(40) == expected
    claim = Claim.unbounded("raw").with_event(Observer.RELEASE, events.PureLocal(1.0))
    assert "how many people there are is public" in sampling.event(claim, FACTS).assumes[Observer.RELEASE]
    seen = replace(claim, adjacency=Adjacency.REPLACE_ONE)  # the same people on both sides
    assert sampling.event(seen, FACTS) == seen
