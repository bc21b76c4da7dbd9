"""PrivRec and DP-PrivRec: rounds as Algorithms 1 and 2 say, noise as accounted, failures with a name."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tacit.account.claim import Adjacency, Observer
from tacit.config.catalogue import built, resolved_settings
from tacit.data import load
from tacit.errors import TacitError
from tacit.federation.sampling import FixedSize, Poisson
from tacit.ledger.privacy import PrivacyLedger
from tacit.methods.privrec import dp_privrec, fofl_self, nn_self, privrec
from tacit.rng import SeededKeys
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.split import split
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

SMALL = {"hidden": "4-3", "bins": 2}


def world_of(method, federation=None, seed=1, delta=1e-6):
    federation = federation or tiny_federation(40, 15, seed=2)
    return new_world(method, federation, SeededKeys(seed), Execution(), delta)


def after(world, rounds=1):
    before = world.server.shared
    for _ in range(rounds):
        one_round(world)
    return {name: world.server.shared[name] - before[name] for name in before}


def test_the_server_goes_part_of_the_way_to_the_devices_mean():
    """Line 7 of Algorithm 1: twice the meta rate, twice the step, over the number asked."""
    ways = [privrec(clients=10, outer="plain", ids=0, meta_rate=rate, **SMALL) for rate in (0.5, 1.0)]
    half, whole = (after(world_of(way)) for way in ways)
    for name in half:
        np.testing.assert_allclose(2 * half[name], whole[name], rtol=1e-4, atol=1e-7)


def test_sums_are_divided_by_the_public_number_of_people():
    """Under Poisson's rule as many come as come; how many came is not published through a mean."""
    (exchange,) = dp_privrec(clients=12, noise=1.0, **SMALL).exchanges
    total = {"w": np.ones(3)}
    for answered in (0, 5, 12, 19):
        found = exchange.aggregator.normalised(total, RoundFacts(0, "train", 40, answered, answered))
        np.testing.assert_array_equal(found["w"], total["w"] / 12)


@pytest.mark.parametrize("maker", [privrec, nn_self, fofl_self])
def test_twins_of_the_family_run_and_say_what_they_are(maker):
    central = world_of(maker(clients=5, twin="central"))
    record = one_round(central)[0]
    assert "server" in " ".join(central.method.notes)
    assert record.claim.events[Observer.SERVER].reason.startswith("the central twin")
    alone = world_of(maker(twin="local"))
    before = alone.server.shared
    one_round(alone)
    for name, array in before.items():
        np.testing.assert_array_equal(array, alone.server.shared[name])


def test_central_learns_what_the_federation_learns():
    """PrivRec-CEN treats people as tasks of one training: the same sums, so the same numbers."""
    ours, central = (world_of(privrec(clients=7, twin=twin)) for twin in ("none", "central"))
    found = zip(after(ours, 2).values(), after(central, 2).values(), strict=True)
    assert all(np.array_equal(one, other) for one, other in found)


def test_noise_through_the_whole_path_has_the_deviation_accounted_for():
    """Devices that learn nothing: a step is noise alone. False alarms: 2e-6 per test, at a fixed seed."""
    cohort, clip, noise, meta = 10, 0.3, 1.7, 0.5
    method = dp_privrec(
        noise=noise, clip=clip, clip_rate=0, clients=cohort, epochs=1, rate=1e-12, meta_rate=meta,
        hidden="64-64", bins=2,
    )  # fmt: skip
    step = np.concatenate([part.reshape(-1) for part in after(world_of(method)).values()])
    wanted = meta * noise * clip / cohort
    freedom = len(step)
    assert freedom > 4000
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], freedom)
    assert low < np.sum((step / wanted) ** 2) < high
    assert abs(step.mean()) < stats.norm.isf(1e-6) * wanted / math.sqrt(freedom)
    assert stats.kstest(step / wanted, "norm").pvalue > 1e-6


def test_the_published_noise_is_as_large_as_algorithm_2_says():
    """S = 40, z = 1, h = 0.7, M = 30: 4.87 on every number of the mean, whatever the meta rate."""
    method = dp_privrec(
        mode="as-published", clip=40.0, clients=30, epochs=1, rate=1e-12, meta_rate=0.5, quantile=0.9,
        clip_rate=1.0, hidden="64-64", bins=2,
    )  # fmt: skip
    step = np.concatenate([part.reshape(-1) for part in after(world_of(method)).values()])
    wanted = 2 * 40 / 30 / math.sqrt(0.3)
    assert wanted == pytest.approx(4.87, abs=0.005)
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(step))
    assert low < np.sum((step / wanted) ** 2) < high


def test_each_mode_samples_as_it_accounts():
    corrected, literal = dp_privrec(clients=9, epsilon=3), dp_privrec(clients=9, mode="as-published")
    assert corrected.exchanges[0].sampling == Poisson(9)
    assert literal.exchanges[0].sampling == FixedSize(9)
    told = {}
    for name, method in (("corrected", corrected), ("literal", literal)):
        (record,) = one_round(world_of(method))
        told[name] = record.claim
    assert told["corrected"].adjacency is Adjacency.ADD_REMOVE
    assert told["literal"].adjacency is Adjacency.REPLACE_ONE


