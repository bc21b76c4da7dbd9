"""What a report reads of run folders: finished results, curves, ledgers, attacks, and values per person."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.evaluate.intervals import Interval, bootstrap
from tacit.ledger.record import Traffic
from tacit.rng import SeededKeys
from tacit.runtime.checkpoint import load
from tacit.runtime.folder import RunFolder
from tacit.types import Array

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
        per_user = path / PER_USER
        audit = path / ATTACKS
        ledger = folder.lines("ledger.jsonl")
        return cls(
            result=folder.result(),
            curve=folder.lines("metrics.jsonl"),
            config=(path / "config.toml").read_text("utf-8"),
            per_user=load(per_user).arrays if per_user.exists() else {},
            crossed=_crossed(ledger),
            flow=_flow(ledger),
            audit=json.loads(audit.read_text("utf-8")) if audit.exists() else None,
        )


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
        names = self.first.result["metrics"]
        return {
            name: float(np.mean([run.result["metrics"][name] for run in self.runs]))
            for name in names
            if all(name in run.result["metrics"] for run in self.runs)
        }

    def interval(self, metric: str) -> Interval | None:
        """The metric's bootstrap interval over people (each one's mean over the runs), where one exists."""
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
        own = np.sqrt(means) if squared else means
        rated = any(f"{metric}/weights" in table for table in tables)
        return bootstrap(own, keys=self.first.keys, weights=behind if rated else None, squared=squared)


def subjects(paths: Sequence[Path]) -> list[Subject]:
    """The runs of the folders given: a run's folder is one, a comparison's folder (``compare.json``) several.

    Raises:
        TacitError: A folder is neither, or nothing is given.
    """
    found: list[Subject] = []
    for path in paths:
        table = path / TABLE
        if table.is_file():
            rows = json.loads(table.read_text("utf-8"))["rows"]
            found += [
                Subject(row["method"], tuple(Saved.of(_beside(path, run)) for run in row["runs"]))
                for row in rows
            ]
        else:
            saved = Saved.of(path)
            found.append(Subject(_label(saved.result), (saved,)))
    if not found:
        raise TacitError("a report of no run", "give the folder that a run printed")
    return _told_apart(found, paths)


def _beside(table: Path, run: str) -> Path:
    """A run's folder where the comparison wrote it, even if the whole was moved since."""
    moved = table / Path(run).name
    return moved if moved.exists() else Path(run)


def _label(result: Mapping[str, Any]) -> str:
    twin = result.get("settings", {}).get("twin", "none")
    return result["method"] if twin in {"none", None} else f"{result['method']}, {twin} twin"


def _told_apart(found: list[Subject], paths: Sequence[Path]) -> list[Subject]:
    """Equal labels get what tells them apart: the seed or the folder's name."""
    labels = [one.label for one in found]
    if len(set(labels)) == len(labels) or len(found) != len(paths):
        return found
    return [
        Subject(one.label if labels.count(one.label) == 1 else f"{one.label} ({path.name})", one.runs)
        for one, path in zip(found, paths, strict=True)
    ]
