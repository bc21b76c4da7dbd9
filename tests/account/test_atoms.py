import math

import pytest

from tacit.account.atoms import assumptions, atoms, check_adjacency, pure_epsilon
from tacit.account.claim import Adjacency
from tacit.account.events import (
    Composed,
    FixedSize,
    Gaussian,
    Laplace,
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

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def test_equal_rounds_are_counted_however_they_are_written():
    event = Sampled(Gaussian(1.0, 1.0), Poisson(0.1))
    expected = {event: 6}
    assert atoms([event] * 6) == expected
    assert atoms([Repeated(event, 6)]) == expected
    assert atoms([Repeated(Composed((event, Nothing(), event)), 2), event, event]) == expected


def test_update_and_bit_of_one_sample_stay_together():
    both = Composed((Gaussian(2.0, 1.0), Gaussian(1.5, 0.5)))
    ((found, times),) = atoms([Repeated(Sampled(both, Poisson(0.1)), 7)]).items()
    assert times == 7
    assert found.sampling == Poisson(0.1)
    assert (found.event.clip / found.event.noise_std) ** 2 == pytest.approx(1 / 4 + 1 / 9)


def test_unsampled_gaussians_join():
    ((found, times),) = atoms([Gaussian(2.0, 1.0)] * 8 + [Gaussian(3.0, 3.0)]).items()
    assert times == 1
    assert found.clip / found.noise_std == pytest.approx(math.sqrt(3.0))


def test_a_sample_of_everybody_is_no_sample():
    assert atoms([Sampled(Gaussian(2.0, 1.0), FixedSize(5, 5))]) == atoms([Gaussian(2.0, 1.0)])
    assert atoms([Sampled(Skellam(4.0, 1.0, 1.0), Poisson(1.0))]) == {Skellam(4.0, 1.0, 1.0): 1}


def test_sampling_repairs_nothing_that_was_never_private():
    assert atoms([Sampled(Composed((Gaussian(1.0, 1.0), NonPrivate("raw"))), Poisson(0.1))]) == {
        NonPrivate("raw"): 1
    }
    assert atoms([Sampled(Nothing(), Poisson(0.1))]) == {}


@pytest.mark.parametrize("inner", [Shuffled(1.0, 10), Sampled(Gaussian(1.0, 1.0), Poisson(0.5))])
def test_unanalysed_samples_are_refused(inner):
    with pytest.raises(UnsupportedEvent):
        atoms([Sampled(inner, Poisson(0.1))])


def test_fixed_cohorts_are_refused_under_add_remove():
    counts = {Sampled(Gaussian(1.0, 1.0), FixedSize(1, 10)): 1}
    check_adjacency(counts, RO)
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        check_adjacency(counts, AR)


@pytest.mark.parametrize(
    ("event", "adjacency", "epsilon"),
    [
        (Repeated(PureLocal(2.5), 2000), RO, 5000.0),
        (RandomisedResponse(2.0, 3900), RO, 7800.0),
        (Laplace(2.0, 1.0, 50), AR, 0.5),
        (Laplace(2.0, 1.0), RO, 1.0),
        (Sampled(PureLocal(1.0), Poisson(0.1)), RO, math.log(1 + 0.1 * (math.e - 1))),
        (Sampled(PureLocal(2000.0), FixedSize(1, 4)), RO, 2000 + math.log(0.25)),
        (Composed((PureLocal(1.0), Nothing(), PureLocal(0.5))), RO, 1.5),
        (Composed((PureLocal(1.0), Gaussian(1.0, 1.0))), RO, math.inf),
    ],
)
def test_pure_epsilons(event, adjacency, epsilon):
    assert pure_epsilon(event, adjacency) == pytest.approx(epsilon)


def test_assumptions_are_named_once():
    event = Sampled(Skellam(4.0, 1.0, 1.0), Poisson(0.1))
    lines = assumptions({event: 3, Sampled(Gaussian(1.0, 1.0), Poisson(0.1)): 2, Shuffled(1.0, 10): 1})
    assert len(lines) == len(set(lines)) == 4
    assert any("secret" in line for line in lines)
    assert any("shuffler is honest" in line for line in lines)
    assert any("share of the noise" in line for line in lines)
    assert assumptions({Gaussian(1.0, 1.0): 1}) == ()
