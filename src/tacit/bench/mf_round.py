"""One round of federated matrix factorisation: the fused kernels, the floor of the machine, and other ways.

Everything is measured in one call on one thread, repeats interleaved, minima taken of processor time; the log
is synthetic with the shape of MovieLens 1M (800,167 ratings by 6,040 people of 3,706 items) and one filler a
rating. *average* is a round whose fillers get the client's mean, *predicted* one whose clients first train
a copy of their vector for 15 steps, as nine rounds of ten do in FedRec.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tacit.bench.mf_floor import floors, gathered, multiplied_and_added, touched
from tacit.bench.mf_whole import whole_rounds
from tacit.errors import TacitError
from tacit.kernels.factors import Fill, client_step
from tacit.kernels.plain import plain_add, plain_step
from tacit.kernels.rows import add_rows, finish
from tacit.kernels.sampling import draw_fillers
from tacit.kernels.vectors import padded, padded_zeros
from tacit.types import Floats, Index, Long, RankOne, Rows, Segment

RATE, REG, LOCAL_STEPS = 0.8, 0.001, 15
CHUNK = 1000
MILLION = "tacit run fedrec --data demo:users=1000000,items=100000,mean=100 --split all --rounds 3"
KINDS = {"average": Fill.AVERAGE, "predicted": Fill.PREDICTED}


@dataclass(frozen=True)
class Problem:
    """A cohort, its fillers and a model in the middle of training."""

    offsets: Long
    items: Index
    values: Floats
    keys: Any
    fillers: Segment
    factors: Floats
    table: Floats
    dim: int

    def first(self, users: int) -> "Problem":
        """The same round with the first ``users`` people only."""
        fillers = Segment(self.fillers.starts[:users], self.fillers.lengths[:users], self.fillers.ids)
        return Problem(
            self.offsets[: users + 1],
            self.items,
            self.values,
            self.keys[:users],
            fillers,
            self.factors[:users],
            self.table,
            self.dim,
        )


@dataclass(frozen=True)
class Variant:
    """A way to compute a round: the summed gradients of the items, ``reg`` included."""

    name: str
    total: Callable[[Problem, Fill], Floats]
    share: float = 1.0  # of the users; the time is scaled up by their share of the ratings


def synthetic(users: int, items: int, ratings: int, dim: int, seed: int) -> Problem:
    """A log with log-normal activity and Zipf popularity, and small random vectors.

    Example:
        >>> problem = synthetic(30, 50, 400, 4, 0)
        >>> int(problem.offsets[-1]), problem.table.shape
        (400, (50, 16))
    """
    if not 0 < users <= ratings <= users * items // 2:
        raise TacitError(
            f"{ratings} ratings by {users} people of {items} items",
            "ask for one rating each and at most half of all",
        )
    rng = np.random.default_rng(seed)
    sizes = _activity(rng, users, items, ratings)
    popularity = 1 / (np.arange(items) + 30.0) ** 0.9
    names = rng.permutation(items)
    # Gumbel's trick: the largest perturbed logarithms are a weighted draw without replacement.
    logarithms = np.log(popularity)
    held = []
    for size in sizes:
        scores = logarithms + rng.gumbel(size=items)
        held.append(np.sort(names[np.argpartition(-scores, size)[:size]]))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns = np.concatenate(held).astype(np.int32)
    keys = rng.integers(0, 2**63, users).astype(np.uint64)
    return Problem(
        offsets,
        columns,
        rng.integers(1, 6, len(columns)).astype(np.float32),
        keys,
        draw_fillers(offsets, columns, keys, 1.0, items),
        rng.normal(0, 0.3, (users, dim)).astype(np.float32),
        padded(rng.normal(0, 0.3, (items, dim)).astype(np.float32)),
        dim,
    )


def _activity(rng: np.random.Generator, users: int, items: int, ratings: int) -> Long:
    """Log-normal sizes that sum to ``ratings``, each at least one and below the catalogue."""
    raw = rng.lognormal(0.0, 1.0, users)
    sizes = np.clip(np.rint(raw * ratings / raw.sum()), 1, items - 1).astype(np.int64)
    while (missing := ratings - int(sizes.sum())) != 0:
        free = np.flatnonzero(sizes < items - 1) if missing > 0 else np.flatnonzero(sizes > 1)
        chosen = rng.permutation(free)[: abs(missing)]
        sizes[chosen] += np.sign(missing)
    return sizes


def fused(problem: Problem, fill: Fill) -> Floats:
    """The kernels of this library, a chunk of clients after the other."""
    height = len(problem.table)
    total, counts = padded_zeros(height, problem.dim), np.zeros(height, dtype=np.int64)
    for low in range(0, len(problem.factors), CHUNK):
        high = min(low + CHUNK, len(problem.factors))
        fillers = problem.fillers
        step = client_step(
            problem.offsets[low : high + 1],
            problem.items,
            problem.values,
            Segment(fillers.starts[low:high], fillers.lengths[low:high], fillers.ids),
            problem.factors[low:high],
            problem.table,
            problem.dim,
            rate=RATE,
            reg=REG,
            fill=fill,
            local_steps=LOCAL_STEPS,
        )
        known = RankOne(step.coef, problem.factors[low:high], problem.table, REG)
        add_rows(total, counts, Rows(step.starts, step.lengths, step.ids, known))
    finish(total, counts, problem.table, REG)
    return total


def plain_numba(problem: Problem, fill: Fill) -> Floats:
    """The same algorithm as loops that Numba compiles by itself, all clients at once."""
    total = np.zeros_like(problem.table)
    lengths = np.diff(problem.offsets) + problem.fillers.lengths
    starts = np.cumsum(lengths) - lengths
    ids, coef = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum(), np.float32)
    fillers, number = problem.fillers, np.float32
    plain_step(
        problem.offsets, problem.items, problem.values, fillers.starts, fillers.lengths, fillers.ids,
        problem.table, number(RATE), number(REG), int(fill), LOCAL_STEPS, 0, starts, ids, coef,
        problem.factors.copy(),
    )  # fmt: skip
    plain_add(total, starts, lengths, ids, coef, problem.factors, number(1))
    finish(total, np.bincount(ids, minlength=len(total)), problem.table, REG)
    return total


def numpy_per_user(problem: Problem, fill: Fill) -> Floats:
    """A loop over users with NumPy inside, as research code often is."""
    V = problem.table[:, : problem.dim]
    total = np.zeros_like(V)
    for user, U in enumerate(problem.factors):
        held = slice(problem.offsets[user], problem.offsets[user + 1])
        rated, r = problem.items[held], problem.values[held]
        start = problem.fillers.starts[user]
        filled = problem.fillers.ids[start : start + problem.fillers.lengths[user]]
        A = V[rated]
        if fill == Fill.AVERAGE:
            virtual = r.mean()
        else:
            local = U.copy()
            for _ in range(LOCAL_STEPS):
                local -= RATE * ((A @ local - r) @ A / len(r) + REG * local)
            virtual = V[filled] @ local
        total[rated] += np.outer(A @ U - r, U) + REG * A
        total[filled] += np.outer(V[filled] @ U - virtual, U) + REG * V[filled]
    return total


def torch_gather(problem: Problem, fill: Fill) -> Floats:
    """All pairs at once: gather rows, multiply, ``index_add``."""
    fillers = problem.fillers
    sizes, extra = torch.from_numpy(np.diff(problem.offsets)), torch.from_numpy(fillers.lengths)
    V, U = torch.from_numpy(problem.table[:, : problem.dim]), torch.from_numpy(problem.factors)
    everyone = torch.arange(len(U))
    users, others = everyone.repeat_interleave(sizes), everyone.repeat_interleave(extra)
    rated = torch.from_numpy(problem.items[: len(users)]).long()
    filled = torch.from_numpy(fillers.ids[: len(others)]).long()
    r, A, B = torch.from_numpy(problem.values[: len(users)]), V[rated], V[filled]
    if fill == Fill.AVERAGE:
        virtual = (torch.zeros(len(U)).index_add_(0, users, r) / sizes)[others]
    else:
        local = U.clone()
        for _ in range(LOCAL_STEPS):
            e = (A * local[users]).sum(1) - r
            gradient = torch.zeros_like(U).index_add_(0, users, e[:, None] * A) / sizes[:, None]
            local -= RATE * (gradient + REG * local)
        virtual = (B * local[others]).sum(1)
    total = torch.zeros_like(V)
    total.index_add_(0, rated, ((A * U[users]).sum(1) - r)[:, None] * U[users] + REG * A)
    total.index_add_(0, filled, ((B * U[others]).sum(1) - virtual)[:, None] * U[others] + REG * B)
    return total.numpy()


VARIANTS = (
    Variant("fused", fused),
    Variant("plain-numba", plain_numba),
    Variant("numpy-per-user", numpy_per_user, share=0.05),
    Variant("torch-gather", torch_gather, share=0.1),
)


def _streams(problem: Problem) -> dict[str, Callable[[], object]]:
    """What the floor is made of, over the very rows of the round and in their order."""
    step = client_step(
        problem.offsets, problem.items, problem.values, problem.fillers, problem.factors, problem.table,
        problem.dim, rate=RATE, reg=REG, fill=Fill.AVERAGE,
    )  # fmt: skip
    room = padded(problem.table)
    return {
        "gather": lambda: gathered(problem.table, step.ids),
        "read-modify-write": lambda: touched(room, step.ids),
        "peak": lambda: multiplied_and_added(),
        "sampling": lambda: draw_fillers(
            problem.offsets, problem.items, problem.keys, 1.0, len(problem.table)
        ),
    }


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def _one_thread() -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _timed(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest of ``repeats`` interleaved runs of each job, after one that compiles."""
    best = dict.fromkeys(jobs, float("inf"))
    with _one_thread():
        for turn in range(repeats + 1):
            for name, job in jobs.items():
                seconds = _cpu_seconds(job)
                if turn > 0:
                    best[name] = min(best[name], seconds)
    return best


