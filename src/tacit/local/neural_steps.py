"""Steps of Adam for several clients' networks side by side, written out.

Gradients of ``-log σ(±score)``, mean over a client's batch. Everything has the client as its first axis; the
rows that clients hold lie back to back, with one spare row at the end that padding points to. Nothing here
needs a compiled kernel: NumPy and torch are enough, on a CPU or an accelerator.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from tacit.kernels.one_thread import one_thread
from tacit.models.neural_cf import TABLES
from tacit.types import Floats, Index, Long

BETA_1, BETA_2, TINY = 0.9, 0.999, 1e-8


class Drawn(Protocol):
    """Samples: client ``c`` reads ``counts[c, e]`` of them in epoch ``e`` from ``starts[c] + e * room[c]``.

    Each has a slot, the place of its item among the rows the client touches, and a label.
    """

    @property
    def starts(self) -> Long:
        """Where each client's samples begin."""
        ...

    @property
    def room(self) -> Long:
        """How many places an epoch of each client takes."""
        ...

    @property
    def counts(self) -> Long:
        """How many samples each client has in each epoch."""
        ...

    @property
    def slots(self) -> Index:
        """Places among the touched rows."""
        ...

    @property
    def labels(self) -> Floats:
        """One for an own item, zero for another."""
        ...


@dataclass(frozen=True)
class Networks:
    """Item rows back to back, and every other array once per client."""

    rows: dict[str, Any]
    whole: dict[str, Any]

    @classmethod
    def of(
        cls,
        shared: Mapping[str, Any],
        mine: Mapping[str, Any],
        group: Index,
        ids: Index,
        network: Sequence[str],
    ) -> "Networks":
        """What a group of clients starts from."""
        rows = {name: shared[name][ids] for name in TABLES}
        whole = {name: np.repeat(shared[name][np.newaxis], len(group), axis=0) for name in network}
        return cls(rows, whole | {name: array[group] for name, array in mine.items()})


class Adam:
    """Running means of one array, for all clients of a group; ``lazy`` arrays are moved row by row."""

    def __init__(self, array: Tensor) -> None:
        self.array = array
        self.mean = torch.zeros_like(array)
        self.square = torch.zeros_like(array)

    def move(self, gradient: Tensor, rate: float, step: int) -> None:
        """One step of all numbers."""
        self.mean.lerp_(gradient, 1 - BETA_1)
        self.square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        size = self.square.sqrt().div_((1 - BETA_2**step) ** 0.5).add_(TINY)
        self.array.addcdiv_(self.mean, size, value=-rate / (1 - BETA_1**step))

    def move_rows(self, rows: Tensor, gradient: Tensor, rate: float, step: int) -> None:
        """One step of some rows, as torch's SparseAdam takes it; the others keep value and means."""
        mean = self.mean.index_select(0, rows).lerp_(gradient, 1 - BETA_1)
        square = self.square.index_select(0, rows).mul_(BETA_2)
        square.addcmul_(gradient, gradient, value=1 - BETA_2)
        self.mean.index_copy_(0, rows, mean)
        self.square.index_copy_(0, rows, square)
        length = rate * (1 - BETA_2**step) ** 0.5 / (1 - BETA_1**step)
        self.array.index_add_(0, rows, mean.div_(square.sqrt_().add_(TINY)), alpha=-length)


@one_thread()
def trained(
    start: Networks,
    samples: Drawn,
    group: Index,
    first_rows: Long,
    rate: float,
    batch: int,
    *,
    adam: Literal["lazy", "dense"],
    device: str,
) -> Networks:
    """Every epoch and batch of a group whose clients have equally many batches."""
    spare = {
        name: np.concatenate([rows, np.zeros((1, rows.shape[1]), rows.dtype)])
        for name, rows in start.rows.items()
    }
    tables = {name: Adam(torch.from_numpy(rows).to(device)) for name, rows in spare.items()}
    whole = {name: Adam(torch.from_numpy(np.array(array)).to(device)) for name, array in start.whole.items()}
    padding, step = len(spare[TABLES[0]]) - 1, 0
    for epoch in range(samples.counts.shape[1]):
        for done in range(0, int(samples.counts[group, epoch].max(initial=0)), batch):
            rows, labels, weights = _batch(samples, group, first_rows, epoch, done, batch, padding)
            step += 1
            _step(
                tables, whole, torch.from_numpy(rows).to(device), torch.from_numpy(labels).to(device),
                torch.from_numpy(weights).to(device), rate, step, lazy=adam == "lazy",
            )  # fmt: skip
    return Networks(
        {name: state.array[:padding].cpu().numpy() for name, state in tables.items()},
        {name: state.array.cpu().numpy() for name, state in whole.items()},
    )