def epsilon_of(world, rounds):
    ledger = PrivacyLedger(1e-6, world.method.mode)
    for _ in range(rounds):
        for record in one_round(world):
            ledger.add(record.claim)
    lines = {line.observer: line for line in ledger.guarantees()}
    assert lines[Observer.SERVER].epsilon is None
    return lines[Observer.RELEASE].epsilon


@pytest.mark.parametrize("wanted", [1.0, 4.0])
def test_a_wanted_epsilon_is_spent_and_not_exceeded(wanted):
    world = world_of(dp_privrec(epsilon=wanted, rounds=6, clients=10, epochs=1, **SMALL))
    found = epsilon_of(world, world.method.rounds)
    assert 0.99 * wanted < found <= wanted


def test_a_run_ends_before_it_exceeds_its_epsilon():
    method = dp_privrec(epsilon=2.0, noise=2.0, rounds=40, clients=10, epochs=1, **SMALL)
    world = world_of(method)
    rounds = world.method.rounds
    assert 0 < rounds < 40
    assert any(f"stopped at {rounds} of 40" in note for note in world.method.notes)
    assert epsilon_of(world, rounds) <= 2.0
    assert epsilon_of(world_of(replace(method, settle=method.settle)), rounds + 1) > 2.0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.01, "noise": 0.5}, "one round with noise 0.5 exceeds"),
        ({"mode": "as-published", "epsilon": 2.0}, "leave epsilon and noise out"),
        ({"noise": 1.0, "bit_noise": 0.4}, "raise it above 0.5"),
        ({"noise": -1.0}, "above 0"),
        ({"clip": 0.0}, "above 0"),
        ({"quantile": 1.5}, "at most 1"),
        ({"hidden": "none"}, "without ids"),
    ],
)
def test_impossible_budgets_are_refused_in_one_line(settings, said):
    with pytest.raises(TacitError, match=said):
        world_of(dp_privrec(**{"clients": 10, **settings}))


def test_the_paper_s_settings_diverge_within_ten_rounds_and_say_so():
    data = load("demo:users=80,items=60,mean=15")
    method = built("dp-privrec", resolved_settings("dp-privrec", {"preset": "paper"}, "demo"))
    world = world_of(method, federation_of(data, split(data, "by-user", seed=1).train))
    with pytest.raises(TacitError, match=r"round \d: training diverged on \d+ of 30 devices"):
        after(world, 10)
    assert world.server.round < 10
    shared = world.server.shared  # the last good model is kept
    assert all(np.isfinite(array).all() for array in shared.values())


@pytest.mark.data
def test_the_paper_s_settings_diverge_on_its_own_data():
    data = load("ml-1m")
    method = built("dp-privrec", resolved_settings("dp-privrec", {"preset": "paper"}, "ml-1m"))
    assert (method.exchanges[0].sampling, method.mode) == (FixedSize(30), "as-published")
    world = world_of(method, federation_of(data, split(data, "by-user", seed=1).train))
    with pytest.raises(TacitError, match="training diverged"):
        after(world, 10)


def test_items_without_features_are_known_by_their_ids_or_refused():
    federation = tiny_federation(40, 15, seed=2)
    bare = replace(federation, item_features=type(federation.item_features)())
    world = world_of(privrec(clients=5), bare)
    assert any("ids alone" in note for note in world.method.notes)
    with pytest.raises(TacitError, match="ids=16"):
        world_of(privrec(clients=5, ids=0), bare)


def test_what_adds_up_everybody_s_log_is_read_by_name_alone_and_is_no_part_of_the_promise():
    federation = tiny_federation(40, 15, seed=2)
    uses = np.arange(15, dtype=np.float32)
    about = federation.item_features
    counted = replace(
        federation,
        item_features=replace(about, numbers={"count": uses, **about.numbers}, from_log=("count",)),
    )
    plain = {"clients": 10, "rounds": 2, **SMALL}
    without, named = (dp_privrec(**plain, about_items=which) for which in ("all", "all+count"))
    silent, told = after(world_of(without, federation)), after(world_of(without, counted))
    assert all(np.array_equal(silent[name], told[name]) for name in silent)
    found = {}
    for label, method in (("without", without), ("named", named)):
        world = world_of(method, counted)
        found[label] = [field.name for field in world.method.model.encoding.items]
        ledger = PrivacyLedger(1e-6, "accounted")
        for record in one_round(world):
            ledger.add(record.claim)
        (release,) = [line for line in ledger.guarantees() if line.observer is Observer.RELEASE]
        assert math.isfinite(release.epsilon)
        assert any("'count'" in line for line in release.assumes) == (label == "named")
    assert {"count", "count.bin"} == set(found["named"]) - set(found["without"])


def test_scores_that_every_device_keeps_are_refused_where_all_of_them_do_not_fit():
    """One number per person and group of items that look the same."""
    model = world_of(nn_self(clients=5)).method.model
    groups = len(model.encoding.designs)
    assert model.private(np.arange(10, dtype=np.int32), SeededKeys(1)) == {}
    with pytest.raises(TacitError, match=r"scores of .* adapt=user"):
        model.private(np.broadcast_to(np.int32(0), int(1e9 / groups) + 1), SeededKeys(1))
    alone = replace(model, adapt="user")
    assert alone.private(np.broadcast_to(np.int32(0), int(1e9 / groups) + 1), SeededKeys(1)) == {}
