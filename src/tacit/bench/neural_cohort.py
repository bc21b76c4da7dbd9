"""PrivRec's local training: clients side by side on counts, against loops over clients and raw samples.

30 clients, 20 epochs, ML-1M's shape: 3,706 films with 301 sets of 18 genres, 166 positives per client and
four unseen films for each, embeddings of 64, hidden layers 64-32-16-8 and 256-128-64-32. One thread,
processor time, the shortest of interleaved repeats. The loss depends on a client through counts per set of
features alone, and the first layer is a small table of rows; both are used by every way that says counts.

On a CUDA device the absolute time of a round with 10,000 clients is measured as well; this module asks for
torch and NumPy only, so that :func:`accelerated` runs wherever these are.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.models.counts import Reading
from tacit.models.encoding import Encoding, encoded
from tacit.models.features import together
from tacit.models.network import Descent, Net, Shape, Task, descended, net_of, on, started, task_losses
from tacit.rng import SeededKeys
from tacit.types import Array, Cohort, Segment

CATALOGUE, SETS, GENRES = 3706, 301, 18
POSITIVES, NEGATIVES = 166, 4
SMALL, LARGE = (64, 32, 16, 8), (256, 128, 64, 32)
PEOPLE = {"age": 7, "gender": 2, "occupation": 21}
Job = Callable[[], object]


@dataclass(frozen=True)
class Problem:
    """A cohort at work: the network, where it starts, and the same samples counted and raw."""

    net: Net
    how: Descent
    shared: Mapping[str, Array]
    weights: Array
    targets: Array
    profiles: Array
    samples: tuple[tuple[Tensor, Tensor], ...]

    def start(self, device: str = "cpu") -> dict[str, Tensor]:
        """The shared parameters, ready to be trained from."""
        return on(device, self.shared)

    def task(self, rows: slice, device: str = "cpu") -> Task:
        """Some of the clients."""
        parts = (self.weights[rows], self.targets[rows], self.profiles[rows])
        return Task(*(torch.from_numpy(part).to(device) for part in parts))


def problem(
    clients: int,
    epochs: int,
    hidden: tuple[int, ...],
    *,
    raw: bool = True,
    sets: int = SETS,
    embedding: int = 64,
) -> Problem:
    """Random people, films and samples of ML-1M's shape."""
    draw = np.random.default_rng(0)
    encoding = _films(draw, sets)
    people = {f"about/{name}": draw.integers(0, size, clients, dtype="i4") for name, size in PEOPLE.items()}
    cohort, drawn = _histories(draw, clients, people)
    counts = Reading(negatives=float(NEGATIVES)).counts(cohort, encoding.groups, drawn)
    shape = Shape(embedding, hidden)
    shared = started(shape, encoding, CATALOGUE, SeededKeys(0))
    samples = tuple(_samples(cohort, drawn, encoding)) if raw else ()
    return Problem(
        net_of(shape, encoding), Descent(epochs, 0.3, 0.01), shared,
        counts.weights, counts.targets, encoding.profiles(cohort), samples,
    )  # fmt: skip


def _films(draw: np.random.Generator, sets: int) -> Encoding:
    """A catalogue whose films have so many distinct sets of genres."""
    codes = draw.choice(1 << GENRES, sets, replace=False)
    kinds = (codes[:, np.newaxis] >> np.arange(GENRES)) & 1
    of_film = np.concatenate([np.arange(sets), draw.integers(0, sets, CATALOGUE - sets)])
    films = Features(flags={"genres": kinds[of_film].astype(np.uint8)})
    nobody = np.zeros(0, dtype=np.int32)
    labels = {name: tuple(map(str, range(size))) for name, size in PEOPLE.items()}
    return encoded(films, Features(categories=dict.fromkeys(PEOPLE, nobody), labels=labels), CATALOGUE)


def _histories(
    draw: np.random.Generator, clients: int, people: Mapping[str, Array]
) -> tuple[Cohort, Segment]:
    """Everybody's positives and unseen films."""
    each = POSITIVES * (1 + NEGATIVES)
    chosen = np.stack([draw.permutation(CATALOGUE)[:each] for _ in range(clients)]).astype(np.int32)
    own = np.sort(chosen[:, :POSITIVES], axis=1).reshape(-1)
    offsets = np.arange(clients + 1, dtype=np.int64) * POSITIVES
    users = np.arange(clients, dtype=np.int32)
    lengths = np.full(clients, POSITIVES * NEGATIVES, dtype=np.int64)
    unseen = Segment(np.cumsum(lengths) - lengths, lengths, chosen[:, POSITIVES:].reshape(-1))
    ones = np.ones(len(own), dtype=np.float32)
    return Cohort(users, offsets, own, ones, CATALOGUE, extras=dict(people)), unseen


