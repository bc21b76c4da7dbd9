"""Each local randomiser is unbiased for the mean gradient, and its likelihood ratio is e^epsilon at most."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from tacit.account.claim import Adjacency, Claim, Observer
from tacit.account.events import Nothing, PureLocal, RandomisedResponse, Repeated, Shuffled
from tacit.errors import TacitError
from tacit.methods.fmf_ldp import fmf_ldp
from tacit.protect.one_bit import OneBit
from tacit.protect.priv_unit import PrivUnit, PrivUnitVector, best_cap, completed, randomised
from tacit.protect.protection import Draws
from tacit.protect.randomised_bits import RandomisedBits
from tacit.rng import SeededKeys, stream
from tacit.round import broadcast_of, client_side, first_state
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

PEOPLE, ITEMS, DIM, REPORTS = 40, 13, 3, 50
REPEATS = 60


def estimates(**settings_):
    """Many estimates of one round's mean gradient, each from fresh randomness, and the true clipped mean."""
    federation = tiny_federation(PEOPLE, ITEMS, seed=2)
    method = fmf_ldp(dim=DIM, k=REPORTS, reg=0.5, spread=0.4, n_min=2, alpha=0.0, **settings_)
    (exchange,) = method.exchanges
    state = first_state(method, ITEMS, SeededKeys(0))
    facts = RoundFacts(0, "train", PEOPLE, PEOPLE, PEOPLE)
    everybody = federation.cohort(np.arange(PEOPLE, dtype=np.int32))
    received = exchange.local.prepared(broadcast_of(exchange, state))
    found = []
    for repeat in range(REPEATS):
        sent = client_side(exchange, (None,), received, {}, everybody, None, SeededKeys(100 + repeat))
        tally = exchange.aggregator.start(state.shared)
        exchange.aggregator.add(tally, sent.messages.arrays)
        found.append(exchange.aggregator.normalised(exchange.aggregator.total(tally), facts)["items"])
    return np.array(found), whole_gradients(federation, state.shared["items"], 0.5)


def whole_gradients(federation, table, reg):
    V, gradients = table.astype(np.float64), []
    for a, b in zip(federation.offsets, federation.offsets[1:], strict=False):
        p = np.zeros(len(V))
        p[federation.items[a:b]] = 1
        x = np.linalg.solve(V.T @ V + reg * np.eye(DIM), V.T @ p)
        gradients.append(-2 * np.outer(p - V @ x, x))
    return np.array(gradients)


def assert_unbiased(found, truth):
    """Within five standard errors everywhere, and over all entries a mean square of about one."""
    scores = (found.mean(axis=0) - truth) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))
    assert np.abs(scores).max() < 5.0
    assert (scores**2).mean() == pytest.approx(1.0, abs=0.8)


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_one_bit_is_unbiased_for_the_projected_mean(scale):
    found, gradients = estimates(mechanism="one-bit", scale=scale)
    assert_unbiased(found, (np.clip(scale * gradients, -1, 1) / scale).mean(axis=0))


def test_as_published_estimates_k_times_the_mean():
    found, gradients = estimates(mode="as-published")
    assert_unbiased(found, REPORTS * np.clip(gradients, -1, 1).mean(axis=0))


@pytest.mark.parametrize("clip", [0.5, 50.0])
@pytest.mark.parametrize("mechanism", ["rotated", "privunit"])
def test_rotated_mechanisms_are_unbiased_for_the_clipped_mean(mechanism, clip):
    more = {"coordinates": 8, "epsilon": 6.0} if mechanism == "privunit" else {"scale": 0.15}
    found, gradients = estimates(mechanism=mechanism, clip=clip, **more)
    norms = np.linalg.norm(gradients, axis=(1, 2), keepdims=True)
    assert_unbiased(found, (gradients * np.minimum(1, clip / norms)).mean(axis=0))


@pytest.mark.parametrize("epsilon", [0.5, 2.5, 10.0, 250.0, 3000.0])
def test_the_density_of_privunit_takes_two_values_e_to_the_epsilon_apart(epsilon):
    from scipy.special import log_ndtr

    cap = best_cap(epsilon)
    inside, outside = np.log(cap.inside), np.log1p(-cap.inside)
    ratio = (inside - log_ndtr(-cap.edge)) - (outside - log_ndtr(cap.edge))
    assert ratio == pytest.approx(epsilon, rel=1e-6, abs=1e-6)


def test_what_privunit_sends_follows_that_density():
    """Side with its probability, moments along the truth as promised, standard normal across it."""
    truth = np.tile([0.6, 0.0, 0.8], (60_000, 1))
    words = stream(np.arange(len(truth), dtype=np.uint64), 6)
    cap = best_cap(2.5)
    sent = randomised(truth, words, cap)
    along = sent @ truth[0]
    assert (along > cap.edge).mean() == pytest.approx(cap.inside, abs=5 * 0.5 / np.sqrt(len(truth)))
    assert along.mean() == pytest.approx(cap.gain, abs=5 * along.std() / np.sqrt(len(truth)))
    assert (along**2).mean() == pytest.approx(cap.square, abs=5 * (along**2).std() / np.sqrt(len(truth)))
    beyond = along[along > cap.edge]
    assert (beyond < 1.5).mean() == pytest.approx(
        (ndtr(1.5) - ndtr(cap.edge)) / ndtr(-cap.edge), abs=5 * 0.5 / np.sqrt(len(beyond))
    )
    across = sent - along[:, np.newaxis] * truth
    assert (across**2).sum(axis=1).mean() == pytest.approx(2.0, abs=0.05)


