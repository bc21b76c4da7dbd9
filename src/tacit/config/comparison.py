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
from tacit.report.differences import Differences, differences, pairs
from tacit.report.saved import TABLE, Saved, Subject, per_user
from tacit.report.words import LOWER_IS_BETTER
from tacit.runtime.checkpoint import written_whole
from tacit.runtime.folder import RunFolder
from tacit.runtime.listener import Listener
from tacit.settings import settings_of

TWINS = ("central", "local")
BESIDE = "beside"
BESIDE_RATINGS = ("user-mean", "bias")
BESIDE_RANKING = ("pop", "ease")


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
    entries = _merged(entries, results)
    told = [Subject(entry.label, _saved(results[entry.label], out)) for entry in entries]
    primary = _primary(results)
    tested = differences(told, primary)
    rows = [_row(entry, results[entry.label], tested) for entry in entries]
    about = {"primary": primary, "reference": entries[0].label, "seeds": seeds, "pairs": pairs(seeds)}
    table = {"rows": rows, **about}
    text = json.dumps(table, indent=1)
    written_whole(out / TABLE, lambda draft: draft.write_text(text, encoding="utf-8"))
    return table


def _saved(runs: Sequence[Mapping[str, Any]], out: Path) -> tuple[Saved, ...]:
    return tuple(Saved(run, per_user=per_user(out / Path(run["run"]).name)) for run in runs)


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
    return session.trained(listener, loaded=time.perf_counter() - began)  # pages are drawn when asked for


def _primary(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The first metric that every contestant has."""
    first = next(iter(results.values()))[0]["metrics"]
    shared = [name for name in first if all(name in runs[0]["metrics"] for runs in results.values())]
    if not shared:
        raise TacitError("the methods share no metric", "name one that all have with --metrics")
    return shared[0]


def _merged(entries: Sequence[Contestant], results: dict[str, list[dict[str, Any]]]) -> list[Contestant]:
    """Twins of one kind with equal numbers are one twin: told once, and tested once."""
    kept: list[Contestant] = []
    for entry in entries:
        like = next((one for one in kept if entry.twin and _equal(one, entry, results)), None)
        if like is None:
            kept.append(entry)
            continue
        merged = replace(like, label=f"{entry.twin} twin")
        kept[kept.index(like)] = merged
        results[merged.label] = results[like.label]
    return kept


def _equal(one: Contestant, other: Contestant, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    numbers = [[run["metrics"] for run in results[entry.label]] for entry in (one, other)]
    return one.twin == other.twin and numbers[0] == numbers[1]


def _row(entry: Contestant, runs: Sequence[Mapping[str, Any]], tested: Differences | None) -> dict[str, Any]:
    names = runs[0]["metrics"]
    values = {name: [run["metrics"][name] for run in runs] for name in names}
    last = runs[-1]
    found = None if tested is None else tested.found.get(entry.label)
    return {
        "method": entry.label,
        "metrics": {
            name: {"mean": float(np.mean(v)), "sd": float(np.std(v, ddof=1)) if len(v) > 1 else None}
            for name, v in values.items()
        },
        "privacy": last["privacy"],
        "traffic": last["traffic"],
        "seconds": {"train": float(np.mean([run["seconds"]["train"] for run in runs]))},
        "p": None if found is None else found.adjusted,
        "difference": None
        if found is None
        else {"mean": found.difference, "low": found.low, "high": found.high},
        "runs": [run["run"] for run in runs],
        "beside": not entry.asked_for,
        "twin": entry.twin or _own_twin(entry),
    }


def _own_twin(entry: Contestant) -> str:
    asked = str(entry.experiment.settings.get("twin", "none"))
    return "" if asked == "none" else asked
