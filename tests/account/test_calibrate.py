import json
from pathlib import Path

import pytest

from tacit.account.accountant import epsilon
from tacit.account.calibrate import Schedule, budget, epsilon_for, noise_for, plan, rounds_within
from tacit.account.claim import Adjacency
from tacit.account.events import Gaussian, NonPrivate, Nothing, PureLocal, Repeated, Skellam
from tacit.errors import TacitError

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
GRID = json.loads((Path(__file__).parent / "goldens" / "noise_grid.json").read_text())


def check_grid(rows):
    for row in rows:
        base = Schedule(GRID["users"], row["cohort"], row["rounds"], GRID["delta"])
        found = plan(base, [row["cohort"]], [row["rounds"]], GRID["epsilons"])
        # Two printed decimals (or three digits), and half a percent of the table's own search.
        for line, printed in zip(found, row["noise"], strict=True):
            tolerance = (0.005 if printed < 10 else 0.05 if printed < 100 else 0.5) + 0.005 * printed
            assert line.noise == pytest.approx(printed, abs=tolerance)
            assert line.noise_on_mean == pytest.approx(line.noise / row["cohort"])


def test_part_of_the_noise_grid():
    check_grid([GRID["rows"][at] for at in (1, 4, 8, 10)])


@pytest.mark.slow
def test_the_whole_noise_grid():
    check_grid(GRID["rows"])


@pytest.mark.parametrize(
    ("sampler", "adjacency", "target"),
    [
        ("poisson", AR, 0.3),
        ("poisson", RO, 4.0),
        ("fixed", RO, 1.0),
        ("fixed", RO, 20.0),
        ("none", AR, 2.0),
        ("none", RO, 2.0),
    ],
)
def test_noise_and_epsilon_invert_each_other(sampler, adjacency, target):
    run = Schedule(1000, 50, 100, 1e-6, sampler, adjacency)
    reached = epsilon_for(noise_for(target, run), run).value
    assert 0.999 * target <= reached <= target


def test_larger_cohorts_need_less_noise_on_the_mean():
    found = plan(Schedule(4832, 100, 300, 1e-6), [100, 400, 1600], [300], [2.0])
    means = [row.noise_on_mean for row in found]
    assert means == sorted(means, reverse=True)


def test_a_budget_lasts_exactly_so_many_rounds():
    run = Schedule(1000, 50, 1, 1e-5, "fixed", RO)
    event = run.event(2.0)
    rounds = rounds_within(3.0, event, run.delta, run.adjacency)
    assert epsilon([Repeated(event, rounds)], run.delta, RO).value <= 3.0
    beyond = epsilon([Repeated(event, rounds + 1 + rounds // 500)], run.delta, RO).value
    assert beyond > 3.0


def test_rounds_go_on_from_what_was_spent():
    run = Schedule(1000, 50, 1, 1e-5)
    event = run.event(1.5)
    whole = rounds_within(2.0, event, run.delta, AR)
    rest = rounds_within(2.0, event, run.delta, AR, spent=[event] * 40)
    assert rest + 40 == pytest.approx(whole, abs=max(2, whole // 500))
    assert rounds_within(2.0, event, run.delta, AR, spent=[event] * (2 * whole)) == 0


def test_rounds_of_other_kinds():
    assert rounds_within(1.0, NonPrivate("raw"), 1e-6, AR) == 0
    assert rounds_within(1.0, Nothing(), 1e-6, AR, limit=7) == 7
    assert rounds_within(1.0, Gaussian(1e9, 1.0), 1e-6, AR, limit=100) == 100
    assert rounds_within(100.0, PureLocal(2.5), 1e-6, RO) >= 40
    skellam = rounds_within(3.0, Skellam(1e6, 100.0, 1e4), 1e-6, AR)
    assert (
        epsilon([Repeated(Skellam(1e6, 100.0, 1e4), skellam + 1)], 1e-6, AR).value
        > 3.0
        >= epsilon([Repeated(Skellam(1e6, 100.0, 1e4), skellam)], 1e-6, AR).value
    )


def test_the_contract_s_json_both_ways():
    given_noise = budget(4800, 30, 1000, 1e-6, "poisson", "add-remove", noise=2.0)
    assert given_noise["epsilon"] == pytest.approx(0.436, abs=1e-3)
    assert json.loads(json.dumps(given_noise, allow_nan=False)) == given_noise
    given_epsilon = budget(4800, 30, 1000, 1e-6, "poisson", "add-remove", epsilon=given_noise["epsilon"])
    assert given_epsilon["noise"] == pytest.approx(2.0, rel=2e-3)
    assert given_epsilon["epsilon"] <= given_noise["epsilon"]
    assert set(given_noise) >= {"noise", "epsilon", "accountant", "delta", "sampler", "adjacency", "assumes"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"cohort": 0},
        {"cohort": 101},
        {"rounds": 0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"sampler": "possion"},
        {"sampler": "fixed"},
        {"adjacency": "replace"},
        {"noise": 0.0},
        {"noise": -1.0},
        {"noise": float("nan")},
        {"noise": None},
        {"epsilon": 1.0},
        {"noise": None, "epsilon": -1.0},
        {"noise": None, "epsilon": float("inf")},
    ],
)
def test_impossible_budgets_are_refused_in_one_line(wrong):
    settings = {"users": 100, "cohort": 10, "rounds": 5, "delta": 1e-6, "noise": 1.0} | wrong
    with pytest.raises(TacitError) as caught:
        budget(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"noise": 1e300}, "noise of 1e\\+300"),
        ({"noise": 1e-200, "sampler": "none"}, "noise of 1e-200"),
        ({"epsilon": 1e9}, "budget of epsilon"),
        ({"noise": 100.0, "rounds": 100_000_000}, "rounds of a sample"),
    ],
)
def test_numbers_that_mean_nothing_are_refused_in_one_line(asked, told):
    with pytest.raises(TacitError, match=told):
        budget(**{"users": 4800, "cohort": 30, "rounds": 1000, "delta": 1e-6, **asked})


def test_noise_too_small_to_hide_in_a_crowd_counts_as_if_all_were_asked():
    """Sampling only helps, so the closed form of an unsampled run is a bound; a grid would overflow."""
    sampled, plain = (budget(4800, 30, 10, 1e-6, sampler=way, noise=1e-5) for way in ("poisson", "none"))
    assert sampled["epsilon"] == plain["epsilon"] > 1e9


def test_any_number_of_unsampled_rounds_is_one_closed_form():
    many = budget(4800, 30, 10**8, 1e-6, sampler="none", noise=1e4)["epsilon"]
    assert many == pytest.approx(budget(4800, 30, 1, 1e-6, sampler="none", noise=1.0)["epsilon"], rel=1e-6)
