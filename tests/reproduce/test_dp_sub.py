"""DP-SUB's tables: totals exactly as the paper counts them, accuracy within written tolerances."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tacit.account.local import keep_probability
from tacit.data import load
from tacit.errors import TacitError
from tacit.reproduce import dp_sub, dp_sub_bytes
from tacit.reproduce.dp_sub import DP_FEDMF, FEDMF, FEDNCF, METRICS, ROUNDS, plan_of
from tacit.reproduce.dp_sub_bytes import Point, draw, within
from tacit.reproduce.table import Options, tables
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, one_round, set_up
from tacit.schedule import Decaying
from tacit.server.step import Descent
from tacit.server.sub_model import Choosing
from tacit.split import split

GOLDENS = tomllib.loads((Path(__file__).parent / "goldens" / "dp_sub.toml").read_text())


def test_every_table_and_figure_is_there():
    figures = {f"dp-sub/fig{number}" for number in range(7, 17)}
    assert {"dp-sub/table2", "dp-sub/bytes", "dp-sub/fig9-ml-1m", "dp-sub/fig14-ml-1m"} | figures <= set(
        tables()
    )


@pytest.mark.data
@pytest.mark.parametrize("name", ["ml-100k", "ml-1m"])
@pytest.mark.parametrize("row", [FEDMF, DP_FEDMF, FEDNCF], ids=lambda row: row.label)
def test_totals_are_exactly_those_of_the_paper(real_data, name, row):
    """Items x numbers x clients x 400 rounds: what one round sends down, counted from the message itself."""
    dataset = load(name, real_data)
    parts = split(dataset, "leave-last-out", seed=1)
    plan = plan_of(row, name, dataset, parts, Options(real_data))
    assert isinstance(plan.method, Method)
    assert plan.method.rounds == ROUNDS
    federation = federation_of(plan.dataset, plan.split.train)
    exchange = plan.method.exchanges[0]
    shared = plan.method.model.shared(federation.catalogue, SeededKeys(1))
    numbers = sum(shared[table].size for table in ("items", "gmf", "mlp") if table in shared)
    asked = len(exchange.sampling.draw(federation.people, 0, SeededKeys(1)))
    padding = dp_sub.PADDING[name] * (160 if row is FEDNCF else 32)
    total = (numbers + padding) * asked * ROUNDS / 1e6
    assert round(total, 2) == GOLDENS[name][row.label]["total"]


@pytest.mark.data
@pytest.mark.parametrize(("name", "mean", "sd"), [("ml-100k", 547.0, 7.4), ("ml-1m", 1154.4, 8.0)])
def test_the_choice_has_the_size_that_the_mechanism_gives(real_data, name, mean, sd):
    """Items above the mean estimate, over draws from the closed form: binomials of lies and truths."""
    dataset = load(name, real_data)
    counts = np.bincount(dataset.interactions.items, minlength=dataset.items)
    people, keep = dataset.users, keep_probability(2.0)
    generator = np.random.default_rng(1)
    sizes = []
    for _ in range(200):
        told = generator.binomial(counts, keep) + generator.binomial(people - counts, 1 - keep)
        shared = {"selected": np.ones(dataset.items, "u1"), "frequency": np.zeros(dataset.items, "f4")}
        after, _ = Choosing(Descent(Decaying(1.0)), 2.0).step(
            shared, {"reports": {"bits": told / people}}, {}, 0
        )
        sizes.append(int(after["selected"].sum()))
    assert np.mean(sizes) == pytest.approx(mean, abs=4 * sd / np.sqrt(200) + 0.3)
    assert np.std(sizes) == pytest.approx(sd, rel=0.3)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("row", [FEDMF, DP_FEDMF], ids=lambda row: row.label)
def test_accuracy_on_ml_1m_is_the_papers(real_data, row):
    golden = GOLDENS["ml-1m"][row.label]
    dataset = load("ml-1m", real_data)
    parts = split(dataset, "leave-last-out", seed=1)
    found = dp_sub._run(plan_of(row, "ml-1m", dataset, parts, Options(real_data)))
    errors = np.array([found.metrics[name] for name in METRICS[:2]]) - [golden["hr"], golden["ndcg"]]
    assert np.abs(errors).max() <= GOLDENS["ml-1m"]["tolerance"]


def test_budgets_are_read_off_where_they_are_reached():
    points = [Point(1, 5, 10, {"m": 0.1}), Point(2, 10, 20, {"m": 0.2})]
    assert [within(points, budget) for budget in (10, 15, 29, 30)] == [None, points[0], points[0], points[1]]


def test_the_picture_is_drawn_and_unknown_endings_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    metrics: dict[str, float] = dict.fromkeys(dp_sub_bytes.METRICS, 0.2)
    curves = {name: [Point(1, 5, 10, metrics), Point(2, 10, 20, metrics)] for name in ("FedMF", "DP-FedMF")}
    draw(curves, 0.1, tmp_path / "bytes.svg")
    assert (tmp_path / "bytes.svg").read_text().count("<svg") == 1
    with pytest.raises(TacitError, match="end the name in"):
        draw(curves, 0.1, tmp_path / "bytes.unknown")


@pytest.mark.data
def test_an_equal_budget_compares_equal_bytes(real_data, monkeypatch):
    """The quick machinery on two rows: bytes of a sub-model are a third, and its set-up is counted."""
    monkeypatch.setattr(dp_sub_bytes, "ROWS", (FEDMF, dp_sub_bytes.ROWS[6]))
    monkeypatch.setattr(dp_sub_bytes, "QUICK_ROUNDS", 2)
    cells = dp_sub_bytes.bytes_table(Options(real_data, quick=True)).cells
    found = {(cell.row, cell.column): cell.ours for cell in cells}
    whole, part = found["FedMF", "MB down"], found["FedMF-Sub", "MB down"]
    assert whole is not None
    assert part is not None
    assert 0.25 < part / whole < 0.4


@pytest.mark.data
def test_bits_before_the_first_round_are_one_per_item(real_data):
    dataset = load("ml-100k", real_data)
    parts = split(dataset, "leave-last-out", seed=1)
    plan = plan_of(dp_sub.SUB, "ml-100k", dataset, parts, Options(real_data, quick=True))
    assert isinstance(plan.method, Method)
    world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(1))
    (asked,) = set_up(world)
    assert asked.traffic.up - 943 * (-(-1682 // 8)) < 943 * 40
    (first,) = one_round(world)
    assert first.traffic.ids_down == 100 * (-(-1682 // 8))
    assert first.traffic.values_down == 4 * first.traffic.numbers_down
