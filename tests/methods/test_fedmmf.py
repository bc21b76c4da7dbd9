"""FedMMF equals the slow loop written from the paper; what leaves a device is what its docstring says."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.account.claim import Observer
from tacit.account.events import NonPrivate
from tacit.audit.transcript import Recording
from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.methods.fed_context import fed_fm, fed_lr, fed_nn
from tacit.methods.fedmmf import fedmmf, local_fm, local_lr, local_nn
from tacit.models.side_information import item_table
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round, set_up
from tacit.testing.reference.fedmmf import masked, ridge, round_of
from tacit.testing.tiny import tiny_federation

SMALL = {"dim": 4, "rounds": 6, "rate": 0.02, "reg": 0.1, "spread": 0.5, "mask_reg": 2.0, "mask_steps": 20}
ORDERS = ("one", "two", "high")


def trained(method, federation, execution=None):
    world = new_world(method, federation, SeededKeys(1), execution)
    records = set_up(world)
    for _ in range(world.method.rounds):
        records += one_round(world)
    return world, records


def histories(federation):
    bounds = zip(federation.offsets[:-1], federation.offsets[1:], strict=True)
    return [
        list(zip(federation.items[a:b].tolist(), federation.values[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


@pytest.mark.parametrize("mask", ["personal", "none"])
def test_it_equals_the_slow_loop(mask):
    """Single precision against doubles: six rounds, 1e-4."""
    federation = tiny_federation(silent=1)
    world = new_world(fedmmf(**SMALL, mask=mask, plain=True), federation, SeededKeys(1))
    set_up(world)
    users, items = (world.private["user"].astype("f8"), world.server.shared["items"].astype("f8"))
    features = item_table(federation.item_features, periods=5).rows.astype("f8")
    over = [
        masked(mine, features, 2.0)[0] if mask == "personal" and mine else mine
        for mine in histories(federation)
    ]
    for _ in range(6):
        users, items = round_of(users, items, over, 0.02, 0.1)
        one_round(world)
        np.testing.assert_allclose(world.private["user"], users, atol=1e-4)
        np.testing.assert_allclose(world.server.shared["items"], items, atol=1e-4)


def test_a_prediction_is_mask_plus_product():
    federation = tiny_federation()
    world, _ = trained(fedmmf(**SMALL), federation)
    features = item_table(federation.item_features, periods=5).rows.astype("f8")
    user = 3
    _, mask = masked(histories(federation)[user], features, 2.0)
    expected = mask + world.server.shared["items"] @ world.private["user"][user]
    scorer = world.method.model.scorer(world.server.shared, world.private)
    found = scorer.scores(np.array([user], dtype=np.int32))[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    pairs = np.full(15, user, dtype=np.int32), np.arange(15, dtype=np.int32)
    np.testing.assert_allclose(scorer.predict(*pairs), expected, atol=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_the_secure_sum_trains_the_same_model(order):
    """Rounding to 2^-14 in six rounds of sums over twelve people stays below a thousandth."""
    federation = tiny_federation()
    summed, _ = trained(fedmmf(**SMALL, order=order), federation)
    plain, _ = trained(fedmmf(**SMALL, order=order, plain=True), federation)
    gap = np.abs(summed.server.shared["items"] - plain.server.shared["items"]).max()
    assert 0 < gap < 1e-3


@pytest.mark.parametrize("execution", [Execution(1, 1), Execution(2, 30)])
@pytest.mark.parametrize("order", ORDERS)
def test_grouping_changes_nothing(order, execution):
    """Sums are whole numbers; only a private model's own float sums may move in the last digits."""
    federation = tiny_federation()
    one, _ = trained(fedmmf(**SMALL, order=order), federation)
    other, _ = trained(fedmmf(**SMALL, order=order), federation, execution)
    np.testing.assert_allclose(one.server.shared["items"], other.server.shared["items"], atol=2e-3)
    np.testing.assert_allclose(one.private["user"], other.private["user"], atol=2e-3)


def test_the_common_mean_is_everybodys():
    federation = tiny_federation()
    world, _ = trained(fedmmf(**SMALL, mask="global-mean"), federation)
    assert world.server.shared["mean"][0] == pytest.approx(federation.values.mean(), abs=1e-2)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("mask", ["personal", "user-mean", "global-mean", "none"])
