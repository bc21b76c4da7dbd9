"""FMF-LDP equals the slow loop of its algorithms on the same coins, and claims what its reports are worth."""

import numpy as np
import pytest

from tacit.account.claim import Adjacency, Observer
from tacit.account.events import Nothing, Repeated, Shuffled
from tacit.errors import TacitError
from tacit.kernels.rotation import signs
from tacit.methods.fmf_ldp import fmf_ldp
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.settings import settings_of
from tacit.testing.reference.fmf_ldp import AdamState, Epoch, reported_gradient, rotated_gradient, rotation
from tacit.testing.tiny import tiny_federation

SMALL = {"dim": 3, "k": 9, "epsilon": 2.0, "reg": 0.3, "spread": 0.5, "n_min": 2}


def histories(federation):
    bounds = zip(federation.offsets[:-1], federation.offsets[1:], strict=True)
    return [federation.items[a:b].tolist() for a, b in bounds]


def trained(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    records = [record for _ in range(method.rounds) for record in one_round(world)]
    return world, records


def coins(world, reports):
    """The uniform numbers behind this round's entries and bits."""

    def uniform(purpose):
        words = world.keys.words(world.federation.people, purpose, world.server.round, reports)
        return ((words >> np.uint64(11)) * 2.0**-53).astype(np.float64)

    return uniform("one-bit/entries"), uniform("train/0/noise")


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_as_published_equals_the_slow_loop(alpha):
    """Algorithm 2 with what the paper leaves open: not divided by k, twenty steps along one aggregate."""
    federation = tiny_federation(10, 13, seed=7)
    method = fmf_ldp(**SMALL, rounds=5, mode="as-published", alpha=alpha, rate=2e-4)
    world = new_world(method, federation, SeededKeys(4))
    items = world.server.shared["items"].astype(np.float64)
    for _ in range(5):
        epoch = Epoch(2.0, alpha, 0.3, 1.0, *coins(world, 9))
        gradient = reported_gradient(items, histories(federation), epoch)
        for _ in range(20):
            items = items - 2e-4 * (gradient + 2 * 0.3 * items)
        one_round(world)
        np.testing.assert_allclose(world.server.shared["items"], items, rtol=1e-4, atol=1e-5)


def test_the_corrected_bit_equals_the_slow_loop():
    """Divided by k, stretched before and shrunk after, one step."""
    federation = tiny_federation(10, 13, seed=8)
    method = fmf_ldp(**SMALL, rounds=4, mechanism="one-bit", scale=1.7, rate=0.01)
    world = new_world(method, federation, SeededKeys(5))
    items = world.server.shared["items"].astype(np.float64)
    for _ in range(4):
        epoch = Epoch(2.0, 0.0, 0.3, 1.7, *coins(world, 9))
        gradient = reported_gradient(items, histories(federation), epoch) / 9
        items = items - 0.01 * (gradient + 2 * 0.3 * items)
        one_round(world)
        np.testing.assert_allclose(world.server.shared["items"], items, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", [0.3, 4.0])
def test_rotated_equals_the_slow_loop_with_explicit_matrices(clip):
    federation = tiny_federation(10, 13, seed=9)
    method = fmf_ldp(**SMALL, rounds=4, mechanism="rotated", alpha=1.0, scale=0.5, rate=0.02, clip=clip)
    world = new_world(method, federation, SeededKeys(6))
    items, adam = world.server.shared["items"].astype(np.float64), AdamState(0.02, 1.0, 0.3)
    for round in range(4):
        sides = (
            rotation(16, signs(16, "items", round).astype(np.float64)),
            rotation(4, signs(4, "factors", round).astype(np.float64)),
        )
        epoch = Epoch(2.0, 1.0, 0.3, 0.5, *coins(world, 9))
        items = adam.step(items, rotated_gradient(items, histories(federation), epoch, clip, sides))
        one_round(world)
        np.testing.assert_allclose(world.server.shared["items"], items, atol=2e-4)


@pytest.mark.parametrize("mechanism", ["one-bit", "rotated", "privunit"])
def test_grouping_and_threads_change_nothing_at_all(mechanism):
    """Reports are summed as whole numbers: the model is the same bit by bit."""
    federation = tiny_federation(23, 20, seed=3)
    method = fmf_ldp(**SMALL, rounds=3, mechanism=mechanism)
    whole, told = trained(method, federation)
    for execution in (Execution(1, pairs_per_chunk=1), Execution(3, pairs_per_chunk=30)):
        parts, same = trained(method, federation, execution=execution)
        assert np.array_equal(parts.server.shared["items"], whole.server.shared["items"])
        assert [r.traffic for r in told] == [r.traffic for r in same]
        assert [r.claim for r in told] == [r.claim for r in same]


OTHER = {
    "dim": 4, "rounds": 4, "epsilon": 1.0, "k": 10, "mode": "as-published", "mechanism": "one-bit",
    "alpha": 2.0, "reg": 0.4, "rate": 0.02, "scale": 0.9, "optimiser": "descent", "clip": 0.2,
    "coordinates": 8, "spread": 0.6, "n_min": 13, "twin": "central",
}  # fmt: skip


@pytest.mark.parametrize("setting", sorted(OTHER))
def test_every_setting_matters(setting):
    federation = tiny_federation()
    assert set(OTHER) == set(settings_of(fmf_ldp))
    base = {**SMALL, "rounds": 3, "mechanism": "privunit" if setting == "coordinates" else "rotated"}
    base = {k: v for k, v in base.items() if not (setting == "mode" and k == "mechanism")}
    first, _ = trained(fmf_ldp(**base), federation)
    if setting == "n_min":  # who is hidden, not what is learned
        with pytest.raises(TacitError, match="below 13 people"):
            trained(fmf_ldp(**{**base, "n_min": 13}), federation)
        return
    other, _ = trained(fmf_ldp(**{**base, setting: OTHER[setting]}), federation)
    items, changed = first.server.shared["items"], other.server.shared["items"]
    assert items.shape != changed.shape or (items != changed).any()


@pytest.mark.parametrize("mechanism", ["one-bit", "rotated", "privunit"])
def test_what_a_round_is_worth(mechanism):
    """The stronger clones cover a bit about a uniform coordinate, whichever way the vector is turned."""
    method = fmf_ldp(**SMALL, rounds=1, mechanism=mechanism)
    _, (record,) = trained(method, tiny_federation())
    shuffled = Repeated(Shuffled(2.0, 12, one_bit=mechanism != "privunit"), 9)
    assert record.claim.adjacency is Adjacency.REPLACE_ONE
    assert record.claim.event(Observer.SERVER) == shuffled
    assert record.claim.event(Observer.RELEASE) == shuffled
    assert record.claim.event(Observer.PROXY) == record.claim.event(Observer.PEER) == Nothing()


def test_a_run_says_what_a_person_spends():
    told = " ".join(fmf_ldp(rounds=20).notes)
    assert "2.5 per report, 250 per round, 5000 for 20 rounds" in told
    assert "local epsilon" not in " ".join(fmf_ldp(twin="central").notes)


def test_bytes_beside_the_papers_estimate():
    """0.4 KB in the paper's count of four bytes a report; sealed one by one each takes 52."""
    method = fmf_ldp(n_min=2, rounds=1)
    world, (record,) = trained(method, tiny_federation())
    assert method.published_units is not None
    units = method.published_units({"train": (record.traffic, record.facts.answered)})
    items, dim = world.server.shared["items"].shape
    assert units == {"bytes_up": 400.0, "bytes_down": 4.0 * items * dim}
    assert record.traffic.up / 12 == 100 * 52 + 34


def test_only_the_papers_mechanism_is_as_published():
    with pytest.raises(TacitError, match="not in the paper"):
        fmf_ldp(mode="as-published", mechanism="rotated")
