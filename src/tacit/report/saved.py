"""What a report reads of run folders: finished results, curves, ledgers, attacks, and values per person."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.evaluate.intervals import Interval, bootstrap, linearised
from tacit.ledger.record import Traffic
from tacit.report.words import data_name
from tacit.rng import SeededKeys
from tacit.runtime.checkpoint import load
from tacit.runtime.folder import OWN_DATA, RunFolder, readable
from tacit.types import Array, Floats

TABLE = "compare.json"
ATTACKS = "audit.json"
PER_USER = "per_user.safetensors"


@dataclass(frozen=True)
class Crossed:
    """What one exchange sent in all its rounds: bytes by kind, and how many messages of clients that was."""

    exchange: str
    traffic: Traffic
    answered: int
    rounds: int

    @property
    def kinds(self) -> dict[str, int]:
        """Bytes by kind; headers are what is neither an id nor a value (framing, seals, set-up of sums)."""
        up = self.traffic.up
        told = self.traffic.ids_up + self.traffic.values_up
        return {
            "ids (which items)": self.traffic.ids_up,
            "values": self.traffic.values_up,
            "headers and seals": max(0, up - told),
            "letters to other clients": self.traffic.letters_out,
            "received from the server": self.traffic.down,
            "received from other clients": self.traffic.letters_in,
        }


@dataclass(frozen=True)
class Flow:
    """Bytes that all people sent and received in each round, in all exchanges."""

    rounds: Sequence[int] = ()
    sent: Sequence[int] = ()
    received: Sequence[int] = ()


@dataclass(frozen=True)
class Saved:
    """One finished run, read from its folder."""

    result: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]] = ()
    config: str = ""
    per_user: Mapping[str, Array] = field(default_factory=dict)
    crossed: Sequence[Crossed] = ()
    flow: Flow = field(default_factory=Flow)
    audit: Mapping[str, Any] | None = None
    keys: SeededKeys = field(default_factory=lambda: SeededKeys(0))

    @classmethod
    def of(cls, path: Path) -> "Saved":
        """Read a run's folder; one clear line where it is none, or not finished."""
        folder = RunFolder.opened(path)
        audit = path / ATTACKS
        ledger = folder.lines("ledger.jsonl")
        return cls(
            result=folder.result(),
            curve=folder.lines("metrics.jsonl"),
            config=(path / "config.toml").read_text("utf-8"),
            per_user=per_user(path),
            crossed=_crossed(ledger),
            flow=_flow(ledger),
            audit=_json(audit) if audit.exists() else None,
        )


def _json(file: Path) -> dict[str, Any]:
    with readable(file):
        return json.loads(file.read_text("utf-8"))


def per_user(run: Path) -> Mapping[str, Array]:
    """What a run's evaluation found of each person, by metric."""
    file = run / PER_USER
    return load(file).arrays if file.exists() else {}


def _crossed(lines: Sequence[Mapping[str, Any]]) -> list[Crossed]:
    """Set-up (round -1) apart, then every exchange by name."""
    found: dict[str, Crossed] = {}
    for line in lines:
        name = f"{line['exchange']} (set-up)" if line["round"] < 0 else line["exchange"]
        old = found.get(name, Crossed(name, Traffic(), 0, 0))
        traffic = old.traffic + Traffic(**line["traffic"])
        found[name] = Crossed(name, traffic, old.answered + line["answered"], old.rounds + 1)
    return list(found.values())


def _flow(lines: Sequence[Mapping[str, Any]]) -> Flow:
    """The rounds in order; set-up (round -1) is none of them."""
    found: dict[int, Traffic] = {}
    for line in lines:
        if line["round"] >= 0:
            found[line["round"]] = found.get(line["round"], Traffic()) + Traffic(**line["traffic"])
    rounds = sorted(found)
    each = [found[round] for round in rounds]
    return Flow(
        [round + 1 for round in rounds],
        [one.up + one.letters_out for one in each],
        [one.down + one.letters_in for one in each],
    )


@dataclass(frozen=True)
class PerPerson:
    """One metric of each person, people ascending.

    ``behind`` is how many ratings a value is of, where the metric is a mean over ratings; ``squared`` says
    that it is the root of a mean of squares.
    """

    people: Array
    own: Floats
    behind: Floats | None
    squared: bool

    def of(self, people: Array) -> Floats:
        """For some of the people, numbers whose mean is the metric over them."""
        place = np.searchsorted(self.people, people)
        behind = None if self.behind is None else self.behind[place]
        return linearised(self.own[place], weights=behind, squared=self.squared)


