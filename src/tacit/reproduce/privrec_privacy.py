"""What user-level privacy costs PrivRec on ML-1M: under settings that make sense, and under the paper's own.

The paper prints a figure and says that DP-PrivRec stays within 10 % of PrivRec (section 4.3). With its
settings (S = 40, z = 1, M = 30) the noise on every number of the mean is 4.87, where a whole update has a
norm near one half: training ends within ten rounds (``privrec/literal``). What makes a budget affordable is
a compact network (noise grows with the root of the number of parameters), a clip norm near the median
update, a large cohort and few rounds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.account.adaptive import published_split
from tacit.aggregate.mean import Mean
from tacit.config.catalogue import resolved_settings
from tacit.errors import TacitError
from tacit.local.work import Broadcast
from tacit.methods.privrec import privrec
from tacit.protect.adaptive_clip import AdaptiveClip
from tacit.protect.clip import Clip, norms
from tacit.protect.noise import GaussianNoise
from tacit.report.drawing import SERIES
from tacit.reproduce.pictures import picture_file
from tacit.reproduce.privrec_protocol import (
    ALONE,
    QUICK_ROUNDS,
    Case,
    Row,
    case,
    scorer_of,
    world_of,
)
from tacit.reproduce.table import Cell, Options, Reproduction
from tacit.runtime.simulate import World, one_round
from tacit.settings import settings_of

HITS = f"hr@10{ALONE}"
EPSILONS = (1.0, 2.0, 4.0, 8.0)
SEEDS = range(1, 4)
FREE = 1e-9  # clip norms of noise: clipping alone
TENTH = 0.1
SENSIBLE = Row("large cohorts, few rounds, S near the median", "dp-privrec", {"liked": 3.0})
SMALL_COHORT = replace(
    SENSIBLE, label="the same with the paper's cohorts of 30", settings={**SENSIBLE.settings, "clients": 30}
)
OWN = Row(
    "the paper's network, cohort and S = 40",
    "dp-privrec",
    {"preset": "paper", "mode": "corrected", "clip_rate": 0.0},
)
ROWS = (SENSIBLE, SMALL_COHORT, OWN)
LITERAL = Row("DP-PrivRec as published", "dp-privrec", {"preset": "paper"})
LITERAL_DATA = ("ml-1m", "frappe")
LITERAL_COLUMNS = 7
DRAWS = 20
BROKEN = "the last good model's scores are not numbers once a device has adapted it"
CLIPPED, OPEN = "inf, clipped", "inf"


@dataclass(frozen=True)
class Outcome:
    """What a run came to: rounds finished, accuracy of the last good model (if any), why it ended early."""

    rounds: int
    hits: float | None
    stopped: str = ""


def ended(world: World, at: Case, most: int | None = None) -> Outcome:
    """Train to the end, or to the round that is refused; the last good model is judged."""
    why, rounds = "", world.method.rounds if most is None else min(most, world.method.rounds)
    try:
        for _ in range(rounds):
            one_round(world)
    except TacitError as error:
        why = str(error).partition(";")[0]
    return Outcome(world.server.round, _hits(world, at), why)


def _hits(world: World, at: Case) -> float | None:
    """Hits@10, unless the model is so far gone that its owner's scores are not numbers."""
    try:
        return at.judged(scorer_of(world, at), (HITS,)).metrics[HITS]
    except TacitError:
        return None


def clip_of(world: World) -> float:
    """The clip norm as it stands."""
    (exchange,) = world.method.exchanges
    clipping = exchange.protections.stages[0]
    if isinstance(clipping, Clip):
        return clipping.size
    return float(world.server.protections[exchange.name][0])


def noise_of(world: World) -> float:
    """The deviation of the noise on each number of the mean, at the clip norm as it stands."""
    (exchange,) = world.method.exchanges
    clipping, noise = exchange.protections.stages[:2]
    assert isinstance(noise, GaussianNoise)
    assert isinstance(exchange.aggregator, Mean)
    units = 1.0 if isinstance(clipping, Clip) else math.sqrt(1 + getattr(clipping, "weight", 0.0) ** 2 / 4)
    return noise.noise * units * clip_of(world) / exchange.aggregator.clients


def median_norm(world: World) -> float:
    """The median norm of the updates of the people asked first, before anything is clipped."""
    (exchange,) = world.method.exchanges
    asked = exchange.sampling.draw(world.federation.people, 0, world.keys)
    start = Broadcast(0, world.server.shared)
    sent = exchange.local.run(start, {}, world.federation.cohort(asked), None, world.keys)
    return float(np.median(norms(sent.update)))


