"""FCF equals the slow loop of its equations, however its gradient is written down; it promises nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.claim import Adjacency, Observer
from tacit.account.events import NonPrivate
from tacit.config.experiment import with_protection
from tacit.errors import TacitError
from tacit.methods.fcf import fcf, mf_np
from tacit.protect.clip import norms
from tacit.protect.protection import none
from tacit.rng import SeededKeys
from tacit.round import broadcast_of, client_side
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.settings import settings_of
from tacit.testing.reference.fmf_ldp import AdamState, mean_gradient, user_vector
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

SMALL = {"dim": 3, "rounds": 6, "alpha": 2.0, "reg": 0.5, "rate": 0.05, "decay": 0.9, "spread": 0.4}


def histories(federation):
    bounds = zip(federation.offsets[:-1], federation.offsets[1:], strict=True)
    return [federation.items[a:b].tolist() for a, b in bounds]


def trained(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    records = [record for _ in range(method.rounds) for record in one_round(world)]
    return world, records


@pytest.mark.parametrize("upload", ["compact", "dense"])
def test_fcf_equals_the_slow_loop(upload):
    """The table is kept in single precision; Adam divides by the gradient's size, so small ones count."""
    federation = tiny_federation()
    world = new_world(fcf(**SMALL, upload=upload), federation, SeededKeys(2))
    items, adam = world.server.shared["items"].astype(np.float64), AdamState(0.05, 0.9, 0.0)
    for _ in range(6):
        items = adam.step(items, mean_gradient(items, histories(federation), 2.0, 0.5))
        one_round(world)
        np.testing.assert_allclose(world.server.shared["items"], items, atol=2e-5)
    folded = world.method.model.folded_in(world.server.shared, federation.cohort(federation.people))["user"]
    for user, rated in enumerate(histories(federation)):
        np.testing.assert_allclose(folded[user], user_vector(items, rated, 2.0, 0.5), atol=2e-4)


def test_what_is_sent_in_fewer_bytes_adds_up_to_the_same():
    federation = tiny_federation(20, 40, seed=1)
    (compact, told), (dense, open_) = (
        trained(fcf(**SMALL, upload=upload), federation) for upload in ("compact", "dense")
    )
    np.testing.assert_allclose(compact.server.shared["items"], dense.server.shared["items"], atol=1e-5)
    assert told[0].traffic.up < open_[0].traffic.up


def test_grouping_changes_nothing_but_rounding():
    federation = tiny_federation(17, 20, seed=4)
    whole, _ = trained(fcf(**SMALL), federation)
    for execution in (Execution(1, pairs_per_chunk=1), Execution(3, pairs_per_chunk=20)):
        parts, _ = trained(fcf(**SMALL), federation, execution=execution)
        np.testing.assert_allclose(parts.server.shared["items"], whole.server.shared["items"], atol=1e-6)


OTHER = {
    "dim": 4,
    "rounds": 5,
    "alpha": 1.0,
    "reg": 0.7,
    "rate": 0.06,
    "decay": 0.8,
    "spread": 0.5,
    "clients": 5,
    "upload": "dense",
    "twin": "local",
}


@pytest.mark.parametrize("setting", sorted(OTHER))
def test_every_setting_matters(setting):
    federation = tiny_federation()
    assert set(OTHER) == set(settings_of(fcf))
    base, told = trained(fcf(**SMALL), federation)
    other, changed = trained(fcf(**{**SMALL, setting: OTHER[setting]}), federation)
    if setting == "upload":
        assert told[0].traffic != changed[0].traffic
    else:
        items = other.server.shared.get("items", np.zeros(1))
        assert (
            items.shape != base.server.shared["items"].shape or (items != base.server.shared["items"]).any()
        )


def test_mf_np_is_fcf_with_the_papers_few_factors():
    federation = tiny_federation()
    plain, _ = trained(mf_np(), federation)
    same, _ = trained(fcf(dim=5, rounds=20, alpha=0.0, reg=1e-6, rate=0.1, decay=1.0, spread=0.1), federation)
    assert plain.method.name == "mf-np"
    assert np.array_equal(plain.server.shared["items"], same.server.shared["items"])


