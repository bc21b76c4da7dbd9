"""FedRec++ (Liang, Pan, Ming, AAAI 2021): Table 2 (accuracy) and Table 3 (communication)."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tacit.config.catalogue import built, resolved_settings
from tacit.data import Dataset, load
from tacit.ledger.record import Traffic
from tacit.reproduce.table import Cell, Options, Reproduction
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import Plan, evaluate_plan, federation_of
from tacit.runtime.simulate import Execution, World, new_world, one_round
from tacit.split import split

# (data, method, rho): MAE, RMSE as printed
TABLE_2 = {
    ("ml-100k", "fedrec", 0): (0.7418, 0.9424),
    ("ml-100k", "fedrec", 1): (0.7440, 0.9432),
    ("ml-100k", "fedrec", 2): (0.7445, 0.9431),
    ("ml-100k", "fedrec", 3): (0.7447, 0.9431),
    ("ml-100k", "fedrec++", 1): (0.7417, 0.9422),
    ("ml-100k", "fedrec++", 2): (0.7422, 0.9430),
    ("ml-100k", "fedrec++", 3): (0.7416, 0.9421),
    ("ml-1m", "fedrec", 0): (0.7193, 0.9106),
    ("ml-1m", "fedrec", 1): (0.7217, 0.9129),
    ("ml-1m", "fedrec", 2): (0.7239, 0.9152),
    ("ml-1m", "fedrec", 3): (0.7263, 0.9178),
    ("ml-1m", "fedrec++", 1): (0.7198, 0.9113),
    ("ml-1m", "fedrec++", 2): (0.7195, 0.9109),
    ("ml-1m", "fedrec++", 3): (0.7196, 0.9109),
}
# (data, denoisers): denoising client, ordinary client, client, in vectors per round
TABLE_3 = {
    ("ml-100k", 0): (None, 170, 170),
    ("ml-100k", 1): (81550, 254, 258),
    ("ml-100k", 0.25): (571, 256, 350),
    ("ml-100k", 0.5): (251, 256, 294),
    ("ml-1m", 0): (None, 265, 265),
    ("ml-1m", 1): (804058, 397, 399),
    ("ml-1m", 0.25): (903, 397, 551),
    ("ml-1m", 0.5): (393, 397, 460),
}
DRAWS = 10
CATALOGUE = {"ml-100k": "ml-100k", "ml-1m": "ml-1m:catalogue=ids"}  # the paper counts all 3952 ids of ML-1M


def _loaded(options: Options) -> dict[str, Dataset]:
    names = ["ml-100k"] if options.quick else list(CATALOGUE)
    return {name: load(CATALOGUE[name], options.data_dir) for name in names}


def _world(plan: Plan) -> World:
    assert isinstance(plan.method, Method)
    federation = federation_of(plan.dataset, plan.split.train)
    return new_world(plan.method, federation, SeededKeys(plan.seed), plan.execution)


def _plan(
    dataset: Dataset, name: str, method: str, settings: dict[str, object], fold: int, options: Options
) -> Plan:
    complete = resolved_settings(method, {"preset": "paper", **settings}, name)
    parts = split(dataset, f"ratings-5fold:{fold}", seed=1)
    execution = Execution(options.threads)
    return Plan(method, built(method, complete), dataset, parts, fold, ("mae", "rmse"), execution=execution)


def _errors(plan: Plan) -> tuple[float, float]:
    world = _world(plan)
    for _ in range(world.method.rounds):
        one_round(world)
    found = evaluate_plan(plan, world.method.model.scorer(world.server.shared, world.private), plan.metrics)
    return found.metrics["mae"], found.metrics["rmse"]


def table2(options: Options) -> Reproduction:
    """MAE and RMSE, mean over five folds (the quick form: one fold of ML-100K), recipe ``preset=paper``."""
    data = _loaded(options)
    rows = [key for key in TABLE_2 if key[0] in data]
    folds = [1] if options.quick else [1, 2, 3, 4, 5]
    options.listener.stage("table 2", len(rows) * len(folds))
    cells: list[Cell] = []
    for number, (name, method, rho) in enumerate(rows):
        found = []
        for done, fold in enumerate(folds, 1):
            settings: dict[str, object] = {"rho": float(rho)}
            found.append(_errors(_plan(data[name], name, method, settings, fold, options)))
            options.listener.step(number * len(folds) + done, {})
        means, spreads = np.mean(found, axis=0), np.std(found, axis=0)
        row = f"{name} {method} rho={rho}"
        for place, column in enumerate(("MAE", "RMSE")):
            paper, note = TABLE_2[name, method, rho][place], f"sd over folds {spreads[place]:.4f}"
            cells.append(
                Cell(row, column, paper, round(float(means[place]), 4), note if len(folds) > 1 else "")
            )
    told = "one fold" if len(folds) == 1 else f"{len(folds)} folds"
    notes = (f"{told} of our own: the paper's folds are not published",)
    return Reproduction(
        "fedrec/table2", "Recommendation performance (FedRec++, Table 2)", tuple(cells), notes
    )


def _units(plan: Plan, draws: int) -> dict[str, float]:
    """The mean over several draws of the denoisers: each draw moves a cell by a few vectors."""
    found = [_units_once(replace(plan, seed=seed)) for seed in range(1, draws + 1)]
    return {name: float(np.mean([units[name] for units in found])) for name in found[0]}


def _units_once(plan: Plan) -> dict[str, float]:
    world = _world(plan)
    records = one_round(world)
    counted: dict[str, tuple[Traffic, int]] = {
        r.facts.exchange: (r.traffic, r.facts.answered) for r in records
    }
    assert world.method.published_units is not None
    people = sum(record.facts.answered for record in records)
    true_bytes = sum(record.traffic.up + record.traffic.letters_out for record in records) / people
    return {**world.method.published_units(counted), "bytes": true_bytes}


def _cost_cells(data: dict[str, Dataset], options: Options) -> Iterable[Cell]:
    for (name, denoisers), printed in TABLE_3.items():
        if name not in data:
            continue
        method = "fedrec++" if denoisers else "fedrec"
        settings: dict[str, object] = {"rho": 1.0, **({"denoisers": denoisers} if denoisers else {})}
        plan = _plan(data[name], name, method, settings, 1, options)
        found = _units(plan, DRAWS if denoisers else 1)
        row = f"{name} denoisers={denoisers}"
        for column, paper in zip(("denoising_client", "ordinary_client", "client"), printed, strict=True):
            if paper is not None:
                yield Cell(row, column, float(paper), round(found[column], 1), "vectors per round")
        yield Cell(
            row,
            "true bytes sent per client",
            None,
            round(found["bytes"], 1),
            "ids, counts and headers included",
        )


def table3(options: Options) -> Reproduction:
    """Vectors per round by the paper's counting, and the true bytes beside."""
    cells = tuple(_cost_cells(_loaded(options), options))
    notes = (
        f"mean over {DRAWS} draws of the denoisers",
        "a denoiser is charged what it receives and sends, an ordinary client what it sends; in the mean of "
        "all clients a denoiser's rows count twice and receiving is free: the two columns differ in kind",
    )
    return Reproduction("fedrec/table3", "Communication per iteration (FedRec++, Table 3)", cells, notes)


TABLES = {"fedrec/table2": table2, "fedrec/table3": table3}
