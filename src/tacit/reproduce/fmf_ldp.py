"""FMF-LDP (Minto, Haller, Haddadi, Livshits, RecSys 2021): Figures 4 and 5, beside what the paper leaves out.

MovieLens 20M may not be at hand: Figure 4 is run on random people and items of the generator at its shape
(``demo:shape=ml-20m``), Figure 5 on that and on ML-1M where it is found. Every method, popularity and chance
face the same 99 negatives per held-out item.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.config.catalogue import built, resolved_settings
from tacit.data import Dataset, load
from tacit.data.subset import core, sampled
from tacit.errors import TacitError
from tacit.models.baselines import Known, fit_baseline
from tacit.reproduce.table import Cell, Options, Reproduction
from tacit.rng import SeededKeys
from tacit.runtime.run import Plan, evaluate_plan, federation_of, personalised
from tacit.runtime.simulate import Execution, new_world, one_round, set_up
from tacit.split import split

# (people, items): HR@10, 20 epochs, epsilon 2.5, k 100
FIGURE_4 = {
    (1_000, 1_000): 0.1160,
    (10_000, 1_000): 0.6325,
    (50_000, 1_000): 0.6972,
    (1_000, 5_000): 0.1010,
    (10_000, 5_000): 0.1988,
    (50_000, 5_000): 0.6801,
    (1_000, 9_781): 0.1090,
    (10_000, 9_781): 0.1216,
    (50_000, 9_781): 0.5654,
}
# HR@2, HR@5, HR@10 on the latest split of the full data set
FIGURE_5 = {
    "mf-np": (0.4310, 0.6700, 0.8179),
    "dplcf": (0.4203, 0.5969, 0.7000),
    "fmf-ldp as published k=100": (0.2163, 0.3755, 0.5131),
    "fmf-ldp as published k=250": (0.2315, 0.3980, 0.5384),
    "random": (0.0200, 0.0500, 0.1000),
}
STAND_IN = "demo:shape=ml-20m"
LEAST = 60


@dataclass(frozen=True)
class Entry:
    """One column: a method or baseline with its settings, and a person's local epsilon over the run."""

    column: str
    name: str
    settings: Mapping[str, Any]
    spends: str


def _published(k: int, column: str) -> Entry:
    return Entry(column, "fmf-ldp", {"mode": "as-published", "k": k}, f"local epsilon {20 * 2.5 * k:g}")


CORRECTED = (
    Entry("fmf-ldp one-bit", "fmf-ldp", {"mechanism": "one-bit"}, "local epsilon 5000"),
    Entry("fmf-ldp rotated", "fmf-ldp", {"mechanism": "rotated"}, "local epsilon 5000"),
    Entry("fmf-ldp privunit", "fmf-ldp", {"mechanism": "privunit"}, "local epsilon 5000"),
)
ONCE = (
    Entry("ldp-popularity", "ldp-popularity", {}, "local epsilon 250"),
    Entry("ldp-spectral", "ldp-spectral", {}, "local epsilon 250"),
)
OPEN = (Entry("pop", "pop", {}, "not private"), Entry("random", "random", {}, "sees nothing"))
FIGURE_4_ENTRIES = (
    _published(100, "fmf-ldp as published"),
    *CORRECTED,
    *ONCE,
    Entry("mf-np", "mf-np", {}, "not private"),
    *OPEN,
)
FIGURE_5_ENTRIES = (
    Entry("mf-np", "mf-np", {}, "not private"),
    Entry("dplcf", "dplcf", {"epsilon": 2.5}, "local epsilon 2.5 per item"),
    _published(100, "fmf-ldp as published k=100"),
    _published(250, "fmf-ldp as published k=250"),
    *CORRECTED,
    *ONCE,
    *OPEN,
)


