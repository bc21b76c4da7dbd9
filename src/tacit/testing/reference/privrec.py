"""PrivRec's network and its training as slow loops: one person, one raw sample at a time, in doubles.

The network is written as Eq. 1 prints it: the embeddings of a person's and an item's features one after the
other, then layer upon layer; the first layer's weight is what stands in the parameters, block by block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Parameters = Mapping[str, Tensor]
Sample = tuple[int, float]


@dataclass(frozen=True)
class Slot:
    """One looked-up embedding: where its numbers are, which row, and what the row is multiplied by."""

    name: str
    slot: int
    row: int
    scale: float = 1.0


@dataclass(frozen=True)
class Way:
    """How a device trains in the slow loop: Algorithm 1's steps, rate and proximal term."""

    layers: int
    units: str
    steps: int
    rate: float
    reg: float


def looked_up(parameters: Parameters, slots: Sequence[Slot]) -> tuple[Tensor, Tensor]:
    """All embeddings one after the other, and the first layer's weight with its blocks in the same order.

    Example:
        >>> rows = {"items.year.rows": torch.tensor([[2.0, 3.0]])}
        >>> [part.tolist() for part in looked_up(rows, [Slot("items.year", 0, 0, 0.5)])]
        [[0.5], [[2.0, 3.0]]]
    """
    inputs, blocks = [torch.zeros(0, dtype=torch.float64)], []
    for slot in slots:
        if f"{slot.name}.rows" in parameters:  # embedding and first layer folded into one row
            inputs.append(torch.tensor([slot.scale], dtype=torch.float64))
            blocks.append(parameters[f"{slot.name}.rows"][slot.row : slot.row + 1])
        else:
            inputs.append(slot.scale * parameters[f"{slot.name}.embedding"][slot.slot, slot.row])
            blocks.append(parameters[f"{slot.name}.weight"][slot.slot])
    return torch.cat(inputs), torch.cat(blocks)


def score(parameters: Parameters, slots: Sequence[Slot], layers: int, units: str) -> Tensor:
    """Eq. 1: what the network says of one person and one item, before the sigmoid."""
    bend = torch.relu if units == "relu" else torch.sigmoid
    x, weight = looked_up(parameters, slots)
    x = bend(x @ weight + parameters["hidden.0.bias"])
    for layer in range(1, layers):
        x = bend(x @ parameters[f"hidden.{layer}.weight"] + parameters[f"hidden.{layer}.bias"])
    return (x @ parameters["output.weight"])[0] + parameters["output.bias"][0]


def loss(
    parameters: Parameters, person: Sequence[Slot], items: Mapping[int, Sequence[Slot]],
    samples: Sequence[Sample], way: Way,
) -> Tensor:  # fmt: skip
    """Eq. 2: the mean cross-entropy over raw samples ``(item, target)``."""
    total = torch.zeros((), dtype=torch.float64)
    for item, target in samples:
        chance = torch.sigmoid(score(parameters, [*person, *items[item]], way.layers, way.units))
        total = total - (target * torch.log(chance) + (1 - target) * torch.log(1 - chance))
    return total / len(samples)


def reptile(
    start: Parameters, person: Sequence[Slot], items: Mapping[int, Sequence[Slot]],
    samples: Sequence[Sample], way: Way,
) -> dict[str, Tensor]:  # fmt: skip
    """Algorithm 1, lines 10 to 19, with the loss at the device's own parameters: its change of them."""
    now = {name: tensor.clone() for name, tensor in start.items()}
    for _ in range(way.steps):
        at = {name: tensor.detach().requires_grad_() for name, tensor in now.items()}
        near = sum(((at[name] - start[name]) ** 2).sum() for name in at)
        total = loss(at, person, items, samples, way) + way.reg / 2 * near
        slopes = torch.autograd.grad(total, list(at.values()), allow_unused=True)
        now = {
            name: tensor.detach()
            if slope is None  # pyright: ignore[reportUnnecessaryComparison] - None where unused
            else tensor.detach() - way.rate * slope
            for (name, tensor), slope in zip(at.items(), slopes, strict=True)
        }
    return {name: now[name] - start[name] for name in start}
