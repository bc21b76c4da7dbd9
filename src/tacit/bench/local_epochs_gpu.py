"""The neural recommender's local epochs on an accelerator, with NumPy and torch alone.

``python -m tacit.bench.local_epochs_gpu`` needs neither Numba nor the command line. 200 clients, 5 epochs, 4
negatives per item, on a log with the shape of MovieLens 1M; NeuMF of 32 + 128 numbers and a 256-128-64-32
tower, Adam, batches of 512. Samples are drawn beforehand, once for all ways. *ours* trains groups of clients
of one size side by side; *careful* is a loop over clients with a module and an optimiser each.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tacit.bench.local_epochs_ways import Epochs, Neural, careful, sampled
from tacit.errors import TacitError
from tacit.local.neural_steps import Networks, alike, trained
from tacit.models.neural_cf import TABLES, NeuralCF, layers
from tacit.rng import SeededKeys
from tacit.types import Floats, Index, Long

RATINGS_PER_CLIENT = 166
LEARNING_RATE = 5e-4


@dataclass(frozen=True)
class Prepared:
    """Samples of a whole cohort, back to back, and the rows that each client touches."""

    starts: Long
    room: Long
    counts: Long
    slots: Index
    labels: Floats
    touched: tuple[Index, ...]

    @classmethod
    def of(cls, drawn: Sequence[tuple[Tensor, Tensor, Tensor]]) -> "Prepared":
        """From each client's touched items, places among them and labels."""
        room = np.array([places.shape[1] for _, places, _ in drawn], dtype=np.int64)
        epochs = drawn[0][1].shape[0]
        return cls(
            np.cumsum(room * epochs) - room * epochs,
            room,
            np.repeat(room[:, np.newaxis], epochs, axis=1),
            np.concatenate([places.numpy().reshape(-1) for _, places, _ in drawn]).astype(np.int32),
            np.concatenate([labels.numpy().reshape(-1) for _, _, labels in drawn]),
            tuple(touched.numpy().astype(np.int32) for touched, _, _ in drawn),
        )


