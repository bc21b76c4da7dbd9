"""PrivRec's network for many clients at once, in torch: every parameter has the client as its first axis.

A parameter that all clients share has a first axis of one. The first layer factors: its weights times the
embeddings make a small table of rows, one per feature value, and a group's input is the sum of its rows
(Eq. 1 of PrivRec, with concatenation written as a sum of blocks). The optional id part
adds ``p_u . q_i + b_i``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tacit.models.encoding import Encoding, Field
from tacit.rng import Keys, normals
from tacit.types import Array

Parameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of the network. ``embedding=0`` folds embedding and first layer into one row per value.

    ``ids`` numbers per item beside the network (0: items are known by their features alone).
    """

    embedding: int = 64
    hidden: tuple[int, ...] = (64, 32, 16, 8)
    units: Literal["relu", "sigmoid"] = "relu"
    head: Literal["sigmoid", "linear"] = "sigmoid"
    ids: int = 0


@dataclass(frozen=True)
class Net:
    """A shape on an encoding, ready to compute: one design per group, and each item's group under ids."""

    shape: Shape
    encoding: Encoding
    designs: Tensor
    cells: Tensor | None


def net_of(shape: Shape, encoding: Encoding, device: str = "cpu") -> Net:
    """The network's public tables on a device."""
    designs = torch.from_numpy(encoding.designs).to(device)
    groups = torch.from_numpy(encoding.groups.astype(np.int64)).to(device)
    return Net(shape, encoding, designs, groups if shape.ids else None)


@dataclass(frozen=True)
class Task:
    """What some clients learn from: weight and target of each cell, and the clients' own designs.

    A cell is a group of items with equal features, or one item where the network knows ids.
    """

    weights: Tensor
    targets: Tensor
    profiles: Tensor


def started(shape: Shape, encoding: Encoding, catalogue: int, keys: Keys) -> dict[str, Array]:
    """The first parameters, the same for the same keys."""
    sizes = dict(_sizes(shape, encoding, catalogue))
    return {name: _drawn(name, size, spread, keys) for name, (size, spread) in sizes.items()}


def names(shape: Shape, encoding: Encoding, catalogue: int) -> tuple[str, ...]:
    """What the parameters are called."""
    return tuple(name for name, _ in _sizes(shape, encoding, catalogue))


def _drawn(name: str, size: tuple[int, ...], spread: float, keys: Keys) -> Array:
    if spread == 0:
        return np.zeros(size, dtype=np.float32)
    rows = size[0] if size else 1
    own = keys.users(np.arange(rows, dtype=np.int32), f"init/{name}")
    return (spread * normals(own, max(1, int(np.prod(size[1:]))))).reshape(size).astype(np.float32)


def _sizes(
    shape: Shape, encoding: Encoding, catalogue: int
) -> list[tuple[str, tuple[tuple[int, ...], float]]]:
    """Names, shapes and starting spreads: fan-in scaling, with each slot adding its share."""
    found: list[tuple[str, tuple[tuple[int, ...], float]]] = []
    if shape.hidden:
        width = shape.hidden[0]
        slots = sum(field.slots for field in (*encoding.people, *encoding.items)) or 1
        for side, fields in (("people", encoding.people), ("items", encoding.items)):
            for field in fields:
                found += _field_sizes(f"{side}.{field.name}", field, shape.embedding, width, slots)
        found.append(("hidden.0.bias", ((width,), 0.0)))
        for layer, (fan_in, fan_out) in enumerate(zip(shape.hidden[:-1], shape.hidden[1:], strict=True), 1):
            found.append((f"hidden.{layer}.weight", ((fan_in, fan_out), (_gain(shape) / fan_in) ** 0.5)))
            found.append((f"hidden.{layer}.bias", ((fan_out,), 0.0)))
        found.append(("output.weight", ((shape.hidden[-1], 1), (3 * shape.hidden[-1]) ** -0.5)))
    found.append(("output.bias", ((1,), 0.0)))
    if shape.ids:
        found.append(("ids.items", ((catalogue, shape.ids), 0.1)))
        found.append(("ids.bias", ((catalogue,), 0.0)))
    return found


def _gain(shape: Shape) -> float:
    return 1 / 3 if shape.units == "relu" else 16.0  # a sigmoid's slope is at most a quarter