@dataclass(frozen=True)
class Subject:
    """One line of a report: a label, and the runs (seeds) behind it."""

    label: str
    runs: tuple[Saved, ...]

    @property
    def first(self) -> Saved:
        """The run whose details are told."""
        return self.runs[0]

    def metrics(self) -> dict[str, float]:
        """Each metric, mean over the runs."""
        values = {name: self.each(name) for name in self.first.result["metrics"]}
        return {name: float(np.mean(each)) for name, each in values.items() if each}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The runs' seeds."""
        return tuple(run.result["seed"] for run in self.runs)

    @property
    def audited(self) -> Saved | None:
        """The first run that was attacked."""
        return next((run for run in self.runs if run.audit is not None), None)

    def each(self, metric: str) -> list[float]:
        """The metric in each run; empty unless all have it."""
        values = [run.result["metrics"].get(metric) for run in self.runs]
        return [] if None in values else [float(value) for value in values]

    def spread(self, metric: str) -> float | None:
        """The metric's standard deviation over the runs; none of a single one."""
        values = self.each(metric)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def per_person(self, metric: str) -> PerPerson | None:
        """Each person's mean over the runs that judged them; none where the metric is not one of people."""
        tables = [run.per_user for run in self.runs]
        if any(f"{metric}/users" not in table for table in tables):
            return None
        squared = metric == "rmse"
        users = np.concatenate([table[f"{metric}/users"] for table in tables])
        values = np.concatenate([table[f"{metric}/values"] for table in tables]).astype(np.float64)
        weights = np.concatenate(
            [table.get(f"{metric}/weights", np.ones(len(table[f"{metric}/users"]))) for table in tables]
        ).astype(np.float64)
        people, place = np.unique(users, return_inverse=True)
        behind = np.bincount(place, weights, minlength=len(people)).astype(np.float64)
        means = np.bincount(place, weights * (values**2 if squared else values)) / behind
        rated = any(f"{metric}/weights" in table for table in tables)
        return PerPerson(people, np.sqrt(means) if squared else means, behind if rated else None, squared)

    def interval(self, metric: str) -> Interval | None:
        """The metric's bootstrap interval over people (each one's mean over the runs), where one exists."""
        found = self.per_person(metric)
        if found is None:
            return None
        return bootstrap(found.own, keys=self.first.keys, weights=found.behind, squared=found.squared)


def subjects(paths: Sequence[Path]) -> list[Subject]:
    """The runs of the folders given: a run's folder is one, a comparison's folder (``compare.json``) several.

    Runs that differ in their seed alone are one subject.

    Raises:
        TacitError: A folder is neither, nothing is given, or data or splits differ.
    """
    found: list[tuple[Subject, Path]] = []
    for path in paths:
        table = path / TABLE
        if table.is_file():
            for row in _json(table)["rows"]:
                runs = tuple(Saved.of(_beside(path, run)) for run in row["runs"])
                found.append((Subject(row["method"], runs), path))
        else:
            saved = Saved.of(path)
            found.append((Subject(_label(saved.result), (saved,)), path))
    if not found:
        raise TacitError("a report of no run", "give the folder that a run printed")
    _refuse_unlike(found)
    return _told_apart(_by_seed(found))


def _refuse_unlike(found: Sequence[tuple[Subject, Path]]) -> None:
    """Accuracy on other data or another split is no number to stand beside."""
    first = found[0][0].first.result
    for subject, path in found:
        for key in ("data", "split"):
            theirs, ours = (data_name(result[key]) for result in (subject.first.result, first))
            if theirs != ours:
                raise TacitError(
                    f"{path}: its {key} is {theirs}, the first run's {ours}", "report them apart"
                )


def _by_seed(found: Sequence[tuple[Subject, Path]]) -> list[tuple[Subject, Path]]:
    """Runs that differ in their seed alone become one subject of several seeds."""
    kept: dict[str, tuple[Subject, Path]] = {}
    for number, (one, path) in enumerate(found):
        own = str(number)
        if len(one.runs) == 1 and one.first.config and not one.first.result["data"].startswith(OWN_DATA):
            config = tomllib.loads(one.first.config)
            own = json.dumps({**config, "seed": None}, sort_keys=True)
            before = kept.get(own)
            if before is not None and one.seeds[0] not in before[0].seeds:
                kept[own] = (Subject(before[0].label, (*before[0].runs, *one.runs)), before[1])
                continue
            own += "" if before is None else str(number)
        kept[own] = (one, path)
    return list(kept.values())


def _beside(table: Path, run: str) -> Path:
    """A run's folder where the comparison wrote it, even if the whole was moved since."""
    moved = table / Path(run).name
    return moved if moved.exists() else Path(run)


def _label(result: Mapping[str, Any]) -> str:
    twin = result.get("settings", {}).get("twin", "none")
    return result["method"] if twin in {"none", None} else f"{result['method']}, {twin} twin"


def _told_apart(found: Sequence[tuple[Subject, Path]]) -> list[Subject]:
    """Equal labels get the name of their folder."""
    labels = [one.label for one, _ in found]
    return [
        one if labels.count(one.label) == 1 else Subject(f"{one.label} ({path.name})", one.runs)
        for one, path in found
    ]
