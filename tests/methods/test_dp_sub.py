"""The factorisation family equals the slow loops of Algorithms 1 and 2, and touches only what it says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.claim import Adjacency, Observer
from tacit.account.events import Gaussian, Laplace, NonPrivate, RandomisedResponse
from tacit.config.experiment import with_protection
from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.ledger.privacy import PrivacyLedger
from tacit.local.sampled_pairs import drawn, places
from tacit.methods.dp_sub import dp_fedmf, priv_fedmf_sub
from tacit.methods.fedrec import fedmf
from tacit.rng import SeededKeys
from tacit.round import Surroundings, broadcast_of
from tacit.runtime.simulate import Execution, new_world, one_round, set_up
from tacit.testing.reference.dp_sub import chosen_rows, local_epochs, server_round
from tacit.testing.tiny import tiny_federation

SMALL = {
    "dim": 4,
    "rounds": 4,
    "rate": 0.1,
    "epochs": 2,
    "batch": 7,
    "negatives": 2,
    "clients": 0.5,
    "spread": 0.5,
}
QUIET = {**SMALL, "noise": "none"}


def trained(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    records = set_up(world)
    for _ in range(method.rounds):
        records += one_round(world)
    return world, records


def samples_of(local, cohort, keys, round, place):
    negatives = local.negatives_per_item
    return drawn(cohort, keys, round, place, epochs=local.epochs, negatives=negatives, pool=local.pool)


def slow_client(world, user, vector, rows, place):
    """The samples of one client in the coming round, and what the slow loop makes of them."""
    local: Any = world.method.exchanges[0].local
    local = getattr(local, "inner", local)
    cohort = world.federation.cohort(np.array([user], dtype=np.int32))
    found = samples_of(local, cohort, world.keys, world.server.round, place)
    epochs = []
    for epoch in range(local.epochs):
        mine = slice(epoch * found.room[0], epoch * found.room[0] + found.counts[0, epoch])
        epochs.append(
            list(
                zip(
                    found.touched[found.slots[mine]].tolist(),
                    found.labels[mine].astype(int).tolist(),
                    strict=True,
                )
            )
        )
    return local_epochs(vector, rows, epochs, local.rate, local.batch)


@pytest.mark.parametrize("name", ["fedmf", "fedmf-received", "dp-fedmf", "priv-fedmf-sub"])
def test_rounds_equal_the_slow_loop(name):
    federation = tiny_federation(20, 15, silent=1)
    method = {
        "fedmf": fedmf(feedback="implicit", **SMALL),
        "fedmf-received": fedmf(feedback="implicit", sends="received", **SMALL),
        "dp-fedmf": dp_fedmf(**QUIET),
        "priv-fedmf-sub": priv_fedmf_sub(**QUIET, bits="true"),
    }[name]
    world = new_world(method, federation, SeededKeys(2))
    set_up(world)
    chosen = np.arange(15)
    if name == "priv-fedmf-sub":
        met = np.zeros((20, 15), dtype=int)
        met[np.repeat(np.arange(20), np.diff(federation.offsets)), federation.items] = 1
        shares = met[:19].mean(axis=0)
        chosen = np.flatnonzero(shares > shares.mean())
        assert chosen.tolist() == np.flatnonzero(world.server.shared["selected"]).tolist()
    place = np.full(15, -1, dtype=np.int32)
    place[chosen] = np.arange(len(chosen))
    users, items = world.private["user"].astype(float), world.server.shared["items"].astype(float)
    for round in range(method.rounds):
        asked = world.method.exchanges[0].sampling.draw(federation.people, round, world.keys)
        sent = []
        for user in asked:
            done = slow_client(world, user, users[user], items[chosen], place)
            users[user] = done.vector
            sent.append({row: (items[row] - done.rows[at]) / 0.1 for at, row in enumerate(chosen)})
        items = server_round(items, sent, 0.1)
        one_round(world)
        np.testing.assert_allclose(world.private["user"], users, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(world.server.shared["items"], items, rtol=2e-4, atol=2e-5)


@settings(max_examples=12, deadline=None)
@given(
    pairs=st.integers(1, 80),
    threads=st.integers(1, 3),
    name=st.sampled_from(["fedmf", "laplace", "gaussian", "sub", "topk", "int8"]),
)
def test_grouping_and_threads_never_change_a_bit(pairs, threads, name):
    federation = tiny_federation(users=20, silent=2)
    method = {
        "fedmf": fedmf(feedback="implicit", **SMALL),
        "laplace": dp_fedmf(**SMALL, noise="published"),
        "gaussian": dp_fedmf(**SMALL),
        "sub": priv_fedmf_sub(**SMALL, redraw="round"),
        "topk": with_protection(dp_fedmf(**SMALL), "topk:0.3"),
        "int8": with_protection(dp_fedmf(**SMALL), "int8:random"),
    }[name]
    alone, first = trained(method, federation, execution=Execution(1, pairs_per_chunk=1))
    grouped, second = trained(method, federation, execution=Execution(threads, pairs_per_chunk=pairs))
    assert np.array_equal(alone.server.shared["items"], grouped.server.shared["items"])
    assert np.array_equal(alone.private["user"], grouped.private["user"])
    assert [record.traffic for record in first] == [record.traffic for record in second]


@pytest.mark.parametrize("noise", ["none", "published", "gaussian"])
def test_a_sub_model_never_changes_an_untouched_row(noise):
    world = new_world(priv_fedmf_sub(**SMALL, noise=noise), tiny_federation(30, 20), SeededKeys(3))
    before = world.server.shared["items"].copy()
    set_up(world)
    chosen = world.server.shared["selected"].astype(bool)
    assert 0 < chosen.sum() < 20
    for _ in range(4):
        one_round(world)
    after = world.server.shared["items"]
    assert np.array_equal(before[~chosen], after[~chosen])
    assert (before[chosen] != after[chosen]).any(axis=1).all()


def test_randomised_answers_choose_what_the_algorithm_says():
    """The server's choice from the very bits that devices sent equals Eq. 8 item by item."""
    federation = tiny_federation(40, 18)
    world = new_world(priv_fedmf_sub(**SMALL), federation, SeededKeys(4))
    (ask,) = world.method.setup
    cohort = ask.protections.on_cohort(federation.cohort(federation.people), world.keys, -1)
    told = np.unpackbits(cohort.extras["bits"], axis=1, count=18)
    set_up(world)
    assert np.flatnonzero(world.server.shared["selected"]).tolist() == chosen_rows(told.astype(int), 2.0)


