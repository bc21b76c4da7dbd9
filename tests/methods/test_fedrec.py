"""FedRec and FedRec++ equal the slow loops written from the paper, and lose nothing to their fillers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.claim import Observer
from tacit.account.events import NonPrivate
from tacit.errors import TacitError
from tacit.methods.fedrec import fedmf, fedrec, fedrec_plus_plus
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.testing.reference.fedrec import Recipe, fedrec_plus_plus_round, fedrec_round
from tacit.testing.tiny import tiny_federation

SMALL = {
    "dim": 4,
    "rounds": 8,
    "rate": 0.3,
    "decay": 0.95,
    "reg": 0.02,
    "spread": 0.5,
    "t_predict": 3,
    "t_local": 4,
}


def histories(federation):
    bounds = zip(federation.offsets[:-1], federation.offsets[1:], strict=True)
    return [
        list(zip(federation.items[a:b].tolist(), federation.values[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


def drawn_by(world, exchange):
    """What each user drew as fillers in the coming round."""
    drawn = [[] for _ in range(len(world.federation))]
    for user in world.casting.parts[exchange.part]:
        cohort = world.federation.cohort(np.array([user], dtype=np.int32))
        cohort = exchange.protections.on_cohort(cohort, world.keys, world.server.round)
        if cohort.fillers is not None:
            drawn[user] = cohort.fillers.ids.tolist()
    return drawn


def trained(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    for _ in range(method.rounds):
        one_round(world)
    return world


@pytest.mark.parametrize("filling", ["average", "hybrid"])
@pytest.mark.parametrize("rho", [0.0, 1.0, 2.0])
def test_fedrec_equals_the_slow_loop(rho, filling):
    federation = tiny_federation(silent=1)
    method = fedrec(**SMALL, rho=rho, filling=filling, precision="float64")
    world = new_world(method, federation, SeededKeys(3))
    recipe = Recipe(0.3, 0.02, 0.95, filling == "hybrid", 3, 4, user_step="all")
    users, items = world.private["user"].copy(), world.server.shared["items"].copy()
    for round in range(method.rounds):
        drawn = drawn_by(world, method.exchanges[0])
        users, items = fedrec_round(users, items, histories(federation), drawn, round, recipe)
        one_round(world)
        np.testing.assert_allclose(world.private["user"], users, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(world.server.shared["items"], items, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("denoisers", [1, 4, 0.5])
def test_fedrec_plus_plus_equals_the_slow_loop(denoisers):
    federation = tiny_federation()
    method = fedrec_plus_plus(**SMALL, rho=2.0, denoisers=denoisers, precision="float64")
    world = new_world(method, federation, SeededKeys(5))
    recipe = Recipe(0.3, 0.02, 0.95, True, 3, 4)
    users, items = world.private["user"].copy(), world.server.shared["items"].copy()
    for round in range(method.rounds):
        drawn = drawn_by(world, method.exchanges[0])
        users, items = fedrec_plus_plus_round(
            users, items, histories(federation), drawn, world.casting.peer.tolist(), round, recipe
        )
        one_round(world)
        np.testing.assert_allclose(world.private["user"], users, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(world.server.shared["items"], items, rtol=1e-9, atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(
    rho=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    denoisers=st.integers(1, 11),
    pairs=st.integers(1, 60),
    threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_fedrec_plus_plus_is_lossless(rho, denoisers, pairs, threads, seed):
    """Any rho, denoisers, grouping and threads: bit-equal on the grid, 1e-12 in float64, 3e-4 in float32."""
    federation = tiny_federation(seed=seed)
    execution = Execution(threads, pairs)
    for kind, sums, absolute in (
        ("float32", "grid", 0.0),
        ("float64", "float", 1e-12),
        ("float32", "float", 3e-4),
    ):
        plain = fedmf(**_without_fillers(), precision=kind, sums=sums)
        noisy = fedrec_plus_plus(**SMALL, rho=rho, denoisers=denoisers, precision=kind, sums=sums)
        expected = trained(plain, federation, seed)
        found = trained(noisy, federation, seed, execution)
        for left, right in (
            (found.server.shared["items"], expected.server.shared["items"]),
            (found.private["user"], expected.private["user"]),
        ):
            scale = max(1.0, float(np.abs(right).max()))
            assert np.abs(left - right).max() <= absolute * scale


def _without_fillers():
    return {key: value for key, value in SMALL.items() if key not in {"t_predict", "t_local"}}


@settings(max_examples=15, deadline=None)
@given(pairs=st.integers(1, 80), threads=st.integers(1, 3), sums=st.sampled_from(["float", "grid"]))
def test_grouping_and_threads_never_change_a_bit(pairs, threads, sums):
    federation = tiny_federation(users=20, silent=2)
    method = fedrec(**SMALL, rho=1.0, sums=sums)
    one_by_one = trained(method, federation, execution=Execution(1, 1))
    grouped = trained(method, federation, execution=Execution(threads, pairs))
    assert np.array_equal(one_by_one.server.shared["items"], grouped.server.shared["items"])
    assert np.array_equal(one_by_one.private["user"], grouped.private["user"])


def test_letters_and_rows_are_counted_as_they_cross():
    """With everybody taking part: |I_u| + |I'_u| rows up, |I'_u| rows to peers, what is sent is received."""
    federation = tiny_federation(users=30, items=40)
    world = new_world(fedrec_plus_plus(**SMALL, rho=1.0, denoisers=3), federation, SeededKeys(2))
    train, denoise = one_round(world)
    ordinary = world.casting.parts["ordinary"]
    rated = int(np.diff(federation.offsets)[ordinary].sum())
    assert train.traffic.rows_up == 2 * rated
    assert train.traffic.rows_out == denoise.traffic.rows_in == rated
    assert train.traffic.letters_out == denoise.traffic.letters_in > 0
    assert train.facts.answered + denoise.facts.answered == len(federation)
    parts = world.casting.parts
    assert [r.facts.population for r in (train, denoise)] == [
        len(parts[e.part]) for e in world.method.exchanges
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"dim": 5},
        {"rounds": 9},
        {"rate": 0.2},
        {"decay": 0.9},
        {"reg": 0.1},
        {"rho": 2.0},
        {"filling": "average"},
        {"t_predict": 2},
        {"t_local": 5},
        {"fillers": "kept"},
        {"clients": 0.5},
        {"init": "normal"},
        {"spread": 0.4},
        {"sums": "grid"},
        {"precision": "float64"},
        {"twin": "central"},
        {"twin": "local"},
    ],
)
def test_every_setting_matters(change):
    federation = tiny_federation(users=20, items=30)
    base = {**SMALL, "rho": 1.0}
    first, second = (trained(fedrec(**{**base, **more}), federation) for more in ({}, change))
    people, everything = np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32)
    before, after = (
        world.method.model.scorer(world.server.shared, world.private).predict(people, everything)
        for world in (first, second)
    )
    assert not np.array_equal(before, after)


@pytest.mark.parametrize(
    "idle",
    [
        {"epochs": 3},
        {"batch": 64},
        {"negatives": 2},
        {"sends": "received"},
        {"feedback": "implicit", "decay": 0.9},
        {"feedback": "implicit", "reg": 0.1},
        {"feedback": "implicit", "init": "normal"},
        {"feedback": "implicit", "sums": "grid"},
        {"feedback": "implicit", "precision": "float64"},
    ],
)
def test_a_setting_without_effect_is_refused(idle):
    with pytest.raises(TacitError, match=f"{list(idle)[-1]} does nothing"):
        fedmf(**idle)


def test_the_number_of_denoisers_matters_to_the_bytes_but_not_to_the_model():
    federation = tiny_federation(users=20, items=30)
    worlds = [
        new_world(fedrec_plus_plus(**SMALL, denoisers=n, sums="grid"), federation, SeededKeys(1))
        for n in (1, 10)
    ]
    records = [one_round(world) for world in worlds]
    assert records[0][1].traffic.rows_up != records[1][1].traffic.rows_up
    assert np.array_equal(worlds[0].server.shared["items"], worlds[1].server.shared["items"])


def test_the_claim_is_unbounded_for_everyone_who_sees_updates():
    world = new_world(fedrec_plus_plus(**SMALL), tiny_federation(), SeededKeys(1))
    for record in one_round(world):
        for observer in (Observer.SERVER, Observer.RELEASE):
            assert isinstance(record.claim.event(observer), NonPrivate)
    assert isinstance(one_round(world)[0].claim.event(Observer.PEER), NonPrivate)


def test_the_central_twin_is_fedrec_without_fillers():
    federation = tiny_federation()
    twin = trained(fedrec(**SMALL, rho=3.0, twin="central"), federation)
    plain = trained(fedmf(**_without_fillers()), federation)
    assert np.array_equal(twin.server.shared["items"], plain.server.shared["items"])


def test_the_local_twin_answers_with_the_owners_mean():
    federation = tiny_federation()
    world = trained(fedrec(**SMALL, twin="local"), federation)
    people = np.arange(len(federation), dtype=np.int32)
    predicted = world.method.model.scorer(world.server.shared, world.private).predict(people, people)
    means = [
        np.mean(federation.values[a:b])
        for a, b in zip(federation.offsets, federation.offsets[1:], strict=False)
    ]
    np.testing.assert_allclose(predicted, means, rtol=1e-6)


@pytest.mark.parametrize("amount", [0, 12, 13, 1.0])
def test_a_denoiser_and_an_ordinary_client_are_needed(amount):
    with pytest.raises(TacitError, match="denoisers"):
        new_world(fedrec_plus_plus(**SMALL, denoisers=amount), tiny_federation(), SeededKeys(1))


def test_rounds_with_few_clients_keep_the_denoisers():
    world = new_world(fedrec_plus_plus(**SMALL, clients=3, denoisers=2), tiny_federation(), SeededKeys(1))
    train, denoise = one_round(world)
    assert (train.facts.invited, denoise.facts.invited) == (3, 2)


def test_a_diverging_run_is_refused_and_keeps_the_last_good_model():
    method = replace(fedmf(**{**_without_fillers(), "rate": 60.0, "spread": 5.0}), rounds=50)
    world = new_world(method, tiny_federation(), SeededKeys(1))

    def train():
        for _ in range(method.rounds):
            one_round(world)

    with pytest.raises(TacitError, match="diverged"), np.errstate(all="ignore"):
        train()
    assert np.isfinite(world.server.shared["items"]).all()