@given(values=st.lists(st.floats(-100, 100), min_size=1, max_size=6), length=st.floats(0.1, 50))
def test_completed_vectors_have_length_one_and_keep_short_ones(values, length):
    vector = np.array([values])
    found = completed(vector, length)
    assert np.linalg.norm(found) == pytest.approx(1.0)
    norm = np.linalg.norm(vector)
    expected = vector[0] / max(norm, length)
    np.testing.assert_allclose(found[0, :-1], expected, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_randomised_bits_are_flipped_as_often_as_they_should(epsilon):
    bits = np.tile(np.arange(70) % 2, (3000, 1)).astype(np.uint8)
    draws = Draws(SeededKeys(4), np.arange(3000, dtype=np.int32), "bits", 0)
    sent = RandomisedBits(epsilon, 70).noised({"bits": bits}, None, None, draws)["reports"]
    assert sent.shape == (3000, 1, 3)
    read = np.unpackbits(np.ascontiguousarray(sent[:, 0]).view(np.uint8), axis=1, bitorder="little", count=70)
    kept = (read == bits).mean(axis=0)
    expected = np.exp(epsilon) / (1 + np.exp(epsilon))
    assert np.abs(kept - expected).max() < 5 * 0.5 / np.sqrt(3000)


def facts(answered):
    return RoundFacts(0, "train", answered, answered, answered)


def test_what_reports_are_worth():
    claim = OneBit(2.5, 100, 5).event(Claim.unbounded("none"), None, facts(1000))
    assert claim.adjacency is Adjacency.REPLACE_ONE
    assert claim.event(Observer.SERVER) == Repeated(PureLocal(2.5), 100)
    assert claim.event(Observer.RELEASE) == Repeated(Shuffled(2.5, 1000, one_bit=True), 100)
    other = PrivUnit(2.5, 100, 5).event(Claim.unbounded("none"), None, facts(1000))
    assert other.event(Observer.RELEASE) == Repeated(Shuffled(2.5, 1000, one_bit=False), 100)
    whole = PrivUnitVector(150.0).event(Claim.unbounded("none"), None, facts(1000))
    assert whole.event(Observer.SERVER) == whole.event(Observer.RELEASE) == PureLocal(150.0)
    bits = RandomisedBits(0.5, 300).event(Claim.unbounded("none"), None, facts(1000))
    assert bits.event(Observer.SERVER) == RandomisedResponse(0.5, 300, by_item=True)
    nobody = OneBit(2.5, 100, 5).event(Claim.unbounded("none"), None, facts(0))
    assert nobody.event(Observer.SERVER) == Nothing()


@pytest.mark.parametrize(
    "make",
    [
        lambda: OneBit(0.0, 1, 1),
        lambda: OneBit(1.0, 0, 1),
        lambda: OneBit(1.0, 1, 1, scale=0.0),
        lambda: PrivUnit(1.0, 1, 1, coordinates=3),
        lambda: PrivUnitVector(1e5),
        lambda: RandomisedBits(1.0, 0),
    ],
)
def test_impossible_randomisers_are_refused(make):
    with pytest.raises(TacitError):
        make()


@settings(max_examples=10, deadline=None)
@given(split=st.integers(1, PEOPLE - 1))
def test_reports_do_not_depend_on_who_is_computed_together(split):
    federation = tiny_federation(PEOPLE, ITEMS, seed=2)
    for mechanism in ("one-bit", "rotated", "privunit"):
        method = fmf_ldp(dim=DIM, k=7, mechanism=mechanism, n_min=2)
        (exchange,) = method.exchanges
        received = exchange.local.prepared(broadcast_of(exchange, first_state(method, ITEMS, SeededKeys(0))))
        people = np.arange(PEOPLE, dtype=np.int32)
        both = [
            client_side(
                exchange, (None,), received, {}, federation.cohort(part), None, SeededKeys(3)
            ).messages
            for part in (people, people[:split], people[split:])
        ]
        together = np.concatenate([both[1].arrays["reports"], both[2].arrays["reports"]])
        assert np.array_equal(both[0].arrays["reports"], together)


def test_a_randomiser_without_entries_is_told():
    method = fmf_ldp(n_min=2)
    (exchange,) = method.exchanges
    bare = replace(exchange, protections=replace(exchange.protections, stages=()))
    received = exchange.local.prepared(broadcast_of(exchange, first_state(method, ITEMS, SeededKeys(0))))
    cohort = tiny_federation(PEOPLE, ITEMS).cohort(np.arange(3, dtype=np.int32))
    with pytest.raises(TacitError, match="no entries"):
        client_side(bare, (), received, {}, cohort, None, SeededKeys(1))