def test_nothing_is_promised_and_the_reason_is_told():
    _, (record, *_) = trained(fcf(**SMALL), tiny_federation())
    for observer, word in ((Observer.SERVER, "exactly"), (Observer.RELEASE, "no noise")):
        event = record.claim.event(observer)
        assert isinstance(event, NonPrivate)
        assert word in event.reason
    assert record.facts.answered == 12


def test_the_central_twin_has_the_same_model():
    federation = tiny_federation()
    federated, _ = trained(fcf(**SMALL), federation)
    pooled, _ = trained(fcf(**SMALL, twin="central"), federation)
    np.testing.assert_allclose(
        pooled.server.shared["items"], federated.server.shared["items"], rtol=1e-6, atol=1e-7
    )


def longest_shares(world):
    """Per person: the length of their share of the sum, and of what they send before any protection."""
    exchange = world.method.exchanges[0]
    bare = replace(exchange, protections=none())
    received = exchange.local.prepared(broadcast_of(exchange, world.server))
    found = []
    for user in world.federation.people:
        cohort = world.federation.cohort(np.array([user], dtype=np.int32))
        told = []
        for one in (exchange, bare):
            states = world.server.protections[exchange.name] if one is exchange else ()
            update = client_side(one, states, received, {}, cohort, None, world.keys).messages.arrays
            tally = one.aggregator.start(world.server.shared)
            one.aggregator.add(tally, update)
            told.append((np.linalg.norm(one.aggregator.total(tally)["items"]), norms(update)[0]))
        found.append((told[0][0], *told[1]))
    return np.array(found)


@settings(max_examples=10, deadline=None)
@given(alpha=st.sampled_from([0.0, 1.0, 20.0]), reg=st.sampled_from([1e-3, 0.5, 5.0]), seed=st.integers(0, 9))
def test_the_table_moves_by_no_more_than_what_a_person_sends(alpha, reg, seed):
    """Clipping compact uploads bounds the dense gradients that are summed: see ``ItemGradientMean``."""
    method = fcf(**{**SMALL, "alpha": alpha, "reg": reg, "spread": 2.0})
    for spec in ("clip:0.05", "gaussian:0.01"):
        method = with_protection(method, spec)
    world = new_world(method, tiny_federation(15, 30, seed), SeededKeys(seed))
    for _ in range(3):
        clipped, dense, sent = longest_shares(world).T
        assert (dense <= sent * (1 + 1e-4)).all()
        assert (clipped <= 0.05 * (1 + 1e-4)).all()
        assert (dense > 0.05).any()
        one_round(world)


@pytest.mark.parametrize("spec", ["half", "topk:0.5", "grid:32"])
def test_a_compact_upload_that_is_changed_further_gets_no_noise_at_the_server(spec):
    """Rounded or cut, it no longer stands for a gradient at the user's closed form."""
    for upload in ("compact", "dense"):
        method = with_protection(with_protection(fcf(upload=upload), "clip:1"), "gaussian:1")
        if upload == "dense":
            with_protection(method, spec)
            continue
        with pytest.raises(TacitError, match="upload=dense"):
            with_protection(method, spec)


def test_the_sum_is_divided_by_who_was_to_be_expected_and_that_is_said():
    """Who came is not public; how many were asked on average is."""
    mean = fcf().exchanges[0].aggregator
    facts = RoundFacts(0, "train", population=20, invited=10, answered=7, expected=10)
    assert mean.normalised({"items": np.full((2, 3), 5.0)}, facts)["items"].tolist() == [[0.5] * 3] * 2
    method = with_protection(with_protection(fcf(**SMALL), "clip:1"), "gaussian:1")
    _, records = trained(method, tiny_federation(20, 40, seed=1))
    claim = records[0].claim
    assert claim.adjacency is Adjacency.ADD_REMOVE
    assert "how many people there are is public" in claim.assumes[Observer.RELEASE]
    plain = trained(fcf(**SMALL), tiny_federation(20, 40, seed=1))[1][0].claim
    assert not plain.assumes.get(Observer.RELEASE)
