import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account import losses, renyi
from tacit.account.accountant import Epsilon, epsilon, epsilon_of_claims
from tacit.account.atoms import atoms
from tacit.account.claim import Adjacency, Claim, Observer, Unit
from tacit.account.events import (
    Composed,
    FixedSize,
    Gaussian,
    NonPrivate,
    Nothing,
    Poisson,
    PureLocal,
    RandomisedResponse,
    Repeated,
    Sampled,
    Shuffled,
    Skellam,
    UnsupportedEvent,
)
from tacit.account.gaussian import epsilon_of
from tacit.errors import TacitError

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize("clip", [1.0, 40.0])
def test_unsampled_gaussian_is_exact_and_under_every_accountant(clip, adjacency):
    event = Gaussian(2 * clip, clip)
    exact = epsilon_of(adjacency.reach / 2, 1e-6)
    assert epsilon([event], 1e-6, adjacency).value == pytest.approx(exact, rel=1e-9)
    assert losses.epsilon(atoms([event]), 1e-6, adjacency) == pytest.approx(exact, rel=1e-3)
    assert exact <= renyi.epsilon(atoms([event]), 1e-6, adjacency) <= 1.1 * exact


def test_many_unsampled_rounds_are_one_gaussian():
    spent = epsilon([Gaussian(20.0, 1.0)] * 400, 1e-6, AR)
    assert spent.value == pytest.approx(epsilon_of(1.0, 1e-6), rel=1e-9)
    assert spent.accountant == "closed form"


def test_one_leak_spoils_the_run_and_says_which():
    spent = epsilon([Gaussian(1.0, 1.0)] * 3 + [NonPrivate("counts were sent in the clear")], 1e-6, AR)
    assert spent.value == math.inf
    assert spent.to_json()["epsilon"] is None
    assert spent.to_json()["reason"] == "counts were sent in the clear"


def test_nothing_seen_costs_nothing():
    assert epsilon([], 1e-6, AR).value == 0
    assert epsilon([Nothing()] * 5, 1e-6, RO).value == 0


def test_delta_zero_is_pure_composition():
    assert epsilon([Repeated(PureLocal(2.5), 100)] * 20, 0, RO).value == pytest.approx(5000)
    spent = epsilon([PureLocal(1.0), Gaussian(1.0, 1.0)], 0, RO)
    assert spent.value == math.inf
    assert "delta zero" in spent.reason


def test_the_order_of_rounds_does_not_matter():
    a, b = Sampled(Gaussian(1.0, 1.0), Poisson(0.05)), Sampled(Gaussian(1.5, 1.0), Poisson(0.1))
    first = epsilon([a] * 10 + [b] * 5, 1e-6, AR).value
    assert epsilon([b, a] * 5 + [Repeated(a, 5)], 1e-6, AR).value == pytest.approx(first, rel=1e-9)


def test_distributed_noise_is_close_to_the_gaussian_of_its_variance():
    scale = 2000.0
    integer = Skellam((2 * scale) ** 2, scale, scale**1.5)
    spent = epsilon([Repeated(Sampled(integer, Poisson(0.1)), 50)], 1e-6, AR)
    gaussian = renyi.epsilon({Sampled(Gaussian(2.0, 1.0), Poisson(0.1)): 50}, 1e-6, AR)
    assert spent.accountant == "Rényi"
    assert gaussian <= spent.value <= 1.6 * gaussian


def test_a_mix_takes_the_better_of_both_ways():
    shuffled, integer = Shuffled(1.0, 5000), Skellam(400.0, 4.0, 16.0)
    mixed = epsilon([shuffled, integer], 1e-6, RO)
    halves = epsilon([shuffled], 5e-7, RO).value + epsilon([integer], 5e-7, RO).value
    assert mixed.value == pytest.approx(halves)
    assert "half of delta" in mixed.accountant
    noisy = epsilon([Gaussian(2.0, 1.0), integer], 1e-6, RO)
    together = renyi.epsilon({Gaussian(2.0, 1.0): 1, integer: 1}, 1e-6, RO)
    assert noisy.value == pytest.approx(together)


def test_a_pure_guarantee_is_never_made_worse():
    assert epsilon([RandomisedResponse(1.0, 1)], 1e-9, RO).value <= 1.0
    assert epsilon([Shuffled(1.0, 1)], 1e-9, RO).value <= 1.0