def histories(clients: int, items: int, mean: int, seed: int = 0) -> tuple[Long, Index]:
    """Ragged histories: lengths log-normal as in MovieLens, items by a falling popularity."""
    generator = np.random.default_rng(seed)
    lengths = np.clip(generator.lognormal(np.log(mean) - 0.5, 1.0, clients), 20, items // 2).astype(int)
    weights = (np.arange(items) + 50.0) ** -1.0
    own = [
        np.sort(generator.choice(items, size=int(length), replace=False, p=weights / weights.sum()))
        for length in np.minimum(lengths, items // 2)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(mine) for mine in own])]).astype(np.int64)
    return offsets, np.concatenate(own).astype(np.int32)


def side_by_side(
    samples: Prepared,
    shared: Mapping[str, Any],
    private: Mapping[str, Any],
    batch: int,
    *,
    most: int,
    adam: Literal["lazy", "dense"],
    device: str,
) -> dict[str, Floats]:
    """Our way: the sum of all clients' changes, array by array."""
    network = layers(sum(name.startswith("layer") and name.endswith("weight") for name in shared))
    total: dict[str, Any] = {name: np.zeros(shared[name].shape, np.float32) for name in (*TABLES, *network)}
    for group in alike(samples, batch, most):
        ids = np.concatenate([samples.touched[client] for client in group])
        lengths = np.array([len(samples.touched[client]) for client in group])
        start = Networks.of(shared, private, group, ids, network)
        after = trained(
            start,
            samples,
            group,
            np.cumsum(lengths) - lengths,
            LEARNING_RATE,
            batch,
            adam=adam,
            device=device,
        )
        for name in TABLES:
            np.add.at(total[name], ids, after.rows[name] - start.rows[name])
        for name in network:
            total[name] += (after.whole[name] - start.whole[name]).sum(axis=0)
    return total


def one_by_one(
    cohort: Epochs, drawn: Sequence[tuple[Tensor, Tensor, Tensor]], shared: Mapping[str, Any], device: str
) -> dict[str, Tensor]:
    """A careful loop with everything on the device."""
    product, tower = (torch.from_numpy(shared[name]).to(device) for name in TABLES)

    def made(rows: Tensor | None) -> Neural:
        assert rows is not None
        return Neural(product[rows], tower[rows], shared)

    def adam(net: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(net.parameters(), LEARNING_RATE)

    return careful(cohort, made, adam, "mean", ("gmf.weight", "mlp.weight"), drawn, device)


def _timed(job: Callable[[], object], device: str, repeats: int) -> float:
    """The shortest wall time of some repeats, after one that warms up."""
    best = float("inf")
    for turn in range(repeats + 1):
        start = time.perf_counter()
        job()
        if device == "cuda":
            torch.cuda.synchronize()
        if turn or not repeats:
            best = min(best, time.perf_counter() - start)
    return best


def run(
    *,
    clients: int = 200,
    items: int = 3706,
    epochs: int = 5,
    batch: int = 512,
    repeats: int = 2,
    device: str = "cuda",
    model: NeuralCF | None = None,
) -> dict[str, Any]:
    """Measure both ways on the device, and the careful loop on one thread of the CPU beside.

    Example:
        >>> tiny = NeuralCF(4, (8, 4, 2, 1))
        >>> found = run(clients=3, items=100, epochs=1, repeats=1, device="cpu", model=tiny)
        >>> sorted(found["ratios"])[0]
        'careful'
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise TacitError("no CUDA device is available", "run this benchmark on a machine that has one")
    model, keys = model or NeuralCF(), SeededKeys(0)
    offsets, own = histories(clients, items, RATINGS_PER_CLIENT)
    cohort = Epochs(offsets, own, items, epochs, batch, 4, LEARNING_RATE)
    generator = np.random.default_rng(0)
    drawn = [sampled(cohort, client, generator) for client in range(clients)]
    samples = Prepared.of(drawn)
    shared: dict[str, Any] = model.shared(items, keys)
    private: dict[str, Any] = model.private(np.arange(clients, dtype=np.int32), keys)
    seconds: dict[str, float] = {}
    for kind in ("dense", "lazy"):
        for most in (16, 64, clients):
            seconds[f"ours-{kind}-{most}"] = _timed(
                lambda kind=kind, most=most: side_by_side(
                    samples, shared, private, batch, most=most, adam=kind, device=device
                ),
                device,
                repeats,
            )
    seconds["careful"] = _timed(lambda: one_by_one(cohort, drawn, shared, device), device, min(1, repeats))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds["careful-cpu"] = _timed(lambda: one_by_one(cohort, drawn, shared, "cpu"), "cpu", 0)
    finally:
        torch.set_num_threads(threads)
    ours = min(value for name, value in seconds.items() if name.startswith("ours-dense"))
    lazy = min(value for name, value in seconds.items() if name.startswith("ours-lazy"))
    ratios = {"careful": seconds["careful"] / ours, "careful-cpu": seconds["careful-cpu"] / ours}
    ratios["careful-over-lazy"] = seconds["careful"] / lazy
    ratios["careful-cpu-over-lazy"] = seconds["careful-cpu"] / lazy
    where = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    return {
        "bench": "local-epochs-gpu",
        "device": where,
        "seconds": seconds,
        "ratios": ratios,
        "notes": [
            f"{clients} clients, {len(own)} interactions, {epochs} epochs on {where}; wall time, shortest of "
            f"{repeats}; copies to the device and back inside, sampling outside",
            "ours-dense is exact Adam over a client's rows, ours-lazy moves the touched rows only; "
            "the number is how many clients train side by side at most",
            "careful-cpu: the loop on one thread of this machine's CPU, once",
        ],
    }


if __name__ == "__main__":
    import sys

    sys.stdout.write(json.dumps(run()) + "\n")
