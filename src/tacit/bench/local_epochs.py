"""Local epochs of a cohort: the kernels of this library, careful loops, and the style of public code.

200 clients, 5 epochs, 4 fresh negatives per item, all sampling included, on a synthetic log with the shape
of MovieLens 1M. Factorisation (32 numbers, batches of 512) and the neural recommender (32 + 128 numbers and
a 256-128-64-32 tower, Adam). One thread, processor time, the shortest of interleaved repeats.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.bench.local_epochs_ways import Epochs, Factors, Neural, careful, numpy_rows, public
from tacit.bench.mf_round import synthetic
from tacit.errors import TacitError
from tacit.local.logistic_factors import LogisticFactors
from tacit.local.neural_epochs import NeuralEpochs
from tacit.local.work import Broadcast, LocalWork
from tacit.models.neural_cf import NeuralCF
from tacit.rng import SeededKeys
from tacit.types import Cohort, Floats

RATINGS_PER_CLIENT = 166
KEYS = SeededKeys(0)


def _cohort(cohort: Epochs) -> Cohort:
    users = np.arange(cohort.clients, dtype=np.int32)
    return Cohort(
        users, cohort.offsets, cohort.items, np.ones(len(cohort.items), np.float32), cohort.catalogue
    )


def _ours(
    work: LocalWork, shared: Mapping[str, Any], private: Mapping[str, Any], cohort: Epochs
) -> Callable[[], object]:
    received, clients = work.prepared(Broadcast(0, shared)), _cohort(cohort)
    return lambda: work.run(received, private, clients, None, KEYS)


def factorisation(cohort: Epochs, dim: int) -> dict[str, Callable[[], object]]:
    """Every way to factorise."""
    table: Floats = np.random.default_rng(1).normal(0, 0.1, (cohort.catalogue, dim)).astype(np.float32)
    whole = torch.from_numpy(table)

    def made(rows: Tensor | None) -> Factors:
        return Factors(whole if rows is None else whole[rows])

    def descent(model: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), cohort.rate)

    work = LogisticFactors(dim, cohort.rate, cohort.epochs, cohort.batch, cohort.negatives)
    people = np.full((cohort.clients, dim), 0.1, np.float32)
    return {
        "mf-ours": _ours(work, {"items": table}, {"user": people}, cohort),
        "mf-careful": lambda: careful(cohort, made, descent, "sum", ("items.weight",)),
        "mf-numpy": lambda: numpy_rows(cohort, table),
        "mf-public": lambda: public(cohort, made, descent, "sum"),
    }


def neural(cohort: Epochs, model: NeuralCF) -> dict[str, Callable[[], object]]:
    """Every way to train the neural recommender."""
    shared = model.shared(cohort.catalogue, KEYS)
    private = model.private(np.arange(cohort.clients, dtype=np.int32), KEYS)
    product, tower = torch.from_numpy(shared["gmf"]), torch.from_numpy(shared["mlp"])

    def made(rows: Tensor | None) -> Neural:
        return Neural(product, tower) if rows is None else Neural(product[rows], tower[rows])

    def adam(net: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(net.parameters(), cohort.rate)

    def ours(kind: Any) -> NeuralEpochs:
        return NeuralEpochs(cohort.rate, cohort.epochs, cohort.batch, cohort.negatives, model.depth, kind)

    ways: dict[str, Callable[[], object]] = {
        "neural-ours": _ours(ours("dense"), shared, private, cohort),
        "neural-ours-lazy": _ours(ours("lazy"), shared, private, cohort),
        "neural-careful": lambda: careful(cohort, made, adam, "mean", ("gmf.weight", "mlp.weight")),
        "neural-public": lambda: public(cohort, made, adam, "mean"),
    }
    if torch.cuda.is_available():
        ways["neural-ours-gpu"] = _ours(ours("dense").on("cuda"), shared, private, cohort)
        ways["neural-ours-lazy-gpu"] = _ours(ours("lazy").on("cuda"), shared, private, cohort)
    return ways


def _timed(jobs: Mapping[str, Callable[[], object]], repeats: Mapping[str, int]) -> dict[str, float]:
    """The shortest of a job's repeats, interleaved, after one that compiles; wall time on an accelerator."""
    best = dict.fromkeys(jobs, float("inf"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for turn in range(1 + max(repeats.values())):
            for name, job in jobs.items():
                if turn > repeats[name]:
                    continue
                clock = time.perf_counter if name.endswith("gpu") else time.process_time
                start = clock()
                job()
                if turn > 0 or repeats[name] == 0:
                    best[name] = min(best[name], clock() - start)
    finally:
        torch.set_num_threads(before)
    return best


def run(
    *,
    clients: int = 200,
    neural_clients: int = 50,
    items: int = 3706,
    dim: int = 32,
    epochs: int = 5,
    repeats: int = 5,
    model: NeuralCF | None = None,
) -> dict[str, Any]:
    """Measure every way in one process; ratios are their time over ours.

    Example:
        >>> tiny = NeuralCF(4, (8, 4, 4, 2))
        >>> found = run(clients=3, neural_clients=2, items=600, dim=4, epochs=1, repeats=1, model=tiny)
        >>> found["bench"], sorted(found["ratios"])[:3]
        ('local-epochs', ['mf-careful', 'mf-numpy', 'mf-public'])
    """
    if repeats < 1 or not 0 < neural_clients <= clients:
        raise TacitError(
            f"{repeats} repeats of {clients} and {neural_clients} clients", "give 1 or more of each"
        )
    log = synthetic(clients, items, clients * min(RATINGS_PER_CLIENT, items // 2), dim, 0)
    wide = Epochs(log.offsets, log.items, items, epochs, 512, 4, 1e-3)
    few = Epochs(log.offsets[: neural_clients + 1], log.items, items, epochs, 512, 4, 5e-4)
    jobs = factorisation(wide, dim) | neural(few, model or NeuralCF())
    slow = {"mf-public": 1, "mf-careful": 2, "mf-numpy": 2, "neural-public": 1, "neural-careful": 1}
    best = _timed(jobs, {name: min(repeats, slow.get(name, repeats)) for name in jobs})
    ratios = {
        name: best[name] / best["mf-ours"] for name in best if name.startswith("mf-") and name != "mf-ours"
    }
    for name in (
        "neural-careful",
        "neural-public",
        "neural-ours-lazy",
        "neural-ours-gpu",
        "neural-ours-lazy-gpu",
    ):
        if name in best:
            ratios[name] = best[name] / best["neural-ours"]
    ratios["neural-careful-over-lazy"] = best["neural-careful"] / best["neural-ours-lazy"]
    return {
        "bench": "local-epochs",
        "seconds": best,
        "ratios": ratios,
        "notes": _notes(clients, neural_clients),
    }


def _notes(clients: int, neural_clients: int) -> list[str]:
    gpu = "" if torch.cuda.is_available() else "; no GPU here, so no figure for one"
    return [
        f"{clients} clients factorise, {neural_clients} train the network; all sampling is inside",
        "one thread, processor time (wall time on a GPU), minimum of interleaved repeats",
        "lazy: running means of item rows move when a batch touches them, which is another optimiser than "
        "the careful loop's",
        f"a careful loop over networks is full of arithmetic already: little is left to win on a CPU{gpu}",
    ]
