"""Several methods on the same splits and seeds, in one table, with twins and baselines beside."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.config import catalogue
from tacit.config.experiment import Experiment, resolved
from tacit.config.session import continued, started
from tacit.errors import TacitError, nearest
from tacit.evaluate.significance import compare_paired
from tacit.report.saved import TABLE
from tacit.rng import SeededKeys
from tacit.runtime.checkpoint import written_whole
from tacit.runtime.folder import RunFolder
from tacit.runtime.listener import Listener
from tacit.settings import settings_of

TWINS = ("central", "local")
BESIDE = "beside"
BESIDE_RATINGS = ("user-mean", "bias")
BESIDE_RANKING = ("pop", "ease")
LOWER_IS_BETTER = ("rmse", "mae")
ENOUGH_SEEDS = 5


@dataclass(frozen=True)
class Contestant:
    """One row of the table: a label and the experiment behind it (its seed is replaced).

    ``twin`` says of what kind a twin is that nobody asked for.
    """

    label: str
    experiment: Experiment
    asked_for: bool = True
    twin: str = ""


def contestants(names: Sequence[str], base: Experiment, *, beside: bool) -> list[Contestant]:
    """The methods asked for, then the twins of each federated one, then the usual baselines.

    A name may carry settings of its own: ``fedrec:rho=3``. Settings given for all go to the methods that
    know them.
    """
    asked = [_contestant(name, base) for name in names]
    for key in base.settings:
        if not any(key in one.experiment.settings for one in asked if one.experiment.method in _known()):
            first = asked[0].experiment.method
            raise TacitError(
                f"no method here has a setting {key!r}", nearest(key, settings_of(_known()[first]))
            )
    if not beside:
        return asked
    twins = [_twin(one, kind) for kind in TWINS for one in asked if kind in _twins_of(one)]
    usual = BESIDE_RATINGS if _by_ratings(asked, base) else BESIDE_RANKING
    plain = replace(base, settings={}, protect=(), transport="", rounds=0)
    others = [
        Contestant(name, replace(plain, method=name), asked_for=False) for name in usual if name not in names
    ]
    labels: set[str] = set()
    return [one for one in (*asked, *twins, *others) if not (one.label in labels or labels.add(one.label))]


def _by_ratings(asked: Sequence[Contestant], base: Experiment) -> bool:
    """Whether errors of ratings are compared: all methods have them, and nothing else is asked for."""
    wanted = not base.metrics or any(name in LOWER_IS_BETTER for name in base.metrics)
    return wanted and all(map(_predicts_ratings, asked))


def _contestant(name: str, base: Experiment) -> Contestant:
    method, *own = name.split(":")
    known = _known()
    if method not in known:
        return Contestant(
            name, replace(base, method=method)
        )  # refused, with the nearest name, when it is resolved
    takes = {*settings_of(known[method]), "preset"}
    settings = {key: value for key, value in base.settings.items() if key in takes}
    for part in own:
        key, found, value = part.partition("=")
        if not found:
            raise TacitError(f"{name}: {part!r} is not a setting", "write method:key=value")
        settings[key] = value
    unfederated = {"protect": (), "transport": "", "rounds": 0} if method in catalogue.baselines() else {}
    return Contestant(name, replace(base, method=method, settings=settings, **unfederated))


def _known() -> dict[str, Callable[..., Any]]:
    """Whatever can be compared: methods, and how baselines are fitted."""
    return {**catalogue.methods(), **{key: value.fit for key, value in catalogue.baselines().items()}}


def _federated(one: Contestant) -> bool:
    return one.experiment.method in catalogue.methods()


def _predicts_ratings(one: Contestant) -> bool:
    if not _federated(one):
        known = catalogue.baselines().get(one.experiment.method)
        return known is not None and known.predicts_ratings
    return catalogue.built(one.experiment.method, {}).predicts_ratings


def _twins_of(one: Contestant) -> tuple[str, ...]:
    """The kinds of twins a method has, unless it is one itself."""
    if not _federated(one) or one.experiment.settings.get("twin", "none") != "none":
        return ()
    setting = settings_of(catalogue.methods()[one.experiment.method]).get("twin")
    return () if setting is None else tuple(setting.choices)


def _twin(one: Contestant, kind: str) -> Contestant:
    settings = {**one.experiment.settings, "twin": kind}
    twin = replace(one.experiment, settings=settings, protect=(), transport="")
    return Contestant(f"{one.label}, {kind} twin", twin, asked_for=False, twin=kind)


def on_one_split(entries: Sequence[Contestant], data_dir: Path | None) -> list[Contestant]:
    """The same entries on one split: where their usual ones differ, that of the first that ranks."""
    asked = [one for one in entries if one.asked_for]
    rates = [_predicts_ratings(one) for one in asked]
    if entries[0].experiment.split or len(set(rates)) < 2:
        return list(entries)
    first = resolved(asked[rates.index(False)].experiment, data_dir)[0].split
    return [replace(one, experiment=replace(one.experiment, split=first)) for one in entries]


def beside(run: Path, data_dir: Path | None, threads: int, listener: Listener) -> list[Path]:
    """Train a finished run's twins and the usual baselines on its data, split and seed, in its folder.

    Returns:
        Their run folders, under ``beside/``; those that are finished already are not trained again.
    """
    folder = RunFolder.opened(run)
    folder.result()  # refused unless it is finished
    own = Experiment.from_mapping(folder.config())
    found: list[Path] = []
    for entry in contestants([own.method], own, beside=True)[1:]:
        result = _result(entry, entry.experiment, run / BESIDE, data_dir, threads, listener)
        if result is None:
            raise KeyboardInterrupt
        found.append(Path(result["run"]))
    return found


def compared(
    entries: Sequence[Contestant],
    seeds: int,
    out: Path,
    data_dir: Path | None,
    threads: int,
    listener: Listener,
) -> dict[str, Any]:
    """Run every contestant with every seed; finished runs in ``out`` are not run again."""
    entries = on_one_split(entries, data_dir)
    results: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        for number in range(seeds):
            experiment = replace(entry.experiment, seed=entry.experiment.seed + number)
            found = _result(entry, experiment, out, data_dir, threads, listener)
            if found is None:
                raise KeyboardInterrupt
            results.setdefault(entry.label, []).append(found)
    primary = _primary(results)
    chances = _significance(results, primary, entries[0].label)
    rows = _merged([_row(entry, results[entry.label], chances) for entry in entries])
    told = {"primary": primary, "reference": entries[0].label, "seeds": seeds, "pairs": pairs(seeds)}
    table = {"rows": rows, **told}
    text = json.dumps(table, indent=1)
    written_whole(out / TABLE, lambda draft: draft.write_text(text, encoding="utf-8"))
    return table


def _result(
    entry: Contestant,
    experiment: Experiment,
    out: Path,
    data_dir: Path | None,
    threads: int,
    listener: Listener,
) -> dict[str, Any] | None:
    safe = "".join(letter if letter.isalnum() or letter in "+-._" else "-" for letter in entry.label)
    path = out / f"{safe}-seed{experiment.seed}"
    if path.exists():
        folder = RunFolder.opened(path)
        if folder.config() != resolved(experiment, data_dir)[0].to_mapping():
            raise TacitError(f"{path} holds a run that was configured otherwise", "choose another --out")
        if (path / "result.json").exists():
            return folder.result()
    began = time.perf_counter()
    session = (
        continued(path, data_dir, threads) if path.exists() else started(experiment, path, data_dir, threads)
    )
    return session.finished(listener, loaded=time.perf_counter() - began)


def _primary(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The first metric that every contestant has."""
    first = next(iter(results.values()))[0]["metrics"]
    shared = [name for name in first if all(name in runs[0]["metrics"] for runs in results.values())]
    if not shared:
        raise TacitError("the methods share no metric", "name one that all have with --metrics")
    return shared[0]


