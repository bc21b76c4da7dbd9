"""Accuracy against privacy against bytes: one method at several budgets, several methods in one picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.config import catalogue
from tacit.config.comparison import Contestant, compared, contestants
from tacit.config.experiment import Experiment, resolved
from tacit.errors import TacitError
from tacit.report.frontier import spent
from tacit.report.words import LOWER_IS_BETTER, for_whole_people, pooled
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.listener import Listener
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, one_round
from tacit.settings import settings_of

WHOLE = "full"
TABLE = "frontier.json"


@dataclass(frozen=True)
class Point:
    """One setting of one method: the epsilon asked for (``None``: it takes none), and how uploads shrink."""

    method: str
    epsilon: float | None
    shrunk: str
    contestant: Contestant


def numbers(text: str) -> list[float]:
    """Epsilons from ``1,2,4,8``.

    Example:
        >>> numbers("1,2.5")
        [1.0, 2.5]
    """
    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise TacitError(f"--epsilon {part.strip() or text!r} is no budget", "write --epsilon 1,2,4,8")
        found.append(value)
    return list(dict.fromkeys(found))


def shrinking(text: str) -> list[str]:
    """Ways to shrink uploads, from ``full,half,int8,topk:0.1``.

    Example:
        >>> shrinking("full,half")
        ['full', 'half']
    """
    found = [part.strip() for part in text.split(",") if part.strip()] or [WHOLE]
    for part in found:
        if part.replace(".", "").isdigit():
            raise TacitError(
                f"--bytes {part} is a number", "name ways to shrink uploads: --bytes full,half,int8,topk:0.1"
            )
        if part != WHOLE:
            catalogue.protection(part)
    return list(dict.fromkeys(found))


def points(
    names: Sequence[str], base: Experiment, epsilons: Sequence[float], ways: Sequence[str]
) -> list[Point]:
    """Every method at every budget and in every way; the one with the largest budget first.

    A method without a setting called ``epsilon`` is one point of unbounded (or its own) epsilon.
    """
    found = []
    for one in contestants(names, base, beside=False):
        takes = _takes_epsilon(one.experiment.method) and "epsilon" not in one.experiment.settings
        budgets: list[float | None] = [*sorted(epsilons, reverse=True)] if takes else [None]
        federated = one.experiment.method in catalogue.methods()
        for budget in budgets:
            for way in ways if federated else [WHOLE]:
                settings = dict(one.experiment.settings)
                if budget is not None:
                    settings["epsilon"] = budget
                protect = one.experiment.protect if way == WHOLE else (*one.experiment.protect, way)
                label = one.label + (f" ε={budget:g}" if budget is not None else "")
                label += "" if way == WHOLE else f" {way}"
                experiment = replace(one.experiment, settings=settings, protect=protect)
                found.append(Point(one.label, budget, way, Contestant(label, experiment)))
    return found


def _takes_epsilon(method: str) -> bool:
    known = catalogue.methods()
    return method in known and "epsilon" in settings_of(known[method])


def refusal(point: Point, data_dir: Path | None) -> str:
    """Why a point cannot be run (a budget or a protection that does not fit the method), or nothing."""
    try:
        _, plan = resolved(point.contestant.experiment, data_dir)
        if isinstance(plan.method, Method):
            federation = federation_of(plan.dataset, plan.split.train)
            world = new_world(plan.method, federation, SeededKeys(plan.seed), None, plan.delta)
            if point.shrunk != WHOLE:
                one_round(world)  # some ways refuse only what is really sent
    except TacitError as error:
        return str(error)
    return ""


def frontier(
    asked: Sequence[Point],
    seeds: int,
    out: Path,
    data_dir: Path | None,
    threads: int,
    listener: Listener,
) -> dict[str, Any]:
    """Run every point with every seed; finished runs in ``out`` are not run again.

    Returns:
        The JSON of ``tacit frontier``: the points with what they measured and promise, each marked if no
        other point is at least as good in accuracy, epsilon and bytes at once. Points with all data in one
        place (baselines, central twins) are beside the contest: they beat none, and are on no frontier.
    """
    refused = {point.contestant.label: refusal(point, data_dir) for point in asked}
    kept = [point for point in asked if not refused[point.contestant.label]]
    if not kept:
        first, why = next(iter(refused.items()))
        problem, _, remedy = why.partition("; ")
        raise TacitError(f"none of these points can be run ({first}: {problem})", remedy)
    table = compared([point.contestant for point in kept], seeds, out, data_dir, threads, listener)
    told = [_told(point, row) for point, row in zip(kept, table["rows"], strict=True)]
    primary = table["primary"]
    rivals = [line for line in told if not line["pooled"]]
    return {
        "primary": primary,
        "reference": table["reference"],
        "seeds": seeds,
        "pairs": table["pairs"],
        "points": [
            {**line, "frontier": not line["pooled"] and not _beaten(line, rivals, primary)} for line in told
        ],
        "refused": [
            {"point": point.contestant.label, "why": refused[point.contestant.label]}
            for point in asked
            if refused[point.contestant.label]
        ],
    }


def _told(point: Point, row: Mapping[str, Any]) -> dict[str, Any]:
    sides = {observer: line["epsilon"] for observer, line in for_whole_people(row["privacy"]).items()}
    return {
        "point": point.contestant.label,
        "method": point.method,
        "asked_epsilon": point.epsilon,
        "shrunk": point.shrunk,
        "epsilon": {side: sides[side] for side in ("server", "release") if side in sides},
        "bytes": row["traffic"]["up_bytes_per_client_round"],
        "pooled": pooled(row),
        "metrics": row["metrics"],
        "seconds": row["seconds"]["train"],
        "p": row["p"],
        "runs": row["runs"],
    }


def _beaten(point: Mapping[str, Any], others: Sequence[Mapping[str, Any]], primary: str) -> bool:
    """Whether another is at least as good in everything, and better in something."""
    sign = 1.0 if primary in LOWER_IS_BETTER else -1.0

    def costs(one: Mapping[str, Any]) -> tuple[float, float, float]:
        return sign * one["metrics"][primary]["mean"], spent(one), one["bytes"]

    mine = costs(point)
    return any(
        all(theirs <= own for theirs, own in zip(costs(other), mine, strict=True)) and costs(other) != mine
        for other in others
        if other is not point
    )
