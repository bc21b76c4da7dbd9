"""Clipping: bounds by property; the norm that follows a quantile, and the printed rule that only falls."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.account.adaptive import published_split, split_noise
from tacit.config.experiment import with_protection
from tacit.errors import TacitError
from tacit.methods.fcf import fcf
from tacit.methods.fedrec import fedmf
from tacit.methods.privrec import privrec
from tacit.protect.adaptive_clip import BIT, AdaptiveClip
from tacit.protect.clip import Clip, norms, shrunk
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.rng import SeededKeys
from tacit.runtime.simulate import new_world, one_round
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts, Rows

NOBODY = np.zeros(0, "u8")
numbers = st.floats(-(2.0**99), 2.0**99, width=32)
updates = st.integers(1, 4).flatmap(
    lambda clients: st.fixed_dictionaries(
        {
            "a": arrays.arrays(np.float32, (clients, 3), elements=numbers),
            "b": arrays.arrays(np.float32, (clients, 2, 2), elements=numbers),
        }
    )
)
sizes = st.floats(1e-6, 1e6)


@given(updates, sizes)
def test_a_clipped_update_is_within_the_bound_over_all_arrays(update, size):
    clipped = Clip(size).on_client(update, None, None, NOBODY)
    assert np.all(norms(clipped) <= size)


@given(updates, sizes)
def test_clipping_twice_changes_nothing_more(update, size):
    once = Clip(size).on_client(update, None, None, NOBODY)
    twice = Clip(size).on_client(once, None, None, NOBODY)
    for name, array in once.items():
        np.testing.assert_array_equal(array, twice[name])


@given(updates, sizes)
def test_clipping_keeps_directions_and_short_updates(update, size):
    lengths = norms(update)
    clipped = Clip(size).on_client(update, None, None, NOBODY)
    for client, length in enumerate(lengths):
        for name, array in update.items():
            if length <= size:
                np.testing.assert_array_equal(clipped[name][client], array[client])
            elif np.isfinite(length):
                wanted = array[client].astype("f8") * (size / length)
                np.testing.assert_allclose(clipped[name][client], wanted, rtol=1e-4, atol=size * 1e-5)


@given(updates, sizes, st.floats(0.01, 10))
def test_update_and_bit_together_are_within_their_static_bound(update, size, weight):
    stage = AdaptiveClip(start=1.0, clients=10, weight=weight)
    sent = stage.on_client(update, None, size, np.zeros(len(update["a"]), "u8"))
    assert np.all(norms(sent) <= stage.bound(None).size * (1 + 1e-6))
    within = norms(update) <= size
    np.testing.assert_allclose(sent[BIT][:, 0], weight * (within - 0.5), rtol=1e-6)


def test_rows_are_clipped_jointly_and_keep_their_ids():
    one = np.zeros(1, "i8")
    rows = Rows(one, one + 2, np.array([1, 5], "i4"), np.array([[3.0], [4.0]]))
    clipped = Clip(1.0).on_client({"items": rows}, None, None, NOBODY)["items"]
    np.testing.assert_allclose(clipped.values, [[0.6], [0.8]], rtol=1e-5)
    np.testing.assert_array_equal(clipped.ids, rows.ids)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_sent_as_zeros_and_moves_no_clip_norm(broken):
    update = {"a": np.array([[broken, 1.0], [0.1, 0.1]], "f4")}
    assert shrunk(norms(update), 1.0).tolist() == [0.0, 1.0]
    sent = AdaptiveClip(start=1.0, clients=2).on_client(update, None, 1.0, np.zeros(2, "u8"))
    np.testing.assert_array_equal(sent["a"][0], 0)
    assert sent[BIT][:, 0].tolist() == [0.0, 0.5]


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rule", ["geometric", "arithmetic"])
def test_a_cohort_of_broken_updates_leaves_the_clip_norm_where_it_is(quantile, rule):
    """Whatever the quantile: with it above a half a bit of one half each would let the norm rise."""
    stage = AdaptiveClip(start=2.0, clients=4, quantile=quantile, rate=0.5, rule=rule)
    broken = {"a": np.full((4, 2), np.nan, "f4")}
    sent = stage.on_client(broken, None, 2.0, np.zeros(4, "u8"))
    total = {name: array.sum(axis=0, dtype="f8") for name, array in sent.items()}
    rest, after = stage.on_server(total, None, 2.0, RoundFacts(0, "train", 40, 4, 4), SeededKeys(0))
    assert after == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_array_equal(rest["a"], 0)


def rounds_of(stage, split, lengths, rounds, cohort, seed=0):
    """The clip norm round by round, with people of these update norms and the split's noise on the bits."""
    generator, size, sizes = np.random.default_rng(seed), stage.start, []
    for _ in range(rounds):
        drawn = generator.choice(lengths, cohort)
        clipped = {"a": drawn[:, np.newaxis].astype("f8")}
        sent = stage.on_client(clipped, None, size, np.zeros(cohort, "u8"))
        total = {name: array.sum(axis=0) for name, array in sent.items()}
        total[BIT] = total[BIT] + stage.weight * split.bit_std * generator.standard_normal(1)
        facts = RoundFacts(0, "train", 10_000, cohort, cohort)
        _, size = stage.on_server(total, None, size, facts, SeededKeys(0))
        sizes.append(size)
    return sizes