def test_answers_are_kept_or_fresh_and_counted_so():
    federation = tiny_federation(20, 15)
    kept, kept_records = trained(priv_fedmf_sub(**QUIET), federation)
    fresh, fresh_records = trained(priv_fedmf_sub(**QUIET, redraw="round"), federation)
    reports = [
        [r for r in records if "report" in r.facts.exchange] for records in (kept_records, fresh_records)
    ]
    assert [len(found) for found in reports] == [1, 5]
    told = RandomisedResponse(2.0, 15, by_item=True)
    assert all(r.claim.event(Observer.SERVER) == told for r in reports[1])
    assert all(r.traffic.up == 20 * reports[0][0].traffic.up // 20 > 0 for r in reports[1])
    assert not np.array_equal(kept.server.shared["frequency"], fresh.server.shared["frequency"])


def test_the_claims_are_those_of_the_noise():
    federation = tiny_federation(20, 15)
    (record,) = one_round(new_world(dp_fedmf(**SMALL, noise="published"), federation, SeededKeys(1)))
    # E = 2 epochs of rows of length 1, epsilon 2: scale 1, and 15 rows of 4 numbers and length 2
    assert record.claim.event(Observer.SERVER) == Laplace(scale=1.0, clip=15 * 2.0 * 2.0, dimension=60)
    (record,) = one_round(new_world(dp_fedmf(**SMALL, clip=0.5, sigma=3.0), federation, SeededKeys(1)))
    assert record.claim.event(Observer.SERVER) == Gaussian(noise_std=1.5, clip=0.5)
    assert record.claim.adjacency is Adjacency.REPLACE_ONE
    (record,) = one_round(new_world(dp_fedmf(**QUIET), federation, SeededKeys(1)))
    assert isinstance(record.claim.event(Observer.SERVER), NonPrivate)
    assert dp_fedmf(**SMALL, noise="published").mode == "as-published"


def test_a_sub_model_claims_only_for_the_rows_it_sends():
    world = new_world(priv_fedmf_sub(**SMALL, noise="published"), tiny_federation(20, 15), SeededKeys(1))
    set_up(world)
    rows = int(world.server.shared["selected"].sum())
    (record,) = one_round(world)
    assert record.claim.event(Observer.SERVER) == Laplace(1.0, rows * 4.0, 4 * rows)


@pytest.mark.parametrize("spec", ["topk:0.2", "svd:2", "half", "int8"])
def test_compressing_noisy_updates_keeps_the_claim_and_saves_bytes(spec):
    federation = tiny_federation(20, 60)
    plain, packed = dp_fedmf(**SMALL), with_protection(dp_fedmf(**SMALL), spec)
    records = [one_round(new_world(method, federation, SeededKeys(1)))[0] for method in (plain, packed)]
    assert records[0].claim.event(Observer.SERVER) == records[1].claim.event(Observer.SERVER)
    # uploads change one by one: their sum is no function of the noisy sum, so each has its own noise alone
    assert records[1].claim.event(Observer.RELEASE).event == records[1].claim.event(Observer.SERVER)
    assert records[1].traffic.up < records[0].traffic.up
    assert records[1].traffic.down == records[0].traffic.down


def dgc(**changed):
    return dp_fedmf(**{**QUIET, "share": 0.25, "warm_up": 0, **changed})


def test_deep_gradient_compression_loses_nothing():
    """Without momentum what was sent and what devices still hold add up to every gradient there was."""
    federation = tiny_federation(20, 15)
    world = new_world(dgc(), federation, SeededKeys(1))
    start = world.server.shared["items"].astype(float)
    kept_back = np.zeros((20, 15, 4))
    for round in range(4):
        before = {name: array.copy() for name, array in world.private.items()}
        received = world.server.shared["items"].astype(float)
        asked = world.method.exchanges[0].sampling.draw(federation.people, round, world.keys)
        expected = kept_back.copy()
        for user in asked:
            done = slow_client(world, user, before["user"][user], received, None)
            expected[user] += (received - done.rows) / 0.1
        (record,) = one_round(world)
        sent = (received - world.server.shared["items"]) / 0.1
        kept_back = world.private["unsent/items"].astype(float)
        np.testing.assert_allclose(sent + (kept_back - expected).sum(axis=0), 0, atol=2e-4)
        assert record.traffic.numbers_up == 10 * 15  # a quarter of 15 x 4 numbers from each of ten
    assert np.abs(world.server.shared["items"] - start).max() > 0.01


def test_deep_gradient_compression_under_noise_tells_no_places():
    federation = tiny_federation(20, 15)
    world = new_world(dgc(noise="gaussian", clip=0.5, sigma=3.0), federation, SeededKeys(1))
    (record,) = one_round(world)
    assert record.claim.event(Observer.SERVER) == Gaussian(noise_std=1.5, clip=0.5)
    assert record.traffic.ids_up == 0
    assert record.traffic.numbers_up == 10 * 15
    with pytest.raises(TacitError, match="whole tables"):
        dgc(noise="published")


def test_devices_that_cannot_be_simulated_with_their_memory_are_refused():
    settled = dgc().settled(Surroundings(10**6, 10**4, Features(), Features()))
    with pytest.raises(TacitError, match=r"1000000 simulated devices would take .* GB; .*topk"):
        settled.model.private(np.arange(10**6, dtype=np.int32), SeededKeys(1))
    assert settled.model.private(np.arange(2, dtype=np.int32), SeededKeys(1))["unsent/items"].shape[0] == 2


@pytest.mark.parametrize("change", [{"share": 0.5}, {"warm_up": 4}, {"momentum": 0.5}], ids=str)
def test_every_setting_of_deep_gradient_compression_matters(change):
    federation = tiny_federation(users=20, items=30)
    base, changed = (trained(dgc(**more), federation)[0] for more in ({}, change))
    assert not np.array_equal(scores(base), scores(changed))


@pytest.mark.parametrize("spec", ["topk:1.0", "svd:4", "half", "int8"])
def test_mild_compression_is_mild(spec):
    federation = tiny_federation(20, 15)
    plain, packed = (
        fedmf(feedback="implicit", **SMALL),
        with_protection(fedmf(feedback="implicit", **SMALL), spec),
    )
    (first, _), (second, _) = trained(plain, federation), trained(packed, federation)
    tolerance = {"topk:1.0": 1e-6, "svd:4": 1e-6, "half": 2e-3, "int8": 0.05}[spec]
    assert np.abs(first.server.shared["items"] - second.server.shared["items"]).max() < tolerance


CHANGES = [
    {"dim": 5}, {"rounds": 5}, {"rate": 0.2}, {"epochs": 3}, {"batch": 3}, {"negatives": 3}, {"clients": 0.8},
    {"spread": 0.2}, {"noise": "none"}, {"noise": "published"}, {"clip": 0.5}, {"sigma": 2.0},
    {"bits": "true"}, {"bit_epsilon": 0.5}, {"redraw": "round"}, {"threshold": 0.5}, {"pool": "received"},
    {"unselected": "frequency"}, {"unselected": "untrained"}, {"twin": "central"}, {"twin": "local"},
]  # fmt: skip


def scores(world):
    users = world.federation.people
    return world.method.model.scorer(world.server.shared, world.private).scores(users)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_setting_matters(change):
    federation = tiny_federation(users=20, items=30)
    base, changed = (trained(priv_fedmf_sub(**{**SMALL, **more}), federation)[0] for more in ({}, change))
    assert not np.array_equal(scores(base), scores(changed))


def test_epsilon_matters_where_it_is_published():
    federation = tiny_federation(users=20, items=30)
    first, second = (
        trained(dp_fedmf(**SMALL, noise="published", epsilon=e), federation)[0] for e in (1.0, 2.0)
    )
    assert not np.array_equal(first.server.shared["items"], second.server.shared["items"])


def test_the_estimate_matters_to_a_fixed_threshold_and_hardly_to_the_mean():
    """Eq. 8 rises with the reported share: above the mean of either lie the same items."""
    federation = tiny_federation(users=200, items=30, seed=3)
    chosen = {}
    for estimate in ("likelihood", "none"):
        for threshold in (None, 0.3):
            world = new_world(
                priv_fedmf_sub(**SMALL, estimate=estimate, threshold=threshold), federation, SeededKeys(1)
            )
            set_up(world)
            chosen[estimate, threshold] = world.server.shared["selected"]
    assert np.array_equal(chosen["likelihood", None], chosen["none", None])
    assert not np.array_equal(chosen["likelihood", 0.3], chosen["none", 0.3])


def test_a_threshold_nobody_reaches_is_refused():
    world = new_world(priv_fedmf_sub(**SMALL, threshold=1.0), tiny_federation(), SeededKeys(1))
    with pytest.raises(TacitError, match="lower the threshold"):
        set_up(world)


def test_items_never_sent_rank_last():
    federation = tiny_federation(users=20, items=30)
    world, _ = trained(priv_fedmf_sub(**SMALL), federation)
    selected = world.server.shared["selected"].astype(bool)
    found = scores(world)
    assert found[:, ~selected].max(axis=1).max() < found[:, selected].min(axis=1).max()
    assert (found[:, ~selected].max(axis=1) < found[:, selected].min(axis=1)).all()


def with_a_client_who_has_everything(federation):
    """The federation with its first person given the whole catalogue."""
    first, all_ = federation.offsets[1], np.arange(federation.catalogue, dtype=np.int32)
    return replace(
        federation,
        offsets=np.concatenate([[0], federation.offsets[1:] - first + len(all_)]),
        items=np.concatenate([all_, federation.items[first:]]),
        values=np.concatenate([np.ones(len(all_), "f4"), federation.values[first:]]),
    )


@pytest.mark.parametrize("pool", [None, "catalogue", "received"])
def test_the_negatives_that_are_replayed_are_those_that_were_drawn(pool):
    """Of a sub-model drawn from the catalogue, those left out are replayed as well; all for a whole model."""
    method = priv_fedmf_sub(**SMALL, pool=pool) if pool else fedmf(feedback="implicit", **SMALL)
    world = new_world(method, with_a_client_who_has_everything(tiny_federation(20, 15)), SeededKeys(2))
    set_up(world)
    exchange = world.method.exchanges[0]
    local: Any = exchange.local
    cohort = world.federation.cohort(world.federation.people)
    received = broadcast_of(exchange, replace(world.server, round=3))
    told = local.negatives(received, cohort, world.keys)
    place = places(received.arrays, cohort.catalogue)
    found = samples_of(local, cohort, world.keys, 3, place)
    assert told.lengths[0] == 0
    for client in range(len(cohort)):
        first = slice(found.starts[client], found.starts[client] + found.counts[client, 0])
        rows = found.touched[found.touched_starts[client] + found.slots[first]][found.labels[first] == 0]
        mine = told.ids[told.starts[client] : told.starts[client] + told.lengths[client]]
        if pool == "received":
            assert (place[mine] >= 0).all()
        assert sorted(place[mine][place[mine] >= 0].tolist()) == sorted(rows.tolist())


def test_a_newcomer_prefers_what_it_met():
    world, _ = trained(fedmf(feedback="implicit", **{**SMALL, "rounds": 30}), tiny_federation(20, 15))
    cohort = world.federation.cohort(world.federation.people)
    private = world.method.model.folded_in(world.server.shared, cohort)
    found = world.method.model.scorer(world.server.shared, private).scores(
        np.arange(len(cohort), dtype=np.int32)
    )
    for client in range(len(cohort)):
        own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
        assert found[client, own].mean() > found[client, np.setdiff1d(np.arange(15), own)].mean()


def test_the_ledger_composes_bits_and_noise():
    ledger = PrivacyLedger(1e-6)
    _, records = trained(priv_fedmf_sub(**SMALL, noise="published"), tiny_federation(20, 15))
    for record in records:
        ledger.add(record.claim)
    server = next(line for line in ledger.guarantees() if line.observer is Observer.SERVER)
    events: list[Any] = [record.claim.event(Observer.SERVER) for record in records[1:]]
    rows = sum(event.clip for event in events)
    assert server.epsilon is not None
    assert 0 < server.epsilon <= 2.0 * 15 + 2 * rows + 1e-9


def test_the_paper_counts_the_numbers_of_the_item_table_one_way():
    federation = tiny_federation(20, 15)
    world = new_world(replace(dp_fedmf(**SMALL), rounds=3), federation, SeededKeys(1))
    numbers = sum(one_round(world)[0].traffic.numbers_down for _ in range(3))
    assert numbers == 15 * 4 * 10 * 3  # items x dim x clients x rounds


@pytest.mark.parametrize("method", [dp_fedmf, priv_fedmf_sub])
def test_a_number_for_the_other_kind_of_noise_is_refused(method):
    with pytest.raises(TacitError, match="sigma has no effect on the published noise; give epsilon"):
        method(**SMALL, noise="published", sigma=2.0)
