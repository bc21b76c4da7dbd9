"""What privacy costs PrivRec, and how the paper's own settings end."""

import math

import numpy as np
import pytest

from tacit.config.catalogue import resolved_settings
from tacit.errors import TacitError
from tacit.reproduce.privrec_privacy import (
    CLIPPED,
    FREE,
    LITERAL,
    OPEN,
    OWN,
    SENSIBLE,
    Outcome,
    _costs,
    affordable,
    clip_of,
    draw,
    ended,
    literal,
    median_norm,
    noise_of,
    rounds_to_zero,
    size_of,
    ways,
)
from tacit.reproduce.privrec_protocol import Row, case, world_of
from tacit.reproduce.table import Cell, Options

QUICK = Options(quick=True)
SMALL = {"clients": 20, "hidden": "4-3", "bins": 2, "epochs": 2}


@pytest.fixture(scope="module")
def demo():
    return case("demo:users=60,items=50,mean=14", 1, QUICK)


def test_the_paper_s_settings_end_in_ten_rounds_with_a_reason_and_s_where_it_was(demo):
    at = case("demo:users=80,items=60,mean=15", 1, QUICK)
    world = world_of(LITERAL, at, Options())
    assert noise_of(world) == pytest.approx(2 * 40 / 30 / math.sqrt(0.3))
    assert noise_of(world) * math.sqrt(size_of(world)) > 100 * median_norm(world)
    out = ended(world, at, most=10)
    assert out.rounds < 10
    assert "training diverged on" in out.stopped
    each = 2 / math.sqrt(0.7) / 30  # the noise on the share of bits, all of them one: S falls by 0.1 a round
    assert clip_of(world) == pytest.approx(40 - 0.1 * out.rounds, abs=5 * each * math.sqrt(out.rounds) + 1e-9)
    before = clip_of(world)
    again = ended(world, at, most=1)
    assert (again.rounds, clip_of(world)) == (out.rounds, before)
    assert out.hits is None or 0 <= out.hits <= 1


def test_the_literal_table_says_so(monkeypatch):
    monkeypatch.setattr("tacit.reproduce.privrec_privacy.DRAWS", 2)
    monkeypatch.setattr("tacit.reproduce.privrec_privacy.LITERAL_DATA", ("demo:users=80,items=60,mean=15",))
    cells = {cell.column: cell for cell in literal(QUICK).cells}
    assert cells["rounds finished of 10"].ours is not None
    assert cells["rounds finished of 10"].ours < 10
    assert "training diverged" in cells["rounds finished of 10"].note
    assert cells["noise on each number of the mean"].ours == 4.87


def test_the_printed_rule_brings_s_to_zero_near_the_expected_round():
    """40 / (rate (1 - 0.9)) rounds: 400 and 800."""
    for rate, expected in ((1.0, 400), (0.5, 800)):
        found = [rounds_to_zero(rate, seed) for seed in range(10)]
        assert np.mean(found) == pytest.approx(expected, rel=0.05)


def test_an_epsilon_buys_noise_and_clipping_alone_has_none(demo):
    row = Row("small", "dp-privrec", SMALL)
    worlds = {column: world_of(way, demo, QUICK) for column, way in ways(row, (1.0, 8.0))}
    assert list(worlds) == ["1", "8", CLIPPED, OPEN]
    assert noise_of(worlds["1"]) > noise_of(worlds["8"]) > 1e3 * noise_of(worlds[CLIPPED])
    assert noise_of(worlds[CLIPPED]) < 10 * FREE
    assert worlds[OPEN].method.exchanges[0].protections.stages == ()


def test_the_noise_told_is_the_noise_of_a_round(demo):
    """Nobody learns: a round is noise alone. Chi-square bounds at one in a million on either side."""
    from scipy import stats

    from tacit.runtime.simulate import one_round

    row = Row("still", "dp-privrec", {**SMALL, "rate": 1e-12, "noise": 1.5, "hidden": "64-32"})
    world = world_of(row, demo, QUICK)
    wanted, before = noise_of(world), world.server.shared
    one_round(world)
    step = np.concatenate([(world.server.shared[name] - before[name]).reshape(-1) for name in before])
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(step))
    assert low < np.sum((step / wanted) ** 2) < high


@pytest.mark.parametrize("row", [SENSIBLE, OWN], ids=lambda row: row.label)
def test_the_open_way_trains_the_same_network_without_privacy(row):
    ours = resolved_settings("dp-privrec", row.settings, "ml-1m")
    theirs = resolved_settings("privrec", dict(ways(row, ()))[OPEN].settings, "ml-1m")
    shared = set(ours) & set(theirs)
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
    assert (theirs["ids"], theirs["outer"], theirs["momentum"]) == (0, "plain", ours["momentum"])


def cells(hits):
    return [Cell(SENSIBLE.label, f"Hits@10, epsilon {name}", None, value) for name, value in hits.items()]


def test_what_is_affordable_is_read_off_the_table():
    free = {CLIPPED: 0.1, OPEN: 0.1}
    assert "from epsilon 2 on" in affordable(cells({"1": 0.05, "2": 0.091, "4": 0.1, **free}))
    assert "no epsilon" in affordable(cells({"1": 0.05, "8": 0.089, **free}))
    lucky = {"1": 0.095, "2": 0.05, "4": 0.091, "8": 0.1, **free}  # one good draw at 1 buys nothing
    assert "from epsilon 4 on" in affordable(cells(lucky))


def test_a_run_that_privacy_helped_is_said_to_be_above():
    found = {(SENSIBLE.label, name): [Outcome(1, hits)] for name, hits in
             (("2", 0.11), ("8", 0.08), (CLIPPED, 0.1), (OPEN, 0.1))}  # fmt: skip
    notes = {cell.column: cell.note for cell in _costs(SENSIBLE, found, (2.0, 8.0))}
    assert notes["Hits@10, epsilon 2"] == "10% above no privacy"
    assert notes["Hits@10, epsilon 8"] == "20% below no privacy"


def test_the_picture_is_drawn_and_unknown_endings_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    shown = cells({"1": 0.05, "2": 0.09, CLIPPED: 0.1, OPEN: 0.1})
    draw(shown, tmp_path / "dp.svg")
    assert (tmp_path / "dp.svg").read_text().count("<svg") == 1
    with pytest.raises(TacitError, match="end the name in"):
        draw(shown, tmp_path / "dp.unknown")