def _batch(
    samples: Drawn, group: Index, first_rows: Long, epoch: int, done: int, batch: int, padding: int
) -> tuple[Any, Any, Any]:
    """Rows, labels and weights (one over the client's batch, zero where padded) of one batch."""
    sizes = np.clip(samples.counts[group, epoch] - done, 0, batch)
    rows = np.full((len(group), int(sizes.max())), padding, dtype=np.int64)
    labels, weights = np.zeros(rows.shape, np.float32), np.zeros(rows.shape, np.float32)
    for place, (client, size) in enumerate(zip(group, sizes, strict=True)):
        at = samples.starts[client] + epoch * samples.room[client] + done
        rows[place, :size] = samples.slots[at : at + size] + first_rows[place]
        labels[place, :size] = samples.labels[at : at + size]
        weights[place, :size] = 1 / max(1, size)
    return rows, labels, weights


def _step(
    tables: Mapping[str, Adam],
    whole: Mapping[str, Adam],
    rows: Tensor,
    labels: Tensor,
    weights: Tensor,
    rate: float,
    step: int,
    *,
    lazy: bool,
) -> None:
    """Forward, backward and one step of Adam, everything from the old values."""
    now = {name: state.array for name, state in whole.items()}
    depth = sum(name.endswith("weight") for name in now) - 1
    flat = rows.reshape(-1)
    items = {name: tables[name].array.index_select(0, flat).view(*rows.shape, -1) for name in TABLES}
    width = items["mlp"].shape[2]
    first = now["layer1.weight"]
    person = torch.baddbmm(now["layer1.bias"][:, None], now["mlp_user"][:, None], first[:, :width])
    acts = [torch.baddbmm(person, items["mlp"], first[:, width:]).relu_()]
    for number in range(2, depth + 1):
        bias, weight = now[f"layer{number}.bias"][:, None], now[f"layer{number}.weight"]
        acts.append(torch.baddbmm(bias, acts[-1], weight).relu_())
    of_product, of_tower = now["out.weight"].split([items["gmf"].shape[2], acts[-1].shape[2]], dim=1)
    from_product = (now["gmf_user"] * of_product)[:, :, None]
    score = torch.baddbmm(now["out.bias"][:, None], items["gmf"], from_product)
    score = score.baddbmm_(acts[-1], of_tower[:, :, None])[:, :, 0]
    error = torch.sigmoid(score).sub_(labels).mul_(weights)[:, :, None]

    gradients = {"out.bias": error.sum(1)}
    against = torch.bmm(items["gmf"].transpose(1, 2), error)[:, :, 0]
    gradients["out.weight"] = torch.cat(
        [against * now["gmf_user"], torch.bmm(acts[-1].transpose(1, 2), error)[:, :, 0]], dim=1
    )
    gradients["gmf_user"] = against * of_product
    to_rows = {"gmf": torch.bmm(error, from_product.transpose(1, 2))}
    back = torch.bmm(error, of_tower[:, None]).mul_(acts[-1] > 0)
    for number in range(depth, 1, -1):
        gradients[f"layer{number}.bias"] = back.sum(1)
        gradients[f"layer{number}.weight"] = torch.bmm(acts[number - 2].transpose(1, 2), back)
        back = torch.bmm(back, now[f"layer{number}.weight"].transpose(1, 2)).mul_(acts[number - 2] > 0)
    summed = back.sum(1)
    gradients["layer1.bias"] = summed
    gradients["layer1.weight"] = torch.cat(
        [now["mlp_user"][:, :, None] * summed[:, None], torch.bmm(items["mlp"].transpose(1, 2), back)], dim=1
    )
    gradients["mlp_user"] = torch.bmm(summed[:, None], first[:, :width].transpose(1, 2))[:, 0]
    to_rows["mlp"] = torch.bmm(back, first[:, width:].transpose(1, 2))

    touched, place = torch.unique(flat, return_inverse=True)
    for name, gradient in to_rows.items():
        table, wide = tables[name], gradient.reshape(len(flat), -1)
        if lazy:
            total = torch.zeros((len(touched), wide.shape[1]), device=wide.device).index_add_(0, place, wide)
            table.move_rows(touched, total, rate, step)
        else:
            table.move(torch.zeros_like(table.array).index_add_(0, flat, wide), rate, step)
    for name, gradient in gradients.items():
        whole[name].move(gradient, rate, step)


def alike(samples: Drawn, batch: int, most: int) -> Iterator[Index]:
    """Groups of at most ``most`` clients with equally many batches in every epoch, similar in size.

    Example:
        >>> from tacit.kernels.logistic import draw_samples
        >>> offsets, keys = np.array([0, 1, 2]), np.array([1, 2], "u8")
        >>> drawn = draw_samples(offsets, np.array([0, 1], "i4"), keys, negatives=1, epochs=2, catalogue=5)
        >>> [group.tolist() for group in alike(drawn, 8, 4)]
        [[0, 1]]
    """
    batches = -(-samples.counts // batch)
    order = np.lexsort((np.arange(len(batches)), samples.counts.sum(axis=1), *batches.T[::-1]))
    start = 0
    for at in range(1, len(order) + 1):
        over = at == len(order) or at - start == most
        if over or (batches[order[at]] != batches[order[start]]).any():
            yield order[start:at].astype(np.int32)
            start = at
