"""One epoch of FMF-LDP: only the entries that are reported, against whole gradients, in one run.

A synthetic log at MovieLens 20M's shape (75,040 people, 9,781 items, 17.4 million interactions), 5 factors,
100 reports a person. *lazy* computes user vectors, the reported entries, one bit each and their sum. The
others compute each person's whole clipped gradient first, as published code does, then the same. *round* is
the library's whole round (messages, bytes, claims, shuffling), *round-rotated* the same about entries of
rotated gradients, and *train* is 20 rounds for 50,000 people.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tacit.data import load
from tacit.data.interactions import by_user
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.kernels.closed_form import closed_form, shared_gram
from tacit.kernels.reports import add_reports, draw_entries, entry_values, one_bit_reports
from tacit.methods.fmf_ldp import fmf_ldp
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.types import Floats, Index, Long

EPSILON, REG, DIM = 2.5, 1e-6, 5
CHUNK = 512
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Epoch:
    """Everybody's items, the item table, and random words for entries and bits of a chunk's people."""

    offsets: Long
    items: Index
    table: Floats
    reports: int
    words: tuple[Words, Words]

    def chunk(self, first: int, last: int) -> tuple[Long, Index]:
        """The histories of some neighbours in the list."""
        offsets = self.offsets[first : last + 1]
        return offsets - offsets[0], self.items[offsets[0] : offsets[-1]]


@dataclass(frozen=True)
class Variant:
    """A way to turn an epoch's people into net counts of bits; ``share`` of them are run and scaled up."""

    name: str
    run: Callable[[Epoch, int], Long]
    share: float = 1.0


def lazy(epoch: Epoch, people: int) -> Long:
    """The entries that are reported, and nothing else."""
    net, gram = np.zeros(epoch.table.size, dtype=np.int64), shared_gram(epoch.table)
    for first in range(0, people, CHUNK):
        last = min(first + CHUNK, people)
        offsets, items = epoch.chunk(first, last)
        x = closed_form(offsets, items, epoch.table, gram, alpha=0.0, reg=REG).factors
        draws, coins = (words[: last - first] for words in epoch.words)
        entries = draw_entries(draws, net.size)
        values = entry_values(offsets, items, entries, x, epoch.table, alpha=0.0)
        add_reports(net, one_bit_reports(coins, entries, values, epsilon=EPSILON, scale=1.0))
    return net


def numpy_full(epoch: Epoch, people: int) -> Long:
    """A loop over people with NumPy inside: the whole gradient, clipped, then its reported entries."""
    V = epoch.table.astype(np.float64)
    net, gram = np.zeros(V.size, dtype=np.int64), V.T @ V + REG * np.eye(DIM)
    for person in range(people):
        draws, coins = (words[person % CHUNK] for words in epoch.words)
        offsets, items = epoch.chunk(person, person + 1)
        x = np.linalg.solve(gram, V[items[: offsets[1]]].sum(axis=0))
        p = np.zeros(len(V))
        p[items] = 1.0
        gradient = np.clip(-2.0 * np.outer(p - V @ x, x), -1.0, 1.0)
        entries = (draws >> np.uint64(11)) * 2.0**-53 * net.size
        chosen = entries.astype(np.int64)
        chance = 0.5 + 0.5 * np.tanh(EPSILON / 2) * gradient.ravel()[chosen]
        bits = (coins >> np.uint64(11)) * 2.0**-53 < chance
        np.add.at(net, chosen, np.where(bits, 1, -1))
    return net


@njit(cache=True)
def _whole(offsets, items, table, factors, seen, gradient, draws, coins, slope, net) -> None:  # noqa: ANN001
    dim = table.shape[1]
    for person in range(len(offsets) - 1):
        for position in range(offsets[person], offsets[person + 1]):
            seen[items[position]] = person + 1
        for item in range(len(table)):
            score = np.float32(0.0)
            for f in range(dim):
                score += factors[person, f] * table[item, f]
            residual = np.float32(1.0 if seen[item] == person + 1 else 0.0) - score
            for f in range(dim):
                value = np.float32(-2.0) * residual * factors[person, f]
                gradient[item * dim + f] = min(max(value, np.float32(-1.0)), np.float32(1.0))
        for report in range(draws.shape[1]):
            entry = np.int64((draws[person, report] >> np.uint64(11)) * 2.0**-53 * len(gradient))
            coin = (coins[person, report] >> np.uint64(11)) * 2.0**-53
            net[entry] += 1 if coin < 0.5 + 0.5 * slope * gradient[entry] else -1


