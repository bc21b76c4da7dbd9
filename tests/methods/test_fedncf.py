"""The neural family: what is sent, what is claimed, what every setting does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.claim import Observer
from tacit.account.events import Gaussian, NonPrivate
from tacit.errors import TacitError
from tacit.local.neural_epochs import NeuralEpochs
from tacit.methods.fedncf import METHODS, fedncf, priv_fedncf_sub_compress
from tacit.models.neural_cf import TABLES, layers
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round, set_up
from tacit.testing.tiny import tiny_federation
from tacit.types import Rows

SMALL = {
    "factors": 3, "tower": "8-6-4-2", "rounds": 3, "rate": 0.01, "epochs": 2, "batch": 8, "negatives": 2,
    "clients": 0.5,
}  # fmt: skip


def trained(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    records = set_up(world)
    for _ in range(method.rounds):
        records += one_round(world)
    return world, records


@pytest.mark.parametrize("averaged", ["holders", "mean"])
def test_a_round_adds_the_mean_of_what_clients_bring(averaged):
    federation = tiny_federation(12, 15)
    world = new_world(fedncf(**SMALL, averaged=averaged), federation, SeededKeys(2))
    exchange = world.method.exchanges[0]
    local = exchange.local
    assert isinstance(local, NeuralEpochs)
    asked = exchange.sampling.draw(federation.people, 0, world.keys)
    from tacit.round import broadcast_of

    received = broadcast_of(exchange, world.server)
    changes, held = {}, np.zeros(15)
    for user in asked:
        one = np.array([user], dtype=np.int32)
        private = {name: array[one] for name, array in world.private.items()}
        update: Any = local.run(received, private, federation.cohort(one), None, world.keys).update
        for name, array in update.items():
            if isinstance(array, Rows):
                whole = np.zeros(world.server.shared[name].shape)
                rows: Any = array.values
                whole[array.ids] = rows
                if name == "gmf":
                    held[array.ids] += 1
            else:
                whole = array[0].astype(float)
            changes[name] = changes.get(name, 0) + whole
    before = {name: array.copy() for name, array in world.server.shared.items()}
    one_round(world)
    for name in (*TABLES, *layers(3)):
        many = np.maximum(held, 1)[:, np.newaxis] if name in TABLES and averaged == "holders" else len(asked)
        expected = before[name] + changes[name] / many
        np.testing.assert_allclose(world.server.shared[name], expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=8, deadline=None)
@given(pairs=st.integers(1, 80), name=st.sampled_from(sorted(METHODS)))
def test_grouping_hardly_matters(pairs, name):
    """Batched products may round differently; nothing else changes."""
    federation = tiny_federation(users=20, silent=2)
    alone, first = trained(METHODS[name](**SMALL), federation, execution=Execution(1, pairs_per_chunk=1))
    grouped, second = trained(
        METHODS[name](**SMALL), federation, execution=Execution(1, pairs_per_chunk=pairs)
    )
    for table in (*TABLES, *layers(3)):
        np.testing.assert_allclose(
            alone.server.shared[table], grouped.server.shared[table], rtol=2e-3, atol=2e-5
        )
    assert [record.traffic for record in first] == [record.traffic for record in second]


def test_a_sub_model_leaves_unchosen_rows_alone():
    world = new_world(priv_fedncf_sub_compress(**SMALL), tiny_federation(30, 20), SeededKeys(3))
    before = {name: world.server.shared[name].copy() for name in TABLES}
    set_up(world)
    chosen = world.server.shared["selected"].astype(bool)
    for _ in range(3):
        one_round(world)
    for name in TABLES:
        assert np.array_equal(before[name][~chosen], world.server.shared[name][~chosen])
        assert (before[name][chosen] != world.server.shared[name][chosen]).all()


@pytest.mark.parametrize("name", ["dp-fedncf", "dp-fedncf-dgc", "priv-fedncf-sub-compress"])
def test_claims_hold_by_default_and_not_where_places_are_told(name):
    federation = tiny_federation(20, 15)
    found = {}
    for noise in ("gaussian", "published", "none"):
        _, records = trained(METHODS[name](**{**SMALL, "rounds": 1}, noise=noise), federation)
        found[noise] = records[-1].claim.event(Observer.SERVER)
    assert found["gaussian"] == Gaussian(1.0, 1.0)
    assert isinstance(found["none"], NonPrivate)
    assert isinstance(found["published"], Gaussian if name == "dp-fedncf" else NonPrivate)


def test_compression_sends_fewer_numbers():
    federation = tiny_federation(20, 15)
    sizes = {}
    for share in (1.0, 0.1):
        _, records = trained(priv_fedncf_sub_compress(**SMALL, share=share), federation)
        sizes[share] = records[-1].traffic.numbers_up
    deep = 4 * 2 + 2 + (3 + 2) + 1  # third layer, out: weights and biases
    left = 1 + 1 + 1 + 1  # a tenth of 8, 2, 5 and 1 numbers, rounded up
    assert sizes[1.0] - sizes[0.1] == 10 * (deep - left)


CHANGES = [
    {"factors": 4}, {"tower": "8-6-4"}, {"rounds": 4}, {"rate": 0.02}, {"epochs": 3}, {"batch": 3},
    {"negatives": 3}, {"clients": 0.8}, {"adam": "dense"}, {"noise": "none"}, {"noise": "published"},
    {"clip": 0.5}, {"sigma": 2.0}, {"share": 0.5}, {"bits": "true"}, {"bit_epsilon": 0.5},
    {"redraw": "round"}, {"threshold": 0.5}, {"pool": "received"}, {"unselected": "frequency"},
]  # fmt: skip


def scores(world):
    return world.method.model.scorer(world.server.shared, world.private).scores(world.federation.people)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_setting_of_the_sub_model_matters(change):
    federation = tiny_federation(users=20, items=30)
    base, changed = (
        trained(priv_fedncf_sub_compress(**{**SMALL, **more}), federation)[0] for more in ({}, change)
    )
    assert not np.array_equal(scores(base), scores(changed))


@pytest.mark.parametrize(
    "change", [{"momentum": 0.5}, {"local_clip": 0.01}, {"warm_up": 0}, {"share": 0.5}], ids=str
)
def test_every_setting_of_deep_gradient_compression_matters(change):
    federation = tiny_federation(users=20, items=30)
    settings_ = ({**SMALL, "clients": 1.0, **more} for more in ({}, change))
    base, changed = (trained(METHODS["dp-fedncf-dgc"](**each), federation)[0] for each in settings_)
    assert not np.array_equal(scores(base), scores(changed))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_central_twin_has_everybody(name):
    """One model for the whole family: what noise, sub-models and compression cost is told against it."""
    federation = tiny_federation()
    world, records = trained(METHODS[name](**SMALL, twin="central"), federation)
    assert records[0].facts.invited == len(world.federation.people)
    assert isinstance(records[0].claim.event(Observer.SERVER), NonPrivate)
    plain, _ = trained(fedncf(**SMALL, twin="central"), federation)
    assert np.array_equal(scores(world), scores(plain))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_device_alone_sends_nothing(name):
    _, records = trained(METHODS[name](**SMALL, twin="local"), tiny_federation())
    assert sum(record.traffic.total for record in records) == 0


@pytest.mark.parametrize("tower", ["8", "a-b", "7-3", "8-0"])
def test_a_tower_that_cannot_stand_is_refused(tower):
    with pytest.raises(TacitError, match="tower"):
        fedncf(tower=tower)


def test_devices_that_cannot_be_simulated_with_their_memory_are_refused():
    """43,297 numbers of the network, each with its velocity, in single precision: 4 GB are 11,548 people."""
    model = METHODS["dp-fedncf-dgc"]().model
    assert model.private(np.arange(3, dtype=np.int32), SeededKeys(1))["unsent/out.weight"].shape == (3, 64)
    most = int(4e9 / (8 * sum(int(np.prod(shape)) for _, shape in model.network_shapes())))
    assert most == 11_548
    with pytest.raises(TacitError, match=r"11549 simulated devices would take 4\.0 GB"):
        model.private(np.arange(most + 1, dtype=np.int32), SeededKeys(1))