def _samples(cohort: Cohort, drawn: Segment, encoding: Encoding) -> list[tuple[Tensor, Tensor]]:
    """Each client's samples as codes, one per feature slot, and labels."""
    flags = encoding.designs[:, 1::2].astype(np.int64)[encoding.groups]
    found = []
    for client in range(len(cohort)):
        own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
        at = drawn.starts[client]
        items = np.concatenate([own, drawn.ids[at : at + drawn.lengths[client]]])
        me = np.array([cohort.extras[f"about/{name}"][client] for name in PEOPLE])
        codes = np.concatenate([np.tile(me, (len(items), 1)), flags[items]], axis=1)
        labels = (np.arange(len(items)) < len(own)).astype(np.float32)
        found.append((torch.from_numpy(codes), torch.from_numpy(labels)))
    return found


def side_by_side(given: Problem, device: str = "cpu") -> dict[str, Tensor]:
    """All clients together: the sum of what they would send."""
    start, total = given.start(device), {name: torch.zeros(a.shape) for name, a in given.shared.items()}
    total = {name: tensor.to(device) for name, tensor in total.items()}
    net = given.net if device == "cpu" else net_of(given.net.shape, given.net.encoding, device)
    numbers = 4 * (len(net.designs) * sum(net.shape.hidden) + sum(a.size for a in given.shared.values()))
    for rows in together(len(given.weights), numbers, device):
        ended = descended(start, net, given.task(rows, device), given.how)
        for name, tensor in ended.items():
            total[name] += (tensor - start[name]).sum(0)
    return total


def one_by_one(given: Problem) -> dict[str, Tensor]:
    """A loop over clients, each on its counts."""
    start, total = given.start(), {name: torch.zeros(a.shape) for name, a in given.shared.items()}
    for client in range(len(given.weights)):
        ended = descended(start, given.net, given.task(slice(client, client + 1)), given.how)
        for name, tensor in ended.items():
            total[name] += tensor[0] - start[name][0]
    return total


def mapped(given: Problem) -> dict[str, Tensor]:
    """The same with ``torch.func``: one client's gradient, mapped over clients."""
    start, task, how = given.start(), given.task(slice(None)), given.how
    flat = {name: tensor[0] for name, tensor in start.items()}

    def loss(now: dict[str, Tensor], weights: Tensor, targets: Tensor, profile: Tensor) -> Tensor:
        alone = Task(weights.unsqueeze(0), targets.unsqueeze(0), profile.unsqueeze(0))
        wide = {name: tensor.unsqueeze(0) for name, tensor in now.items()}
        return task_losses(wide, given.net, alone).sum()

    slopes = torch.func.vmap(torch.func.grad(loss))
    now = {name: tensor.expand(len(task.weights), *tensor.shape).clone() for name, tensor in flat.items()}
    for _ in range(how.steps):
        found = slopes(now, task.weights, task.targets, task.profiles)
        now = {
            name: value - how.rate * (found[name] + how.reg * (value - flat[name]))
            for name, value in now.items()
        }
    return {name: (value - flat[name]).sum(0) for name, value in now.items()}


def raw_samples(given: Problem) -> dict[str, Tensor]:
    """A careful loop over clients on raw samples: all embeddings looked up at once, then layer upon layer."""
    flat = {name: tensor[0] for name, tensor in given.start().items()}
    slots = [f"people.{name}" for name in PEOPLE] + ["items.genres"]
    lookups, weights = [f"{slot}.embedding" for slot in slots], [f"{slot}.weight" for slot in slots]
    rest = [name for name in flat if name not in {*lookups, *weights}]
    start = {name: flat[name] for name in rest}
    start["table"] = torch.cat([flat[name].flatten(0, 1) for name in lookups])
    start["first"] = torch.cat([flat[name].flatten(0, 1) for name in weights])
    total = {name: torch.zeros_like(tensor) for name, tensor in start.items()}
    sizes = torch.tensor([*PEOPLE.values(), *([2] * GENRES)])
    offsets, how = torch.cumsum(sizes, 0) - sizes, given.how
    for codes, labels in given.samples:
        rows = codes + offsets
        now = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
        for _ in range(how.steps):
            looked = functional.embedding(rows, now["table"]).flatten(1)
            x = torch.relu(looked @ now["first"] + now["hidden.0.bias"])
            for layer in range(1, len(given.net.shape.hidden)):
                x = torch.relu(x @ now[f"hidden.{layer}.weight"] + now[f"hidden.{layer}.bias"])
            scores = (x @ now["output.weight"])[:, 0] + now["output.bias"]
            loss = functional.binary_cross_entropy_with_logits(scores, labels)
            found = torch.autograd.grad(loss, list(now.values()))
            with torch.no_grad():
                for slope, (name, value) in zip(found, now.items(), strict=True):
                    value -= how.rate * (slope + how.reg * (value - start[name]))
        for name, value in now.items():
            total[name] += value.detach() - start[name]
    return {name: total[name] for name in rest} | _cut(total, flat, lookups, weights)