def run(
    *,
    users: int = 6040,
    items: int = 3706,
    ratings: int = 800_167,
    dim: int = 20,
    seed: int = 0,
    repeats: int = 7,
    variants: tuple[Variant, ...] = VARIANTS,
) -> dict[str, Any]:
    """Measure a round every way and say how far each is from the fused kernels, and these from the floor.

    Example:
        >>> found = run(users=40, items=60, ratings=900, dim=4, repeats=1)
        >>> found["bench"], found["ratios"]["floor-average"] > 0
        ('mf-round', True)
    """
    if repeats < 1:
        raise TacitError(f"{repeats} repeats", "measure at least once")
    problem = synthetic(users, items, ratings, dim, seed)
    jobs, scales = dict(_streams(problem)), {}
    for variant in variants:
        part = problem.first(max(1, round(variant.share * users)))
        for kind, fill in KINDS.items():
            jobs[f"{variant.name}-{kind}"] = lambda variant=variant, part=part, fill=fill: variant.total(
                part, fill
            )
            scales[f"{variant.name}-{kind}"] = ratings / int(part.offsets[-1])
    rated = slice(0, int(problem.offsets[-1]))
    whole = whole_rounds(
        problem.offsets, problem.items[rated], problem.values[rated], items, dim, LOCAL_STEPS
    )
    jobs |= {f"whole-{kind}": job for kind, job in whole.items()}
    cohorts = [size for size in (200, 1000, 6040) if size <= users] or [users]
    for size in cohorts:
        part, rounds = problem.first(size), users // size
        jobs[f"cohort-{size}"] = lambda part=part, rounds=rounds: [
            fused(part, Fill.AVERAGE) for _ in range(rounds)
        ]
    best = _timed(jobs, repeats)
    seconds = {name: best[name] * scale for name, scale in scales.items()}
    seconds |= {name: best[name] for name in ("sampling", "gather", "read-modify-write")}
    seconds |= {f"whole-{kind}": best[f"whole-{kind}"] for kind in KINDS}
    seconds |= floors(best, ratings, len(problem.fillers.ids), dim, LOCAL_STEPS)
    ours = {kind: seconds[f"fused-{kind}"] for kind in KINDS}
    ratios = {f"floor-{kind}": ours[kind] / seconds[f"floor-{kind}"] for kind in KINDS}
    ratios |= {f"whole-floor-{kind}": best[f"whole-{kind}"] / seconds[f"floor-{kind}"] for kind in KINDS}
    ratios |= {
        f"{variant.name}-{kind}": seconds[f"{variant.name}-{kind}"] / ours[kind]
        for variant in variants
        if variant.name != "fused"
        for kind in KINDS
    }
    for name in dict.fromkeys(key.rpartition("-")[0] for key in tuple(ratios)):
        both = [ratios[f"{name}-{kind}"] for kind in KINDS]
        ratios[name] = max(both) if name.endswith("floor") else min(both)
    return {
        "bench": "mf-round",
        "seconds": seconds,
        "ratios": ratios,
        "seconds_per_client": {
            str(size): best[f"cohort-{size}"] / (size * (users // size)) for size in cohorts
        },
        "notes": _notes(variants, repeats),
    }


def _notes(variants: tuple[Variant, ...], repeats: int) -> list[str]:
    sampled = [
        f"{variant.name}: {variant.share:.0%} of the users, scaled by ratings"
        for variant in variants
        if variant.share < 1
    ]
    return [
        f"one thread, processor time, minimum of {repeats} interleaved repeats; fillers drawn beforehand",
        "whole: through the library, fillers drawn in the round; names without a kind: the worse of the two",
        "floor: the larger of moving the cache lines (gather, read-modify-write) and doing the sums at peak",
        *sampled,
        f"a million people: {MILLION}",
    ]