def _field_sizes(
    name: str, field: Field, embedding: int, width: int, slots: int
) -> list[tuple[str, tuple[tuple[int, ...], float]]]:
    if embedding == 0 or field.kind == "number":
        return [(f"{name}.rows", ((field.width, width), (3 * slots) ** -0.5))]
    return [
        (f"{name}.embedding", ((field.slots, field.rows, embedding), 1.0)),
        (f"{name}.weight", ((field.slots, embedding, width), (3 * slots * embedding) ** -0.5)),
    ]


def _table(parameters: Parameters, side: str, fields: Sequence[Field]) -> Tensor:
    """The rows that feature values add to the first hidden layer: clients x rows x width."""
    parts = []
    for field in fields:
        name = f"{side}.{field.name}"
        if f"{name}.rows" in parameters:
            parts.append(parameters[f"{name}.rows"])
        else:
            rows = parameters[f"{name}.embedding"] @ parameters[f"{name}.weight"]
            parts.append(rows.flatten(1, 2))
    return torch.cat(parts, dim=1)


def own_rows(parameters: Parameters, encoding: Encoding, profiles: Tensor) -> Tensor:
    """What each client's own features add to the first hidden layer: clients x width."""
    if not encoding.people:
        return torch.zeros(len(profiles), parameters["hidden.0.bias"].shape[-1], device=profiles.device)
    return (profiles.unsqueeze(1) @ _table(parameters, "people", encoding.people)).squeeze(1)


def logits(parameters: Parameters, net: Net, own: Tensor | None) -> Tensor:
    """Scores of every cell for every client.

    ``own`` is the clients' part of the first layer; parameters named ``own.*`` replace or add to the
    clients' parts where a device has adapted them.
    """
    parts: list[Tensor] = [parameters["output.bias"]]
    if net.shape.hidden:
        found = _deep(parameters, net, own)
        parts.append(found if net.cells is None else found[:, net.cells])
    if net.shape.ids:
        parts.append(parameters["ids.bias"])
        if "own.taste" in parameters:
            parts.append(_products(parameters["own.taste"], parameters["ids.items"]))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _products(tastes: Tensor, items: Tensor) -> Tensor:
    if len(items) == 1:
        return tastes @ items[0].T
    return (items @ tastes.unsqueeze(2)).squeeze(2)


def item_rows(parameters: Parameters, net: Net) -> Tensor:
    """What each group's features add to the first hidden layer, with its bias: clients x groups x width."""
    first = parameters["hidden.0.bias"].unsqueeze(1)
    if not net.encoding.items:
        return first.expand(-1, len(net.designs), -1)
    rows = _table(parameters, "items", net.encoding.items)
    return first + torch.einsum("gr,nrh->ngh", net.designs, rows)


def _deep(parameters: Parameters, net: Net, own: Tensor | None) -> Tensor:
    bend = torch.relu if net.shape.units == "relu" else torch.sigmoid
    first = item_rows(parameters, net)
    for part in (own, parameters.get("own.row")):
        if part is not None:
            first = first + part.unsqueeze(1)
    x = bend(first)
    for layer in range(1, len(net.shape.hidden)):
        weight, bias = parameters[f"hidden.{layer}.weight"], parameters[f"hidden.{layer}.bias"]
        x = bend(x @ weight + bias.unsqueeze(1))
    return (x @ parameters["output.weight"]).squeeze(-1)