def _cut(
    total: Mapping[str, Tensor], flat: Mapping[str, Tensor], lookups: list[str], weights: list[str]
) -> dict[str, Tensor]:
    """The joined tables back in the parts that they were."""
    found = {}
    for joined, names in (("table", lookups), ("first", weights)):
        lengths = [flat[name].shape[0] * flat[name].shape[1] for name in names]
        for name, part in zip(names, total[joined].split(lengths), strict=True):
            found[name] = part.reshape(flat[name].shape)
    return found


def accelerated(
    clients: int = 10_000, epochs: int = 20, repeats: int = 3, device: str = "cuda"
) -> dict[str, float]:
    """Seconds of a round of so many clients on an accelerator, for both networks (the shortest of repeats).

    Samples are counted beforehand, as devices would; the server's sum of all updates is inside.
    """
    found = {}
    for label, hidden in (("small", SMALL), ("large", LARGE)):
        given = problem(clients, epochs, hidden, raw=False)
        best = float("inf")
        for _ in range(1 + repeats):
            _settled(device)
            began = time.perf_counter()
            side_by_side(given, device)
            _settled(device)
            best = min(best, time.perf_counter() - began)
        found[f"{label}-{clients}-clients-gpu"] = best
    return found


def _settled(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _timed(jobs: Mapping[str, Job], repeats: int) -> dict[str, float]:
    best = dict.fromkeys(jobs, float("inf"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for turn in range(1 + repeats):
            for name, job in jobs.items():
                began = time.process_time()
                job()
                if turn:
                    best[name] = min(best[name], time.process_time() - began)
    finally:
        torch.set_num_threads(before)
    return best


def run(*, clients: int = 30, epochs: int = 20, repeats: int = 3, tiny: bool = False) -> dict[str, Any]:
    """Measure every way in one process; ratios are their time over ours.

    Example:
        >>> found = run(clients=2, epochs=1, repeats=1, tiny=True)
        >>> found["bench"], sorted(found["ratios"])[:2]
        ('neural-cohort', ['large-counts-loop', 'large-raw-samples'])
    """
    if clients < 1 or epochs < 1 or repeats < 1:
        raise TacitError(f"{repeats} repeats of {clients} clients, {epochs} epochs", "give 1 or more of each")
    jobs: dict[str, Job] = {}
    for label, hidden in (("small", (4, 3) if tiny else SMALL), ("large", (5, 3) if tiny else LARGE)):
        given = problem(clients, epochs, hidden, embedding=3 if tiny else 64)
        ways = {"ours": side_by_side, "counts-loop": one_by_one, "vmap": mapped, "raw-samples": raw_samples}
        jobs |= {f"{label}-{name}": _bound(way, given) for name, way in ways.items()}
    best = _timed(jobs, repeats)
    ratios = {name: best[name] / best[f"{name.partition('-')[0]}-ours"] for name in best}
    ratios = {name: ratio for name, ratio in ratios.items() if not name.endswith("ours")}
    if torch.cuda.is_available():
        best |= accelerated(epochs=epochs)
    gpu = "" if torch.cuda.is_available() else "; no GPU here, so no figure for one"
    notes = [
        f"{clients} clients, {epochs} epochs of full batches, {POSITIVES * (1 + NEGATIVES)} samples each; "
        "small is 64-32-16-8, large 256-128-64-32",
        "one thread, processor time, minimum of interleaved repeats" + gpu,
        "counts-loop and vmap use the counts too: where a layer fills the processor by itself, clients side "
        "by side win nothing over a loop, and none is claimed",
    ]
    return {"bench": "neural-cohort", "seconds": best, "ratios": ratios, "notes": notes}


def _bound(way: Callable[[Problem], object], given: Problem) -> Job:
    return lambda: way(given)