def native_full(epoch: Epoch, people: int) -> Long:
    """The same, compiled: every person's whole gradient in one room, its reported entries picked."""
    net, gram = np.zeros(epoch.table.size, dtype=np.int64), shared_gram(epoch.table)
    room, seen = np.empty(epoch.table.size, dtype=np.float32), np.zeros(len(epoch.table), dtype=np.int32)
    for first in range(0, people, CHUNK):
        last = min(first + CHUNK, people)
        offsets, items = epoch.chunk(first, last)
        x = closed_form(offsets, items, epoch.table, gram, alpha=0.0, reg=REG).factors
        seen[:] = 0
        draws, coins = epoch.words
        _whole(offsets, items, epoch.table, x, seen, room, draws, coins, np.tanh(EPSILON / 2), net)
    return net


VARIANTS = (
    Variant("lazy", lazy),
    Variant("numpy-full-gradient", numpy_full, share=0.01),
    Variant("native-full-gradient", native_full, share=0.1),
)


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _rounds(
    federation: Federation, reports: int, rounds: int, threads: int, *, rotated: bool = False
) -> Callable[[], object]:
    method = fmf_ldp(mode="corrected" if rotated else "as-published", k=reports, rounds=rounds, n_min=2)

    def work() -> None:
        world = new_world(method, federation, SeededKeys(1), Execution(threads))
        for _ in range(rounds):
            one_round(world)

    return work


def run(
    *,
    users: int = 75_040,
    items: int = 9781,
    trained: int = 50_000,
    epochs: int = 20,
    reports: int = 100,
    repeats: int = 3,
    threads: int = 1,
) -> dict[str, Any]:
    """Measure an epoch each way and say how much longer the others take than reported entries alone.

    Example:
        >>> found = run(users=40, items=500, trained=20, epochs=1, reports=5, repeats=1)
        >>> found["bench"], sorted(found["ratios"])
        ('ldp-round', ['native-full-gradient', 'numpy-full-gradient'])
    """
    if repeats < 1 or not 0 < trained <= users:
        raise TacitError(
            f"{repeats} repeats, {trained} of {users} people", "measure at least once, with some"
        )
    spec = f"demo:shape=ml-20m,times=no,users={users},items={items}"
    data = load(f"{spec},mean=60" if items < 1000 else spec)
    offsets, columns, _ = by_user(data.interactions, data.users)
    table = np.random.default_rng(1).normal(0, 0.01, (items, DIM)).astype(np.float32)
    keys, everybody = SeededKeys(1), np.arange(CHUNK, dtype=np.int32)
    words = keys.words(everybody, "entries", 0, reports), keys.words(everybody, "coins", 0, reports)
    epoch = Epoch(offsets, columns, table, reports, words)
    sizes = {variant.name: min(users, max(1, round(variant.share * users))) for variant in VARIANTS}
    best = dict.fromkeys(sizes, float("inf"))
    with threadpool_limits(1):
        for turn in range(repeats + 1):
            for variant in VARIANTS:
                spent = _seconds(lambda variant=variant: variant.run(epoch, sizes[variant.name]))
                if turn > 0:
                    best[variant.name] = min(best[variant.name], spent)
    seconds = {name: spent * users / sizes[name] for name, spent in best.items()}
    ones = np.ones(len(columns), dtype=np.float32)
    whole = Federation(offsets, columns, ones, items)
    cut = int(offsets[trained])
    part = Federation(offsets[: trained + 1], columns[:cut], ones[:cut], items)
    seconds["round"] = min(_seconds(_rounds(whole, reports, 1, threads)) for _ in range(repeats))
    turned = _rounds(whole, reports, 1, threads, rotated=True)
    seconds["round-rotated"] = min(_seconds(turned) for _ in range(repeats))
    seconds[f"train-{epochs}-epochs-{trained}-people"] = _seconds(_rounds(part, reports, epochs, threads))
    ratios = {name: seconds[name] / seconds["lazy"] for name in sizes if name != "lazy"}
    return {
        "bench": "ldp-round",
        "seconds": seconds,
        "ratios": ratios,
        "notes": _notes(users, repeats, threads),
    }


def _notes(users: int, repeats: int, threads: int) -> list[str]:
    sampled = [
        f"{variant.name}: {variant.share:.0%} of the people, scaled by their number"
        for variant in VARIANTS
        if variant.share < 1
    ]
    return [
        f"{users} people; processor time, minimum of {repeats} interleaved repeats; rounds on {threads} "
        "thread(s)",
        "all variants start from the same random words and give the same counts for the same people",
        "round and train include messages, byte counts, claims and the proxy's shuffling",
        *sampled,
    ]