def _scored(
    entry: Entry, dataset: Dataset, how: str, seed: int, metrics: tuple[str, ...], options: Options
) -> list[float]:
    """Train and judge one entry on one random split."""
    parts = split(dataset, how, seed=seed)
    if entry.name in ("pop", "random"):
        known = Known(parts.train, users=dataset.users, items=dataset.items, keys=SeededKeys(seed))
        plan = Plan(entry.name, None, dataset, parts, seed, metrics)  # type: ignore[arg-type]
        found = evaluate_plan(plan, fit_baseline(entry.name, known), metrics)
        return [found.metrics[name] for name in metrics]
    method = built(entry.name, resolved_settings(entry.name, entry.settings, dataset.name))
    plan = Plan(entry.name, method, dataset, parts, seed, metrics, execution=Execution(options.threads))
    world = new_world(method, federation_of(dataset, parts.train), SeededKeys(seed), plan.execution)
    set_up(world)
    for _ in range(method.rounds):
        one_round(world)
    scorer = world.method.model.scorer(world.server.shared, personalised(world, plan))
    found = evaluate_plan(plan, scorer, metrics)
    return [found.metrics[name] for name in metrics]


@dataclass(frozen=True)
class Row:
    """One row: its name, and the data and split of a seed."""

    name: str
    dataset: Callable[[int], Dataset]
    how: str


def _filled(
    rows: Iterable[Row], entries: tuple[Entry, ...], metrics: tuple[str, ...], seeds: range, options: Options
) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Mean and spread over seeds of every metric, for each row and entry."""
    rows = list(rows)
    options.listener.stage("training and judging", len(rows) * len(seeds) * len(entries))
    found: dict[tuple[str, str], list[list[float]]] = {}
    done = 0
    for row in rows:
        for seed in seeds:
            dataset = row.dataset(seed)
            for entry in entries:
                scores = _scored(entry, dataset, row.how, seed, metrics, options)
                found.setdefault((row.name, entry.column), []).append(scores)
                done += 1
                options.listener.step(done, {})
    return {key: (np.mean(values, axis=0), np.std(values, axis=0)) for key, values in found.items()}


def figure4(options: Options) -> Reproduction:
    """HR@10 for nine sizes, random leave-one-out, 99 negatives (the quick form: 1,000 people, one seed)."""
    whole = load(STAND_IN + (",users=10000" if options.quick else "") + ",times=no", options.data_dir)
    sizes = [size for size in FIGURE_4 if size[0] == 1000 or not options.quick]
    seeds = range(1, 2 if options.quick else 4)

    def drawn(users: int, items: int) -> Callable[[int], Dataset]:
        return lambda seed: sampled(whole, users, items, seed)

    rows = [Row(f"{users} x {items}", drawn(users, items), "leave-one-out") for users, items in sizes]
    found = _filled(rows, FIGURE_4_ENTRIES, ("hr@10[99]",), seeds, options)
    cells = []
    for size, row in zip(sizes, rows, strict=True):
        for entry in FIGURE_4_ENTRIES:
            mean, spread = (part[0] for part in found[row.name, entry.column])
            paper = FIGURE_4[size] if entry.column == "fmf-ldp as published" else None
            note = f"{entry.spends}; sd over seeds {spread:.3f}" if len(seeds) > 1 else entry.spends
            cells.append(Cell(row.name, entry.column, paper, round(float(mean), 4), note))
    return Reproduction(
        "fmf-ldp/fig4", "HR@10[99] by people and items (FMF-LDP, Figure 4)", tuple(cells), _notes(len(seeds))
    )


def figure5(options: Options) -> Reproduction:
    """HR@2, HR@5, HR@10, latest split (quick: ML-1M alone, or 5,000 people of the stand-in)."""
    rows = list(_figure5_rows(options))
    metrics = ("hr@2[99]", "hr@5[99]", "hr@10[99]")
    found = _filled(rows, FIGURE_5_ENTRIES, metrics, range(1, 2), options)
    cells = []
    for row in rows:
        for entry in FIGURE_5_ENTRIES:
            printed = (
                FIGURE_5.get(entry.column, (None, None, None))
                if row.name == "stand-in latest"
                else (None,) * 3
            )
            for metric, paper, ours in zip(metrics, printed, found[row.name, entry.column][0], strict=True):
                cells.append(
                    Cell(f"{row.name}: {entry.column}", metric, paper, round(float(ours), 4), entry.spends)
                )
    return Reproduction(
        "fmf-ldp/fig5", "HR@K[99] beside other methods (FMF-LDP, Figure 5)", tuple(cells), _notes(1)
    )


def _figure5_rows(options: Options) -> Iterable[Row]:
    found = list(_films_rows(options))
    yield from found
    if not (found and options.quick):
        size = ",users=5000" if options.quick else ",users=50000"
        whole = load(f"{STAND_IN}{size},times=yes", options.data_dir)
        yield Row("stand-in latest", lambda _: whole, "leave-last-out")


def _films_rows(options: Options) -> Iterable[Row]:
    """ML-1M's core of people and films with 60 ratings, where it is found."""
    try:
        films = core(load("ml-1m", options.data_dir), LEAST)
    except TacitError as missing:
        options.listener.warn(f"without ML-1M: {missing.problem}")
        return
    yield Row("ml-1m latest", lambda _: films, "leave-last-out")
    yield Row("ml-1m random", lambda _: films, "leave-one-out")


