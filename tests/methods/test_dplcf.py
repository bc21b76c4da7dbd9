"""DPLCF: unbiased similarities from flipped bits, used on devices; a person's epsilon is told whole."""

import math

import numpy as np
import pytest

from tacit.account.claim import Adjacency, Observer, Unit
from tacit.account.events import NonPrivate, RandomisedResponse
from tacit.config.experiment import with_protection
from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.ledger.privacy import PrivacyLedger
from tacit.methods.dplcf import NeighbourStep, dplcf
from tacit.rng import SeededKeys
from tacit.round import Surroundings
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.settings import settings_of
from tacit.testing.tiny import tiny_federation

ITEMS = 14


def asked(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    return world, one_round(world)[0]


def bits(federation):
    found = np.zeros((len(federation), federation.catalogue))
    people = np.repeat(np.arange(len(federation)), np.diff(federation.offsets))
    found[people, federation.items] = 1
    return found


def cosines(met, damp):
    """Similarities pair by pair, from true counts."""
    found = np.zeros((met.shape[1], met.shape[1]))
    for i, j in np.ndindex(*found.shape):
        if i != j:
            both = float(np.sum(met[:, i] * met[:, j]))
            found[i, j] = both / math.sqrt((met[:, i].sum() + damp) * (met[:, j].sum() + damp))
    return found


def dense(shared):
    found = np.zeros((len(shared["neighbours"]),) * 2)
    np.put_along_axis(found, shared["neighbours"].astype(np.int64), shared["similarity"], axis=1)
    return found


@pytest.mark.parametrize("damp", [0.0, 5.0])
def test_with_bits_that_never_flip_it_is_the_plain_neighbourhood_method(damp):
    federation = tiny_federation(30, ITEMS, seed=5)
    world, _ = asked(dplcf(epsilon=60.0, neighbours=ITEMS, damp=damp), federation)
    similar = cosines(bits(federation), damp)
    np.testing.assert_allclose(dense(world.server.shared), similar, atol=1e-5)
    model = world.method.model
    folded = model.folded_in(world.server.shared, federation.cohort(federation.people))
    scorer = model.scorer(world.server.shared, folded)
    scores = scorer.scores(federation.people)
    np.testing.assert_allclose(scores, bits(federation) @ similar, atol=1e-4)
    users, items = np.array([0, 3, 3], dtype=np.int32), np.array([1, 2, 9], dtype=np.int32)
    np.testing.assert_allclose(scorer.predict(users, items), scores[users, items], atol=1e-5)


def test_only_the_strongest_neighbours_are_kept():
    federation = tiny_federation(40, ITEMS, seed=6)
    world, _ = asked(dplcf(epsilon=60.0, neighbours=4), federation)
    found, similar = dense(world.server.shared), cosines(bits(federation), 10.0)
    for item in range(ITEMS):
        kept = np.sort(found[item][found[item] > 0])
        np.testing.assert_allclose(kept, np.sort(similar[item])[-4:][-len(kept) :], atol=1e-5)


def test_counts_of_pairs_are_unbiased():
    """The step's correction of flipped moments, over 400 draws: within 4.5 standard errors."""
    epsilon, people = 1.0, 60
    met = bits(tiny_federation(people, 6, seed=7))
    generator, keep = np.random.default_rng(0), 1 / (1 + math.exp(-epsilon))
    slope, flipped = math.tanh(epsilon / 2), 1 - keep
    found = []
    for _ in range(400):
        sent = np.where(generator.random(met.shape) < keep, met, 1 - met)
        single, pairs = sent.sum(axis=0), sent.T @ sent
        found.append((pairs - flipped * (single[:, np.newaxis] + single) + people * flipped**2) / slope**2)
    off = ~np.eye(6, dtype=bool)
    errors = (np.mean(found, axis=0) - met.T @ met) / (np.std(found, axis=0, ddof=1) / 20)
    assert np.abs(errors[off]).max() < 4.5
    # The step itself uses that very correction: from noiseless moments it returns the true cosines.
    moments = {
        "single": people * flipped + slope * met.sum(axis=0),
        "pairs": (
            slope**2 * (met.T @ met)
            + flipped * slope * (met.sum(axis=0)[:, np.newaxis] + met.sum(axis=0))
            + people * flipped**2
        ).astype(np.float32),
        "reports": np.array([people]),
    }
    shared = {"neighbours": np.zeros((6, 6), np.int32), "similarity": np.zeros((6, 6), np.float32)}
    after, _ = NeighbourStep(epsilon, 6, 2.0).step(shared, {"bits": moments}, {}, 0)
    np.testing.assert_allclose(dense(after), cosines(met, 2.0), atol=1e-4)


def test_the_central_twin_has_the_neighbours_of_true_histories():
    federation = tiny_federation(30, ITEMS, seed=5)
    world, record = asked(dplcf(neighbours=ITEMS, twin="central"), federation)
    np.testing.assert_allclose(dense(world.server.shared), cosines(bits(federation), 10.0), atol=1e-6)
    assert isinstance(record.claim.event(Observer.SERVER), NonPrivate)


def test_a_device_alone_sends_nothing():
    _, record = asked(dplcf(twin="local"), tiny_federation(30, ITEMS, seed=5))
    assert record.traffic.total == 0


def test_an_item_that_seems_to_be_met_by_nobody_has_no_neighbours():
    """Estimates may fall below zero; undamped, nothing may be divided by them."""
    step = NeighbourStep(1.0, 3, 0.0)
    moments = {"single": np.array([0.0, 9.0, 8.0]), "pairs": np.eye(3, dtype=np.float32) * 9}
    shared = {"neighbours": np.zeros((3, 3), np.int32), "similarity": np.zeros((3, 3), np.float32)}
    after, _ = step.step(shared, {"bits": {**moments, "reports": np.array([10])}}, {}, 0)
    assert np.isfinite(dense(after)).all()
    assert (dense(after)[0] == 0).all()


def test_a_person_pays_for_every_item():
    world, record = asked(dplcf(epsilon=1.5), tiny_federation(20, ITEMS, seed=1))
    for observer in (Observer.SERVER, Observer.RELEASE):
        assert record.claim.event(observer) == RandomisedResponse(1.5, ITEMS, by_item=True)
    assert record.claim.adjacency is Adjacency.REPLACE_ONE
    assert world.method.rounds == 1


def test_what_one_interaction_costs_stands_beside_what_a_person_pays():
    """One bit if an item may be there or not, two if it may be another one, all of them for a person."""
    _, record = asked(dplcf(epsilon=1.5), tiny_federation(20, ITEMS, seed=1))
    ledger = PrivacyLedger(delta=1e-12)
    ledger.add(record.claim)
    told = {
        (line.unit, line.adjacency): line.epsilon
        for line in ledger.guarantees()
        if line.observer is Observer.SERVER
    }
    assert told[Unit.INTERACTION, Adjacency.ADD_REMOVE] == pytest.approx(1.5, abs=1e-6)
    assert told[Unit.INTERACTION, Adjacency.REPLACE_ONE] == pytest.approx(3.0, abs=1e-6)
    assert told[Unit.USER, Adjacency.REPLACE_ONE] == pytest.approx(1.5 * ITEMS, abs=1e-3)


def test_a_protection_that_does_not_fit_is_refused_in_words():
    with pytest.raises(TacitError, match="whole numbers already"):
        with_protection(dplcf(), "half")


def test_grouping_and_threads_change_nothing_at_all():
    federation = tiny_federation(23, 20, seed=3)
    whole, told = asked(dplcf(), federation)
    for execution in (Execution(1, pairs_per_chunk=1), Execution(3, pairs_per_chunk=30)):
        parts, same = asked(dplcf(), federation, execution=execution)
        assert np.array_equal(dense(parts.server.shared), dense(whole.server.shared))
        assert told.traffic == same.traffic


OTHER = {"epsilon": 0.5, "neighbours": 3, "damp": 0.0, "twin": "central"}


@pytest.mark.parametrize("setting", sorted(OTHER))
def test_every_setting_matters(setting):
    federation = tiny_federation(23, 20, seed=3)
    assert set(OTHER) == set(settings_of(dplcf))
    before, after = (
        dense(asked(dplcf(**more), federation)[0].server.shared) for more in ({}, {setting: OTHER[setting]})
    )
    assert (before != after).any()


def test_a_catalogue_whose_pairs_cannot_be_counted_is_refused():
    def settled(items):
        return dplcf().settled(Surroundings(10, items, Features(), Features()))

    assert settled(20_000).exchanges[0].aggregator.bits == 20_000
    with pytest.raises(TacitError, match=r"pairs of 20001 items would take 1\.6 GB"):
        settled(20_001)