def size_of(world: World) -> int:
    """How many numbers the network has."""
    return sum(array.size for array in world.server.shared.values())


def literal(options: Options) -> Reproduction:
    """Algorithm 2 with the paper's settings, to the round that is refused."""
    names, seeds = (LITERAL_DATA[:1], (1,)) if options.quick else (LITERAL_DATA, tuple(SEEDS))
    options.listener.stage("rounds until training ends", len(names) * len(seeds))
    cells: list[Cell] = []
    for name in names:
        for seed in seeds:
            at = case(name, seed, options)
            cells += _literal_cells(f"{name}, seed {seed}", world_of(LITERAL, at, options), at)
            options.listener.step(len(cells) // LITERAL_COLUMNS, {})
    return Reproduction(
        "privrec/literal",
        "DP-PrivRec with the paper's own settings (section 4.3), round by round",
        (*cells, *_falling()),
        LITERAL_NOTES,
    )


def _literal_cells(label: str, world: World, at: Case) -> Iterator[Cell]:
    start, noise, usual = clip_of(world), noise_of(world), median_norm(world)
    out = ended(world, at, most=10)
    yield Cell(label, "rounds finished of 10", None, out.rounds, out.stopped)
    yield Cell(label, "S at the start", start, start, "printed")
    yield Cell(label, "S in the end", None, round(clip_of(world), 2), "a refused round moves nothing")
    yield Cell(label, "median norm of an update", None, round(usual, 3), "first round, before clipping")
    yield Cell(label, "noise on each number of the mean", None, round(noise, 2), "deviation, first round")
    yield Cell(label, "norm of that noise", None, round(noise * math.sqrt(size_of(world))), "on average")
    yield Cell(label, "Hits@10 of the last good model", None, *_told(out))


def _told(out: Outcome) -> tuple[float | None, str]:
    return (None, BROKEN) if out.hits is None else (round(out.hits, 4), "after fine-tuning")


def _falling() -> Iterator[Cell]:
    """Lines 22 and 23: every bit is one, so S falls by rate (1 - quantile) a round whatever the norms are."""
    for rate in (0.5, 1.0):
        found = [rounds_to_zero(rate, seed) for seed in range(DRAWS)]
        yield Cell(
            f"lines 22 and 23 with a rate of {rate:g}",
            "round in which S reaches zero",
            None,
            round(float(np.mean(found)), 1),
            f"sd {np.std(found, ddof=1):.1f} over {DRAWS} draws; every norm beyond S",
        )


def rounds_to_zero(rate: float, seed: int) -> int:
    """The round in which the printed rule brings S from 40 to zero, though every norm is beyond it.

    It falls by ``rate * (1 - quantile)`` on average. Noise of 0.08 on each of 400 steps of 0.1 spreads the
    end by 16 rounds; a mean over draws is within three deviations of 400.

    Example:
        >>> found = [rounds_to_zero(1.0, seed) for seed in range(DRAWS)]
        >>> bool(abs(np.mean(found) - 40 / 0.1) < 3 * 16 / math.sqrt(DRAWS))
        True
    """
    clients = 30
    stage = AdaptiveClip(40.0, clients, quantile=0.9, rate=rate, rule="arithmetic", bits="clipped")
    noise = published_split(1.0, 0.7).bit_std / clients
    draw, size, rounds = np.random.default_rng(seed), stage.start, 0
    try:
        while True:
            rounds += 1
            size = stage.moved(size, share=1 + noise * draw.standard_normal())
    except TacitError:
        return rounds


def dp(options: Options) -> Reproduction:
    """Hits@10 at every epsilon, under settings that make sense and under the paper's own."""
    seeds, epsilons = (tuple(SEEDS), EPSILONS) if not options.quick else ((1,), (2.0, 8.0))
    options.listener.stage("training with noise", len(seeds) * len(ROWS) * (len(epsilons) + 2))
    found: dict[tuple[str, str], list[Outcome]] = {}
    for seed in seeds:
        at = case("ml-1m", seed, options)
        for row in ROWS:
            for column, way in ways(row, epsilons):
                found.setdefault((row.label, column), []).append(ended(world_of(way, at, options), at))
                options.listener.step(sum(map(len, found.values())), {})
    cells = [cell for row in ROWS for cell in _costs(row, found, epsilons)]
    short = (f"quick: one seed, two budgets, at most {QUICK_ROUNDS} rounds",) if options.quick else ()
    return Reproduction(
        "privrec/dp",
        "What user-level privacy costs on ML-1M (the paper says: within 10 %)",
        tuple(cells),
        (*short, *DP_NOTES, affordable(cells)),
        lambda path: draw(cells, path),
    )


def ways(row: Row, epsilons: Sequence[float]) -> Iterator[tuple[str, Row]]:
    """The row at every epsilon, with clipping alone, and without either."""
    for epsilon in epsilons:
        yield f"{epsilon:g}", replace(row, settings={**row.settings, "epsilon": epsilon})
    yield CLIPPED, replace(row, settings={**row.settings, "noise": FREE})
    known = settings_of(privrec)
    same = {
        name: value
        for name, value in resolved_settings(row.method, row.settings, "ml-1m").items()
        if name in known
    }
    yield OPEN, replace(row, method="privrec", settings={**same, "ids": 0, "outer": "plain"})


def _costs(
    row: Row, found: Mapping[tuple[str, str], Sequence[Outcome]], epsilons: Sequence[float]
) -> Iterator[Cell]:
    """Accuracy by epsilon, and what it is short of the same training without clipping and noise."""
    free = mean(found[row.label, OPEN]) or math.nan
    for column in (*(f"{epsilon:g}" for epsilon in epsilons), CLIPPED, OPEN):
        runs = found[row.label, column]
        hits, told = mean(runs), sorted({f"refused in round {run.rounds}" for run in runs if run.stopped})
        if hits is None:
            told.append(BROKEN)
        elif column != OPEN:
            told.append(f"{abs(1 - hits / free):.0%} {'below' if hits < free else 'above'} no privacy")
        if hits is not None and len(runs) > 1:
            told.append(f"sd {np.std(usable(runs), ddof=1):.4f} over {len(runs)} seeds")
        yield Cell(row.label, f"Hits@10, epsilon {column}", None, hits and round(hits, 4), "; ".join(told))


def usable(runs: Sequence[Outcome]) -> list[float]:
    """Accuracy where there is any."""
    return [run.hits for run in runs if run.hits is not None]


def mean(runs: Sequence[Outcome]) -> float | None:
    """Over seeds; none where a run left no model that can be used."""
    return float(np.mean(usable(runs))) if len(usable(runs)) == len(runs) else None


def affordable(cells: Sequence[Cell]) -> str:
    """The smallest epsilon from which on privacy costs at most a tenth, in words."""
    ours = {cell.column.rpartition(" ")[2]: cell.ours or 0.0 for cell in cells if cell.row == SENSIBLE.label}
    free, least = ours[OPEN], math.inf
    for epsilon in sorted((float(name) for name in ours if name[0].isdigit()), reverse=True):
        if ours[f"{epsilon:g}"] < (1 - TENTH) * free:
            break
        least = epsilon
    if math.isinf(least):
        return "no epsilon of the table costs at most 10 % under any of these settings"
    return f"{SENSIBLE.label}: privacy costs at most 10 % from epsilon {least:g} on"


def draw(cells: Sequence[Cell], path: Path) -> None:
    """The picture: Hits@10 against epsilon, one line per setting; a gap where no model was left.

    Raises:
        TacitError: matplotlib is missing, or the file's ending is no picture's.
    """

    def lines(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - as all drawings are called
        del narrow
        axes = figure.subplots()
        for number, row in enumerate(dict.fromkeys(cell.row for cell in cells)):
            mine = [cell for cell in cells if cell.row == row]
            names = [cell.column.partition("epsilon ")[2] for cell in mine]
            hits = [math.nan if cell.ours is None else cell.ours for cell in mine]
            axes.plot(names, hits, marker="osD"[number % 3], lw=1.6, color=SERIES[number], label=row)
        axes.set_xlabel("epsilon of the whole run, delta 1e-6 (users, add or remove)")
        axes.set_ylabel("Hits@10")
        axes.set_ylim(bottom=0)
        axes.legend()

    picture_file(lines, path, (7.5, 4.5))


DP_NOTES = (
    "user level, add-remove, delta 1e-6, people drawn by Poisson's rule and kept secret; epsilon holds for "
    "whoever gets the model and says nothing about the server, which sees each update",
    "'inf' trains without clipping and noise, 'inf, clipped' without noise; otherwise equal settings",
    "settings were chosen on validation people; a run that is refused is judged by its last good model",
)
LITERAL_NOTES = (
    "S = 40, z = 1, h = 0.7, quantile 0.9, 30 people a round, 64-32-16-8 on embeddings of 64; the paper does "
    "not give the step of S (1 here) and the layers' sizes",
    "noise is added outside the meta rate (line 9), so it does not shrink with it",
    "a round whose updates are not numbers is refused: they are never averaged, and S does not move",
)
TABLES = {"privrec/dp": dp, "privrec/literal": literal}