def losses(shape: Shape, scores: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """Each client's weighted mean loss: cross-entropy (Eq. 2), or half the squared error of a linear head."""
    if shape.head == "sigmoid":
        each = functional.softplus(scores) - targets * scores
    else:
        each = (scores - targets) ** 2 / 2
    return (weights * each).sum(1) / weights.sum(1).clamp_min(1e-12)


@dataclass(frozen=True)
class Descent:
    """How a device trains: ``steps`` full steps of its mean loss with a term ``reg`` to stay near (Eq. 7).

    Where there are ids, the device first finds its owner's vector by ``own_steps`` steps that cannot
    overshoot, with items as they came and ``own_reg`` as ridge in samples. ``id_rate`` multiplies the summed
    loss's gradient for item rows: each row meets few of a client's samples.
    """

    steps: int
    rate: float
    reg: float = 0.0
    id_rate: float = 0.1
    own_steps: int = 10
    own_reg: float = 1.0


def descended(
    start: Parameters, net: Net, task: Task, how: Descent, *,
    only: Sequence[str] | None = None, graph: bool = False,
) -> dict[str, Tensor]:  # fmt: skip
    """Every client's parameters after its own training, all clients together and none touching another.

    ``start`` holds one copy (or one per client); ``only`` names what is trained (everything by default).
    ``graph=True`` keeps the way back to ``start``, for second-order meta-gradients.
    """
    clients = len(task.weights)
    if net.shape.ids:
        start = {**start, "own.taste": tastes(start, net, task, how)}
    trained = [name for name in start if name != "own.taste"] if only is None else list(only)
    first = {name: start[name].expand(clients, *start[name].shape[1:]) for name in trained}
    now = first if graph else {name: value.clone().requires_grad_() for name, value in first.items()}
    for _ in range(how.steps if trained else 0):
        total = task_losses({**start, **now}, net, task).sum()
        slopes = torch.autograd.grad(
            total, [now[name] for name in trained], create_graph=graph, allow_unused=True
        )
        found = {
            name: slope
            for name, slope in zip(trained, slopes, strict=True)
            if slope is not None  # pyright: ignore[reportUnnecessaryComparison] - None where unused
        }
        if graph:
            now = {name: _moved(name, value, found, first, task, how) for name, value in now.items()}
        else:
            _move(now, found, first, task, how)
    own = {"own.taste": start["own.taste"]} if net.shape.ids else {}
    return own | {name: value if graph else value.detach() for name, value in now.items()}


@torch.no_grad()
def tastes(start: Parameters, net: Net, task: Task, how: Descent) -> Tensor:
    """Each client's own vector for the items as they are: clients x ids.

    The curvature of the cross-entropy is at most a quarter per sample, so steps with that fixed matrix only
    ever lower the loss (Boehning and Lindsay 1988), and one factorisation serves them all.
    """
    items, clients = start["ids.items"][0], len(task.weights)
    own = own_rows(start, net.encoding, task.profiles) if net.shape.hidden else None
    base = logits(start, net, own).expand(clients, -1)
    most = 0.25 if net.shape.head == "sigmoid" else 1.0
    square = (items.unsqueeze(2) * items.unsqueeze(1)).flatten(1)
    width = items.shape[1]
    curvature = (most * task.weights @ square).reshape(clients, width, width)
    curvature = curvature + how.own_reg * torch.eye(width, dtype=items.dtype, device=items.device)
    if not bool(torch.isfinite(curvature).all()):
        return items.new_full((clients, width), torch.nan)
    inverse = torch.linalg.inv(curvature)
    found = items.new_zeros((clients, width))
    for _ in range(how.own_steps):
        scores = base + found @ items.T
        misses = (torch.sigmoid(scores) if net.shape.head == "sigmoid" else scores) - task.targets
        slope = (task.weights * misses) @ items + how.own_reg * found
        found = found - (inverse @ slope.unsqueeze(2)).squeeze(2)
    return found


def _moved(
    name: str, value: Tensor, slopes: Parameters, first: Parameters, task: Task, how: Descent
) -> Tensor:
    """One step, as a new tensor that knows where it came from."""
    move = _scale(name, task, how) * slopes[name] if name in slopes else torch.zeros_like(value)
    return value - move - how.rate * how.reg * (value - first[name])


@torch.no_grad()
def _move(now: Parameters, slopes: Parameters, first: Parameters, task: Task, how: Descent) -> None:
    """The same step in place: parameters of many clients are much memory to copy."""
    for name, value in now.items():
        if how.reg:
            value.lerp_(first[name], how.rate * how.reg)
        if name in slopes:
            scale = _scale(name, task, how)
            value.add_(slopes[name], alpha=-scale) if isinstance(scale, float) else value.sub_(
                scale * slopes[name]
            )


def _scale(name: str, task: Task, how: Descent) -> Tensor | float:
    if name in {"ids.items", "ids.bias"}:
        samples = how.id_rate * task.weights.sum(1)
        return samples.reshape(-1, 1, 1) if name == "ids.items" else samples.reshape(-1, 1)
    return how.rate


def task_losses(parameters: Parameters, net: Net, task: Task) -> Tensor:
    """Each client's loss on its task."""
    own = own_rows(parameters, net.encoding, task.profiles) if net.shape.hidden else None
    return losses(net.shape, logits(parameters, net, own), task.weights, task.targets)


def on(device: str, arrays: Mapping[str, Array]) -> dict[str, Tensor]:
    """Shared arrays as parameters of all clients."""
    return {
        name: torch.from_numpy(np.ascontiguousarray(array)).to(device).unsqueeze(0)
        for name, array in arrays.items()
    }