NORMS = np.random.default_rng(4).lognormal(1.0, 0.8, 4000)


@pytest.mark.parametrize(("quantile", "start"), [(0.5, 40.0), (0.5, 0.01), (0.8, 1.0), (0.2, 10.0)])
def test_the_geometric_rule_finds_the_quantile_from_anywhere(quantile, start):
    split = split_noise(1.0, bit_std=5.0)
    stage = AdaptiveClip(start=start, clients=100, quantile=quantile, rate=0.2)
    sizes = rounds_of(stage, split, NORMS, 600, 100)
    wanted = np.quantile(NORMS, quantile)
    assert np.median(sizes[-200:]) == pytest.approx(wanted, rel=0.1)
    assert min(sizes) > 0


def test_the_printed_rule_takes_its_bit_after_clipping_so_the_norm_only_falls():
    """Lines 22 and 23 of Algorithm 2: whatever the norms, S falls to zero near round 40 / (1 - 0.9)."""
    split = published_split(1.0, 0.7)
    stage = AdaptiveClip(
        start=40.0, clients=30, quantile=0.9, rate=1.0, rule="arithmetic", bits="clipped",
        weight=split.update_noise / split.bit_std,
    )  # fmt: skip
    far_beyond = np.full(100, 1e6)
    sent = stage.on_client({"a": far_beyond[:, np.newaxis]}, None, 40.0, np.zeros(100, "u8"))
    assert np.all(sent[BIT] > 0)  # every update, however long, counts as within the bound
    sizes = rounds_of(stage, split, far_beyond, 300, 30)
    slope = np.polyfit(np.arange(300), sizes, 1)[0]
    assert slope == pytest.approx(-0.1, abs=0.02)
    with pytest.raises(TacitError, match="fell to"):
        rounds_of(stage, split, far_beyond, 600, 30)


def test_the_bit_before_clipping_lets_the_same_rule_rise():
    split = published_split(1.0, 0.7)
    right = AdaptiveClip(start=40.0, clients=30, quantile=0.9, rate=1.0, rule="arithmetic", bits="before")
    assert rounds_of(right, split, np.full(100, 1e6), 100, 30)[-1] > 100


def test_a_share_that_is_no_number_leaves_the_clip_norm():
    assert AdaptiveClip(start=2.0, clients=3).moved(2.0, math.nan) == 2.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: chain(GaussianNoise(1.0)), "put clip"),
        (lambda: Clip(0.0), "above zero"),
        (lambda: Clip(-1.0), "above zero"),
        (lambda: Clip(math.nan), "above zero"),
        (lambda: AdaptiveClip(start=0.0, clients=3), "above zero"),
        (lambda: AdaptiveClip(start=-40.0, clients=3), "above zero"),
        (lambda: AdaptiveClip(start=1.0, clients=3, rate=-1.0), "above zero"),
        (lambda: AdaptiveClip(start=1.0, clients=3, quantile=1.0), "between 0 and 1"),
        (lambda: GaussianNoise(0.0), "above zero"),
        (lambda: split_noise(1.0, bit_std=0.5), "raise it above"),
    ],
)
def test_what_could_not_protect_is_refused_when_it_is_made(make, said):
    with pytest.raises(TacitError, match=said):
        make()


def test_the_share_within_is_of_those_who_were_to_be_expected():
    """40 people, 8 asked on average, all 8 within: the clip norm falls by ``rate * (1 - quantile)``."""
    stage = AdaptiveClip(start=2.0)
    facts = RoundFacts(0, "train", 40, 8, 8, expected=8)
    total = {"a": np.zeros(2), BIT: np.array([4.0])}
    _, after = stage.on_server(total, None, 2.0, facts, SeededKeys(0))
    assert after == pytest.approx(2.0 * math.exp(-0.2 * 0.5))


def test_it_works_by_name_where_numbers_travel_beside_and_is_refused_elsewhere():
    method = privrec(clients=5, rounds=2)
    for spec in ("adaptive-clip:1e6", "gaussian:0.001"):
        method = with_protection(method, spec)
    world = new_world(method, tiny_federation(14, 20), SeededKeys(1))
    one_round(world)
    sizes, _ = world.server.protections["train"]
    assert sizes == pytest.approx(1e6 * math.exp(-0.1), rel=1e-2)  # all five of five were within
    for other in (fedmf(), fcf()):
        with pytest.raises(TacitError, match="leave adaptive-clip out"):
            with_protection(other, "adaptive-clip")


def test_a_rate_that_overflows_is_refused():
    with pytest.raises(TacitError, match="rate"):
        AdaptiveClip(start=1.0, rate=2000.0)