def test_nothing_is_claimed_and_private_models_stay(mask, plain):
    federation = tiny_federation()
    world = new_world(fedmmf(**SMALL, mask=mask, plain=plain), federation, SeededKeys(1))
    seen = world.onlooker = Recording(federation.people.astype(np.int32), federation.catalogue, frozenset())
    records = [*set_up(world), *one_round(world)]
    assert isinstance(records[-1].claim.event(Observer.SERVER), NonPrivate)
    assert bool(seen.transcript().uploads) == plain
    assert not any(name.startswith("mask.") for name in world.server.shared)
    assert any(name.startswith("mask.") for name in world.private) == (mask in {"personal", "user-mean"})
    if mask == "personal":
        assert records[0].traffic.up == 0


@pytest.mark.parametrize("make", [local_lr, local_fm, local_nn])
def test_a_device_alone_sends_nothing(make):
    _, records = trained(make(), tiny_federation())
    assert [record.traffic.up for record in records] == [0]


def test_local_lr_is_ridge_regression():
    federation = tiny_federation()
    world, _ = trained(local_lr(reg=3.0), federation)
    features = item_table(federation.item_features, periods=5).rows.astype("f8")
    for user, mine in enumerate(histories(federation)):
        items = [item for item, _ in mine]
        bias, weights = ridge(features[items], np.array([rating for _, rating in mine]), 3.0)
        assert world.private["mask.bias"][user] == pytest.approx(bias, abs=1e-4)
        np.testing.assert_allclose(world.private["mask.linear"][user], weights, atol=1e-4)


@pytest.mark.parametrize("make", [fed_lr, fed_fm, fed_nn])
def test_a_shared_context_model_learns(make):
    federation = tiny_federation(30, 20)
    errors = []
    for rounds in (1, 150):
        world, _ = trained(make(rounds=rounds), federation)
        everybody = np.arange(30, dtype=np.int32)
        private = world.method.model.folded_in(world.server.shared, federation.cohort(everybody))
        scorer = world.method.model.scorer(world.server.shared, private)
        owners = np.repeat(everybody, np.diff(federation.offsets))
        errors.append(np.mean((scorer.predict(owners, federation.items) - federation.values) ** 2))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < federation.values.var()


@pytest.mark.parametrize(
    "change",
    [
        {"order": "two"},
        {"order": "high"},
        {"mask": "user-mean"},
        {"mask": "none"},
        {"mask_reg": 9.0},
        {"periods": 2},
        {"dim": 5},
        {"rate": 0.01},
        {"decay": 0.9},
        {"reg": 0.0},
        {"spread": 0.4},
        {"plain": True},
    ],
)
def test_every_setting_matters(change):
    federation = tiny_federation()
    usual, changed = (trained(fedmmf(**{**SMALL, **given}), federation)[0] for given in ({}, change))
    one, other = usual.server.shared["items"], changed.server.shared["items"]
    assert one.shape != other.shape or not np.array_equal(one, other)


@pytest.mark.parametrize("twin", ["central", "local"])
@pytest.mark.parametrize("mask", ["personal", "user-mean", "none"])
def test_twins(twin, mask):
    federation = tiny_federation()
    world, records = trained(fedmmf(**SMALL, mask=mask, plain=True, twin=twin), federation)
    if twin == "local":
        assert sum(record.traffic.up for record in records) == 0
        return
    federated, _ = trained(fedmmf(**SMALL, mask=mask, plain=True), federation)
    np.testing.assert_allclose(world.server.shared["items"], federated.server.shared["items"], atol=1e-5)


@pytest.mark.parametrize(("make", "one"), [(fed_lr, local_lr), (fed_fm, local_fm), (fed_nn, local_nn)])
def test_twins_of_a_shared_context_model(make, one):
    federation = tiny_federation()
    federated, _ = trained(make(rounds=5), federation)
    pooled, records = trained(make(rounds=5, twin="central"), federation)
    assert np.array_equal(pooled.server.shared["theta"], federated.server.shared["theta"])
    assert "pooled" in " ".join(pooled.method.notes)
    assert isinstance(records[-1].claim.event(Observer.SERVER), NonPrivate)
    alone, records = trained(make(rounds=5, twin="local"), federation)
    assert sum(record.traffic.up for record in records) == 0
    expected, _ = trained(one(), federation)
    for name, array in expected.private.items():
        assert np.array_equal(alone.private[name], array), name


def test_items_without_features_are_refused_by_name():
    bare = replace(tiny_federation(), item_features=Features())
    with pytest.raises(TacitError, match="mask=user-mean"):
        new_world(fedmmf(**SMALL), bare, SeededKeys(1))
