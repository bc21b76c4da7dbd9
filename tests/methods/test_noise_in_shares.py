"""Secure sums with noise in shares give methods a guarantee against the server itself."""

import pytest

from tacit.account.claim import Observer
from tacit.account.gaussian import epsilon_of
from tacit.config.experiment import Experiment, resolved
from tacit.errors import TacitError
from tacit.ledger.privacy import PrivacyLedger
from tacit.protect.noise import GaussianNoise
from tacit.rng import SeededKeys
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, one_round, set_up

DATA = "demo:users=60,items=40,mean=12"
ROUNDS = 2


def trained(method, transport="secure-sum:0.1:0.05:50", protect=("skellam:2.0:40:3.0",), **settings):
    _, plan = resolved(
        Experiment(method, data=DATA, rounds=ROUNDS, transport=transport, protect=protect, settings=settings)
    )
    world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(1))
    ledger = PrivacyLedger(1e-6, plan.method.mode)
    records = set_up(world)
    for _ in range(ROUNDS):
        records += one_round(world)
    for record in records:
        ledger.add(record.claim)
    return world, records, {line.observer: line for line in ledger.guarantees()}


@pytest.mark.parametrize("noise", ["skellam", "discrete-gaussian"])
@pytest.mark.parametrize("method", ["fedmf", "fedrec", "fcf", "fedmmf"])
def test_the_server_is_told_no_more_than_the_public(method, noise):
    _, _, lines = trained(method, protect=(f"{noise}:2.0:40:3.0",))
    server, release = lines[Observer.SERVER], lines[Observer.RELEASE]
    assert server.epsilon is not None
    assert server.epsilon == pytest.approx(release.epsilon)
    assert any("collude" in line for line in server.assumes)
    assert any("40 people who answered" in line for line in server.assumes)
    # Two sums under noise of two clip norms: no less than normal noise of that size, Renyi's slack more.
    ideal = epsilon_of(2**0.5 / 2.0, 1e-6)
    assert ideal < server.epsilon < 1.2 * ideal


def test_without_the_sum_a_share_alone_hides_little():
    """Against the server one share counts, of forty: noise of 2 / sqrt(40) clip norms on every report."""
    _, _, sent = trained("fedmf", transport="")
    ideal = epsilon_of(2**0.5 / (2.0 / 40**0.5), 1e-6)
    assert ideal < sent[Observer.SERVER].epsilon < 1.2 * ideal
    assert sent[Observer.RELEASE].epsilon < ideal / 5


def test_dp_privrec_leaves_the_noise_to_its_devices():
    """Adaptive clipping and its bit stay; the server's own noise goes, and its epsilon is finite."""
    world, records, lines = trained("dp-privrec", protect=("skellam:2.0:40:3.0",), clients=1.0, epochs=1)
    stages = world.method.exchanges[0].protections.stages
    assert [type(stage).__name__ for stage in stages] == ["AdaptiveClip", "NoiseShares"]
    assert not any(isinstance(stage, GaussianNoise) for stage in stages)
    assert lines[Observer.SERVER].epsilon == pytest.approx(lines[Observer.RELEASE].epsilon)
    assert records[0].facts.answered == 60
    assert world.server.protections["train"][0] != world.method.exchanges[0].protections.init()[0]


@pytest.mark.parametrize("settings", [{"noise": 2.0}, {"mode": "as-published"}])
def test_noise_at_the_server_beside_the_shares_is_refused(settings):
    with pytest.raises(TacitError, match="noise at the server beside"):
        trained("dp-privrec", clients=1.0, **settings)


def test_an_epsilon_that_the_shares_decide_is_refused_and_never_ignored():
    with pytest.raises(TacitError, match="leave epsilon out"):
        trained("dp-privrec", clients=1.0, epsilon=0.5)


def test_noise_in_shares_takes_the_place_of_the_grid_that_a_sum_came_with():
    """FedMMF sums by itself, on a grid of its own; a grid that somebody asked for is another matter."""
    world, _, _ = trained("fedmmf")
    stages = world.method.exchanges[0].protections.stages
    assert [type(stage).__name__ for stage in stages] == ["NoiseShares"]
    with pytest.raises(TacitError, match="leave the grid out"):
        trained("fedmf", protect=("grid:14:32", "skellam:2.0:40:3.0"))


def test_cohorts_drawn_by_coins_are_planned_for_their_smallest():
    """48 of 60 are asked in the mean, far fewer once in a million runs: their sum closes too early."""
    keys = {"transport": "secure-sum:0.1:0.05", "clients": 48, "epochs": 1}
    with pytest.raises(TacitError, match=r"coins may ask only .* tell the noise honest="):
        trained("dp-privrec", protect=("skellam:2.0:23:3.0",), **keys)
    trained("dp-privrec", protect=("skellam:2.0:23:3.0",), sampler="fixed", **keys)
    trained("dp-privrec", protect=("skellam:2.0:12:3.0",), **keys)
