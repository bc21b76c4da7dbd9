"""Accuracy against true bytes for every way of sending less (DP-SUB's family; the paper has no such figure).

One seed of ML-100K with the published recipe. After every few rounds the model is evaluated and the bytes
that crossed so far are noted, set-up included: so methods are compared at equal bytes, not at equal rounds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.data import load
from tacit.reproduce.dp_sub import DP_FEDMF, FEDMF, SUB, Row, plan_of, popularity
from tacit.reproduce.pictures import picture_file
from tacit.reproduce.table import Cell, Options, Reproduction
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import Plan, evaluate_plan, federation_of
from tacit.runtime.simulate import new_world, one_round, set_up
from tacit.split import split

METRICS = ("hr@10[99]", "ndcg@10[99]")
DATA, ROUNDS, QUICK_ROUNDS, POINTS = "ml-100k", 400, 30, 10
BUDGETS = (0.25, 0.5, 1.0)  # shares of what the plain method needs in all
QUIET = {"noise": "none"}
ROWS = (
    FEDMF,
    replace(FEDMF, label="FedMF half", protect=("half",)),
    replace(FEDMF, label="FedMF int8", protect=("int8:random",)),
    replace(FEDMF, label="FedMF topk:0.1", protect=("topk:0.1",)),
    replace(FEDMF, label="FedMF svd:4", protect=("svd:4",)),
    replace(DP_FEDMF, label="FedMF DGC 0.1", settings={**QUIET, "share": 0.1}),
    replace(SUB, label="FedMF-Sub", settings=QUIET),
    replace(SUB, label="FedMF-Sub int8", settings=QUIET, protect=("int8:random",)),
    DP_FEDMF,
    replace(DP_FEDMF, label="DP-FedMF int8", protect=("int8:random",)),
    replace(DP_FEDMF, label="DP-FedMF topk:0.5", protect=("topk:0.5",)),
    replace(DP_FEDMF, label="DP-FedMF svd:16", protect=("svd:16",)),
    SUB,
    replace(SUB, label="Priv-FedMF-Sub int8", protect=("int8:random",)),
)


@dataclass(frozen=True)
class Point:
    """Where a method stands after some rounds: bytes sent by and to all clients so far, and its accuracy."""

    round: int
    up: int
    down: int
    metrics: Mapping[str, float]

    @property
    def total(self) -> int:
        """Bytes both ways."""
        return self.up + self.down


def _curve(plan: Plan, every: int) -> tuple[Point, ...]:
    method = plan.method
    assert isinstance(method, Method)
    world = new_world(method, federation_of(plan.dataset, plan.split.train), SeededKeys(1), plan.execution)
    records, points = list(set_up(world)), []
    up, down = (sum(getattr(record.traffic, way) for record in records) for way in ("up", "down"))
    for round in range(1, method.rounds + 1):
        records = one_round(world)
        up, down = up + sum(r.traffic.up for r in records), down + sum(r.traffic.down for r in records)
        if round % every == 0 or round == method.rounds:
            scorer = world.method.model.scorer(world.server.shared, world.private)
            points.append(Point(round, up, down, evaluate_plan(plan, scorer, METRICS).metrics))
    return tuple(points)


def within(points: Sequence[Point], budget: float) -> Point | None:
    """The last point that a budget of bytes reaches.

    Example:
        >>> points = [Point(1, 5, 5, {}), Point(2, 10, 10, {})]
        >>> within(points, 15).round, within(points, 3)
        (1, None)
    """
    reached = [point for point in points if point.total <= budget]
    return reached[-1] if reached else None


def _cells(row: Row, points: Sequence[Point], whole: int) -> Iterable[Cell]:
    for metric in METRICS:
        for share in BUDGETS:
            found = within(points, share * whole * 1.0001)
            ours = None if found is None else round(found.metrics[metric], 4)
            note = "" if found is None else f"after {found.round} rounds"
            yield Cell(row.label, f"{metric} at {share * whole / 1e6:.0f} MB", None, ours, note)
        yield Cell(row.label, f"{metric} in the end", None, round(points[-1].metrics[metric], 4))
    yield Cell(row.label, "MB up", None, round(points[-1].up / 1e6, 1))
    yield Cell(row.label, "MB down", None, round(points[-1].down / 1e6, 1))


def bytes_table(options: Options) -> Reproduction:
    """Every row's curve, read off at equal bytes."""
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    dataset = load(DATA, options.data_dir)
    parts = split(dataset, "leave-last-out", seed=1)
    options.listener.stage("bytes", len(ROWS))
    curves: dict[str, tuple[Point, ...]] = {}
    for number, row in enumerate(ROWS, 1):
        plan = plan_of(row, DATA, dataset, parts, replace(options, quick=False))
        assert isinstance(plan.method, Method)
        plan = replace(plan, method=replace(plan.method, rounds=rounds))
        curves[row.label] = _curve(plan, max(1, rounds // POINTS))
        options.listener.step(number, {})
    whole = curves[FEDMF.label][-1].total
    cells = [cell for row in ROWS for cell in _cells(row, curves[row.label], whole)]
    known = {cell.column: cell.ours for cell in popularity(DATA, dataset, parts)}
    cells += [Cell("popularity", f"{metric} in the end", None, known[metric]) for metric in METRICS]
    notes = (
        f"{DATA}, the published recipe, {rounds} rounds, one seed; bytes are encoded lengths, both ways, "
        "set-up included; a budget counts what all clients sent and received",
        "compressors act on what devices send: what they receive stays whole, but for sub-models",
        "DGC: 0.1 of the entries travel after 4 rounds, the device remembers the rest (no momentum)",
        *(("quick: " + f"{rounds} rounds in place of {ROUNDS}",) if options.quick else ()),
    )
    title = "Accuracy at equal bytes (not in the paper)"
    baseline = known[METRICS[1]]
    return Reproduction("dp-sub/bytes", title, tuple(cells), notes, lambda path: draw(curves, baseline, path))


def draw(curves: Mapping[str, Sequence[Point]], popularity: float | None, path: Path) -> None:
    """The picture: NDCG against bytes, sent and both ways, without and with noise.

    Raises:
        TacitError: matplotlib is missing, or the file's ending is no picture's.
    """
    noisy = [name for name in curves if name.startswith(("DP-", "Priv-"))]
    kinds = (([name for name in curves if name not in noisy], "no noise"), (noisy, "published noise"))

    def panels(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - as all drawings are called
        del narrow
        for line, (names, what) in zip(figure.subplots(2, 2, sharey="row"), kinds, strict=True):
            for axes, way in zip(line, ("up", "total"), strict=True):
                _panel(axes, {name: curves[name] for name in names}, way, popularity)
                axes.set_title(what, loc="left")
            line[0].set_ylabel(METRICS[1])
            line[0].legend(fontsize=8)

    picture_file(panels, path, (11, 8.5))


def _panel(axes: Any, curves: Mapping[str, Sequence[Point]], way: str, popularity: float | None) -> None:
    for number, (name, points) in enumerate(curves.items()):
        axes.plot(
            [getattr(point, way) / 1e6 for point in points],
            [point.metrics[METRICS[1]] for point in points],
            marker="osD^vP*X"[number % 8], ms=4, lw=1.4, color=f"C{number}", label=name,
        )  # fmt: skip
    if popularity is not None:
        axes.axhline(popularity, color="0.5", lw=1, ls="--", label="popularity")
    axes.set_xscale("log")
    axes.set_xlabel("MB sent by all clients" if way == "up" else "MB sent and received by all clients")


TABLES = {"dp-sub/bytes": bytes_table}