BUDGETS = (25, 50, 100, 250, 500, 1000, 2500, 5000)
SPENDING: Mapping[str, Callable[[float, int], Entry | None]] = {
    "fmf-ldp as published": lambda total, _: _spread(total, {"mode": "as-published"}),
    "fmf-ldp rotated": lambda total, _: _spread(total, {"mechanism": "rotated"}),
    "ldp-popularity": lambda total, _: Entry("", "ldp-popularity", {"k": round(total / 2.5)}, "once"),
    "ldp-spectral": lambda total, _: Entry("", "ldp-spectral", {"epsilon": float(total)}, "once"),
    "dplcf": lambda total, items: Entry("", "dplcf", {"epsilon": total / items}, f"a bit for {items} items"),
}


def _spread(total: float, settings: Mapping[str, Any]) -> Entry | None:
    """FMF-LDP with so many reports of 2.5 that 20 rounds spend ``total``; ``None`` below one report."""
    k = int(total / (20 * 2.5))
    return Entry("", "fmf-ldp", {**settings, "k": k}, f"{k} reports of 2.5 in 20 rounds") if k else None


def budget(options: Options) -> Reproduction:
    """HR@10[99] by what a person spends in all (quick: four budgets; ML-1M alone where it is found)."""
    budgets = (50, 250, 1000, 5000) if options.quick else BUDGETS
    rows = [row for row in _films_rows(options) if row.how == "leave-one-out"]
    if not rows or not options.quick:
        whole = load(STAND_IN + ",users=12000,times=no", options.data_dir)
        rows.append(
            Row("stand-in 10000 x 5000", lambda seed: sampled(whole, 10_000, 5_000, seed), "leave-one-out")
        )
    options.listener.stage("training and judging", len(rows) * (1 + len(budgets) * len(SPENDING)))
    cells, done = [], 0
    for row in rows:
        dataset = row.dataset(1)
        for column, total, entry in _spenders(budgets, dataset.items):
            if entry is not None:
                (ours,) = _scored(entry, dataset, row.how, 1, ("hr@10[99]",), options)
                name = f"{row.name}: {f'epsilon {total:g}' if total else 'open'}"
                cells.append(Cell(name, column, None, round(ours, 4), entry.spends))
            done += 1
            options.listener.step(done, {})
    title = "HR@10[99] by a person's local epsilon over the whole run"
    return Reproduction("fmf-ldp/budget", title, tuple(cells), (*_notes(1)[1:], "no table of the paper's"))


def _spenders(budgets: Iterable[float], items: int) -> Iterable[tuple[str, float, Entry | None]]:
    """What is compared at each budget, after popularity, which knows everything."""
    yield "pop", 0.0, Entry("pop", "pop", {}, "not private")
    for total in budgets:
        for column, entry in SPENDING.items():
            yield column, total, entry(total, items)


def _notes(seeds: int) -> tuple[str, ...]:
    return (
        f"{seeds} seed(s); the stand-in for MovieLens 20M is synthetic ({STAND_IN}), the paper's numbers are "
        "of the real one",
        "the paper prints neither popularity nor what a run spends: 'local epsilon' is a person's over the "
        "whole run",
        "through the shuffling proxy the same reports are worth far less to an honest server: see the run's "
        "privacy lines",
    )


TABLES = {"fmf-ldp/fig4": figure4, "fmf-ldp/fig5": figure5, "fmf-ldp/budget": budget}