def test_what_must_be_believed_is_told():
    spent = epsilon([Sampled(Gaussian(2.0, 1.0), FixedSize(3, 10))], 1e-6, RO)
    assert any("secret" in line for line in spent.assumes)


@pytest.mark.parametrize("delta", [-1e-6, 1.0, math.nan, 1e-15])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(TacitError):
        epsilon([Gaussian(1.0, 1.0)], delta, AR)


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (Sampled(Gaussian(1.0, 1.0), FixedSize(1, 10)), AR),
        (Sampled(Skellam(9.0, 2.0, 4.0), Poisson(0.1)), RO),
        (Sampled(Shuffled(1.0, 10), Poisson(0.1)), RO),
    ],
)
def test_unanalysed_events_are_refused(event, adjacency):
    with pytest.raises(UnsupportedEvent):
        epsilon([event], 1e-6, adjacency)


@settings(max_examples=25, deadline=None)
@given(
    ratio=st.floats(0.7, 5.0),
    rate=st.floats(0.001, 0.9),
    rounds=st.integers(1, 200),
    fixed=st.booleans(),
)
def test_more_rounds_cost_more_and_more_noise_costs_less(ratio, rate, rounds, fixed):
    sampling = FixedSize(max(1, int(1000 * rate)), 1000) if fixed else Poisson(rate)

    def cost(noise, times):
        counts = {Sampled(Gaussian(noise, 1.0), sampling): times}
        return losses.epsilon(counts, 1e-6, RO, 5e-3)

    here = cost(ratio, rounds)
    assert cost(ratio, rounds + 50) >= here
    assert cost(1.2 * ratio, rounds) <= here


@settings(max_examples=15, deadline=None)
@given(ratio=st.floats(0.8, 3.0), rate=st.floats(0.01, 0.5), rounds=st.integers(1, 100))
def test_accountants_and_adjacencies_keep_their_order(ratio, rate, rounds):
    event = Sampled(Gaussian(ratio, 1.0), Poisson(rate))
    tight = losses.epsilon({event: rounds}, 1e-5, AR, 2e-3)
    assert tight <= renyi.epsilon({event: rounds}, 1e-5, AR) * 1.001 + 1e-3
    assert tight <= losses.epsilon({event: rounds}, 1e-5, RO, 2e-3)
    unsampled = epsilon([Repeated(event.event, rounds)], 1e-5, AR).value
    assert tight <= unsampled * 1.001 + 1e-2


def test_claims_of_a_run_add_up_per_observer():
    event = Sampled(Gaussian(2.0, 1.0), Poisson(0.1))
    claim = Claim.unbounded("raw updates").with_event(Observer.RELEASE, event, ("the server adds the noise",))
    run = [claim] * 20
    spent = epsilon_of_claims(run, Observer.RELEASE, 1e-6)
    assert spent.value == pytest.approx(epsilon([event] * 20, 1e-6, AR).value)
    assert "the server adds the noise" in spent.assumes
    assert epsilon_of_claims(run, Observer.SERVER, 1e-6).reason == "raw updates"
    assert epsilon_of_claims([], Observer.SERVER, 1e-6) == Epsilon(0.0, 1e-6, "nothing was seen")


def test_claims_about_different_things_do_not_add_up():
    with pytest.raises(TacitError):
        epsilon_of_claims([Claim.unbounded("a"), Claim.unbounded("a", Unit.INTERACTION)], Observer.PEER, 1e-6)


def test_update_and_bit_cost_what_one_release_of_their_noise_costs():
    both = Sampled(Composed((Gaussian(3.0, 1.0), Gaussian(1.5, 0.5))), Poisson(0.05))
    one = Sampled(Gaussian((1 / 9 + 1 / 9) ** -0.5, 1.0), Poisson(0.05))
    found = [epsilon([Repeated(event, 100)], 1e-6, AR).value for event in (both, one)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_numerical_libraries_load_on_first_use_only():
    code = (
        "import sys, tacit.account.accountant, tacit.account.calibrate, tacit.account.local;"
        "import tacit.account.skellam, tacit.account.adaptive, tacit.account.shuffle;"
        "sys.exit(bool({'scipy', 'dp_accounting', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