def pairs(seeds: int) -> str:
    """What p-values are over: seeds where there are five (of methods), else people (of these models alone).

    Example:
        >>> pairs(4), pairs(5)
        ('people', 'seeds')
    """
    return "seeds" if seeds >= ENOUGH_SEEDS else "people"


def _significance(
    results: Mapping[str, Sequence[Mapping[str, Any]]], primary: str, reference: str
) -> dict[str, float]:
    """Paired against the first method, with Holm's correction."""
    if len(results) < 2:
        return {}
    if pairs(len(results[reference])) == "seeds":
        values = {label: [run["metrics"][primary] for run in runs] for label, runs in results.items()}
    else:
        values = _per_user(results, primary)
    if not values:
        return {}
    found = compare_paired(values, reference, keys=SeededKeys(0))
    return {comparison.method: comparison.adjusted for comparison in found}


def _per_user(results: Mapping[str, Sequence[Mapping[str, Any]]], primary: str) -> dict[str, Any]:
    """Each user's mean over the seeds that evaluated them; only users whom every method was judged on."""
    from tacit.runtime.checkpoint import load

    tables: dict[str, dict[int, list[float]]] = {}
    for label, runs in results.items():
        for run in runs:
            arrays = load(Path(run["run"]) / "per_user.safetensors").arrays
            if f"{primary}/users" not in arrays:
                return {}
            table = tables.setdefault(label, {})
            pairs = zip(
                arrays[f"{primary}/users"].tolist(), arrays[f"{primary}/values"].tolist(), strict=True
            )
            for user, value in pairs:
                table.setdefault(user, []).append(value)
    common = sorted(set.intersection(*(set(table) for table in tables.values())))
    return {label: np.array([np.mean(table[user]) for user in common]) for label, table in tables.items()}


def _merged(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Twins of one kind with equal numbers are one twin, told in one row."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        alike = (
            other
            for other in kept
            if row["twin"] and other["twin"] == row["twin"] and other["metrics"] == row["metrics"]
        )
        like = next(alike, None)
        if like is None:
            kept.append(row)
        else:
            like["method"] = f"{row['twin']} twin"
            like["runs"] = [*like["runs"], *row["runs"]]
    return kept


def _row(
    entry: Contestant, runs: Sequence[Mapping[str, Any]], chances: Mapping[str, float]
) -> dict[str, Any]:
    names = runs[0]["metrics"]
    values = {name: [run["metrics"][name] for run in runs] for name in names}
    last = runs[-1]
    return {
        "method": entry.label,
        "metrics": {
            name: {"mean": float(np.mean(v)), "sd": float(np.std(v, ddof=1)) if len(v) > 1 else None}
            for name, v in values.items()
        },
        "privacy": last["privacy"],
        "traffic": last["traffic"],
        "seconds": {"train": float(np.mean([run["seconds"]["train"] for run in runs]))},
        "p": chances.get(entry.label),
        "runs": [run["run"] for run in runs],
        "beside": not entry.asked_for,
        "twin": entry.twin,
    }
