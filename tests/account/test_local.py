import pytest

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Unit
from tacit.account.local import keep_probability, pure_total, randomised_bits, reports
from tacit.errors import TacitError

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize(
    ("per_round", "rounds", "total"),
    [(100, 1, 250.0), (250, 1, 625.0), (100, 20, 5000.0), (250, 20, 12_500.0)],
)
def test_reports_add_up_over_a_run(per_round, rounds, total):
    assert pure_total(2.5, per_round, rounds) == total
    assert epsilon([reports(2.5, per_round)] * rounds, 0, RO).value == pytest.approx(total)


@pytest.mark.parametrize(
    ("unit", "adjacency", "items", "total"),
    [
        (Unit.USER, RO, 1682, 3364.0),
        (Unit.USER, AR, 3900, 7800.0),
        (Unit.INTERACTION, AR, 1682, 2.0),
        (Unit.INTERACTION, RO, 1682, 4.0),
        (Unit.INTERACTION, RO, 1, 2.0),
    ],
)
def test_the_epsilon_of_a_bit_is_not_that_of_a_person(unit, adjacency, items, total):
    event = randomised_bits(2.0, items, unit, adjacency)
    assert epsilon([event], 0, adjacency).value == pytest.approx(total)


def test_fresh_draws_add_up():
    fresh = randomised_bits(2.0, 1682, Unit.INTERACTION, AR, draws=42)
    assert epsilon([fresh], 0, AR).value == pytest.approx(84.0)


def test_odds_of_the_truth():
    assert keep_probability(2.0) == pytest.approx(0.881, abs=5e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pure_total(0.0, 1),
        lambda: pure_total(1.0, 0),
        lambda: pure_total(1.0, 1, 0),
        lambda: reports(1.0, 0),
        lambda: randomised_bits(1.0, 0, Unit.USER, AR),
        lambda: randomised_bits(1.0, 5, Unit.USER, AR, draws=0),
        lambda: keep_probability(-1.0),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(TacitError):
        make()
