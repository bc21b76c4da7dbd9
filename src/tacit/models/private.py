"""Models of one person on side information: a mean, linear, a factorisation machine, a small network.

Each is fitted on one device from its owner's ratings alone. Many devices are computed side by side: the first
axis of a parameter is the client (or one, where all share it), and ratings are padded to equal lengths.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.models.side_information import ItemTable
from tacit.rng import Keyed, normals
from tacit.types import Array, Floats, Index, Long

Parameters = Mapping[str, Any]
_AT_ONCE = 1 << 22
"""Numbers held at once while clients are computed together; speed and memory only."""


@dataclass(frozen=True)
class Places:
    """Some clients side by side: where in the flat columns each one's entries stand; what is not padding."""

    clients: Long
    at: Long
    there: Floats


def side_by_side(offsets: Long, width: int) -> Iterator[Places]:
    """Groups of clients with about equally many entries, so that little is padding.

    A client's group depends on its own length alone, hence its numbers hardly on who else is there.

    Example:
        >>> [place.at.tolist() for place in side_by_side(np.array([0, 2, 2, 3]), 1)]
        [[[2]], [[0, 1]]]
    """
    lengths = np.diff(offsets)
    classes = np.where(lengths > 0, np.ceil(4 * np.log2(np.maximum(lengths, 1))), -1).astype(np.int64)
    for size in np.unique(classes[classes >= 0]):
        members = np.flatnonzero(classes == size)
        longest = int(lengths[members].max())
        step = max(1, _AT_ONCE // max(1, longest * width))
        for start in range(0, len(members), step):
            clients = members[start : start + step]
            column = np.arange(longest)
            there = column < lengths[clients, np.newaxis]
            at = np.where(there, offsets[clients, np.newaxis] + column, offsets[clients, np.newaxis])
            yield Places(clients, at, there.astype(np.float32))


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted: the weight of its squared size, steps and step size of a descent."""

    reg: float
    steps: int = 150
    rate: float = 0.05


class Form(ABC):
    """What a rating looks like as a function of an item's features."""

    @abstractmethod
    def started(self, width: int, mean: Floats, keys: Keyed) -> dict[str, Any]:
        """Parameters before fitting: nothing but the clients' means, and a little noise where that helps."""

    @abstractmethod
    def values(self, parameters: Parameters, inputs: Floats) -> Floats:
        """Predictions, ``clients x entries``, for ``inputs`` of ``clients x entries x width``."""

    @abstractmethod
    def gradient(self, parameters: Parameters, inputs: Floats, errors: Floats) -> dict[str, Any]:
        """The gradient of half the sum of squared errors, where ``errors`` are predictions less ratings."""

    def fitted(
        self, start: Parameters, inputs: Floats, ratings: Floats, there: Floats, fitting: Fitting
    ) -> dict[str, Any]:
        """Minimise ``sum of squared errors + reg * |weights|^2`` for each client; biases are free.

        A fixed number of full steps (Kingma and Ba's method): the same work for everybody.
        """
        now = dict(start)
        count = np.maximum(there.sum(axis=1), 1.0)
        past = {name: (np.zeros_like(now[name]), np.zeros_like(now[name])) for name in now}
        for step in range(1, fitting.steps + 1):
            errors = (self.values(now, inputs) - ratings) * there
            for name, slope in self.gradient(now, inputs, errors).items():
                pull = slope if name.endswith("bias") else slope + fitting.reg * now[name]
                pull = pull / count.reshape(-1, *[1] * (pull.ndim - 1))
                first = 0.9 * past[name][0] + 0.1 * pull
                second = 0.999 * past[name][1] + 0.001 * pull**2
                past[name] = first, second
                size = fitting.rate * (1 - step / (fitting.steps + 1)) / (1 - 0.9**step)
                now[name] = now[name] - size * first / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        return {name: array.astype(np.float32) for name, array in now.items()}


@dataclass(frozen=True)
class OwnMean(Form):
    """One number per person."""

    def started(self, width: int, mean: Floats, keys: Keyed) -> dict[str, Any]:
        """The mean."""
        del width, keys
        return {"bias": mean}

    def values(self, parameters: Parameters, inputs: Floats) -> Floats:
        """The mean, whatever the item."""
        return np.broadcast_to(parameters["bias"][:, np.newaxis], inputs.shape[:2])

    def gradient(self, parameters: Parameters, inputs: Floats, errors: Floats) -> dict[str, Any]:
        """The sum of the errors."""
        del parameters, inputs
        return {"bias": errors.sum(axis=1)}

    def fitted(
        self, start: Parameters, inputs: Floats, ratings: Floats, there: Floats, fitting: Fitting
    ) -> dict[str, Any]:
        """It starts where it ends."""
        del inputs, ratings, there, fitting
        return {"bias": start["bias"].astype(np.float32)}


@dataclass(frozen=True)
class Linear(Form):
    """``b + w . x``: the one-order mask.

    Example:
        >>> parameters = {"bias": np.array([3.0]), "linear": np.array([[1.0, -1.0]])}
        >>> Linear().values(parameters, np.array([[[1.0, 0.0], [0.0, 1.0]]])).tolist()
        [[4.0, 2.0]]
    """

    def started(self, width: int, mean: Floats, keys: Keyed) -> dict[str, Any]:
        """The mean and no weights."""
        del keys
        return {"bias": mean, "linear": np.zeros((len(mean), width), dtype=np.float32)}

    def values(self, parameters: Parameters, inputs: Floats) -> Floats:
        """Dot products."""
        linear = parameters["linear"][:, :, np.newaxis]
        return parameters["bias"][:, np.newaxis] + (inputs @ linear)[:, :, 0]

    def gradient(self, parameters: Parameters, inputs: Floats, errors: Floats) -> dict[str, Any]:
        """Errors, and errors times features."""
        del parameters
        return {"bias": errors.sum(axis=1), "linear": _against(inputs, errors)}

    def fitted(
        self, start: Parameters, inputs: Floats, ratings: Floats, there: Floats, fitting: Fitting
    ) -> dict[str, Any]:
        """Ridge regression in closed form: centring each client's columns sets the bias free."""
        del start
        share = (there / np.maximum(there.sum(axis=1, keepdims=True), 1)).astype(np.float64)
        middle, mean = _against(inputs, share), (share * ratings).sum(axis=1)
        centred = (inputs - middle[:, np.newaxis]) * there[:, :, np.newaxis]
        told = (ratings - mean[:, np.newaxis]) * there
        gram = centred.transpose(0, 2, 1) @ centred + fitting.reg * np.eye(inputs.shape[2])
        linear = np.linalg.solve(gram, _against(centred, told)[:, :, np.newaxis])[:, :, 0]
        bias = mean - (middle * linear).sum(axis=1)
        return {"bias": bias.astype(np.float32), "linear": linear.astype(np.float32)}


@dataclass(frozen=True)
class FactorisationMachine(Form):
    """``b + w . x + sum over pairs f < g of (v_f . v_g) x_f x_g`` (Rendle): the two-order mask.

    Example:
        >>> pair = np.array([[[1.0], [2.0]]])
        >>> parameters = {"bias": np.zeros(1), "linear": np.zeros((1, 2)), "pairs": pair}
        >>> FactorisationMachine(1).values(parameters, np.array([[[1.0, 1.0], [1.0, 0.0]]])).tolist()
        [[2.0, 0.0]]
    """

    dim: int = 4

    def started(self, width: int, mean: Floats, keys: Keyed) -> dict[str, Any]:
        """The mean, no weights, and small random factors: zero ones would never move."""
        drawn = normals(keys, width * self.dim).reshape(len(mean), width, self.dim)
        return {**Linear().started(width, mean, keys), "pairs": (0.05 * drawn).astype(np.float32)}

    def values(self, parameters: Parameters, inputs: Floats) -> Floats:
        """Pairs through the square of the sum less the sum of the squares."""
        pairs = parameters["pairs"]
        both = (inputs @ pairs) ** 2 - inputs**2 @ pairs**2
        return Linear().values(parameters, inputs) + 0.5 * both.sum(axis=2)

    def gradient(self, parameters: Parameters, inputs: Floats, errors: Floats) -> dict[str, Any]:
        """As for the linear part, and each factor's part in its pairs."""
        pairs = parameters["pairs"]
        met = inputs.transpose(0, 2, 1) @ (errors[:, :, np.newaxis] * (inputs @ pairs))
        alone = _against(inputs**2, errors)[:, :, np.newaxis] * pairs
        return {**Linear().gradient(parameters, inputs, errors), "pairs": met - alone}


@dataclass(frozen=True)
class Network(Form):
    """One hidden layer of rectified units: the high-order mask.

    Example:
        >>> parameters = {"bias": np.ones(1), "hidden": np.ones((1, 1, 1)), "hidden.bias": np.zeros((1, 1))}
        >>> Network(1).values(parameters | {"out": np.ones((1, 1))}, np.array([[[2.0], [-2.0]]])).tolist()
        [[3.0, 1.0]]
    """

    hidden: int = 16

    def started(self, width: int, mean: Floats, keys: Keyed) -> dict[str, Any]:
        """The mean, and random layers scaled by what comes in."""
        drawn = normals(keys, (width + 1) * self.hidden).astype(np.float32)
        into, out = drawn[:, : width * self.hidden], drawn[:, width * self.hidden :]
        return {
            "bias": mean,
            "hidden": (into * (2.0 / max(1, width)) ** 0.5).reshape(len(mean), width, self.hidden),
            "hidden.bias": np.zeros((len(mean), self.hidden), dtype=np.float32),
            "out": 0.1 * out,
        }

    def values(self, parameters: Parameters, inputs: Floats) -> Floats:
        """Forward."""
        met = self._met(parameters, inputs)
        return parameters["bias"][:, np.newaxis] + (met @ parameters["out"][:, :, np.newaxis])[:, :, 0]

    def _met(self, parameters: Parameters, inputs: Floats) -> Floats:
        return np.maximum(inputs @ parameters["hidden"] + parameters["hidden.bias"][:, np.newaxis], 0)

    def gradient(self, parameters: Parameters, inputs: Floats, errors: Floats) -> dict[str, Any]:
        """Backward."""
        met = self._met(parameters, inputs)
        back = errors[:, :, np.newaxis] * parameters["out"][:, np.newaxis] * (met > 0)
        return {
            "bias": errors.sum(axis=1),
            "hidden": inputs.transpose(0, 2, 1) @ back,
            "hidden.bias": back.sum(axis=1),
            "out": _against(met, errors),
        }


def _against(inputs: Floats, errors: Floats) -> Floats:
    """``sum over entries of error * input``, client by client."""
    return (inputs.transpose(0, 2, 1) @ errors[:, :, np.newaxis])[:, :, 0]


def fitted(
    form: Form, fitting: Fitting, offsets: Long, inputs: "Lookup", ratings: Floats, keys: Keyed
) -> dict[str, Array]:
    """Every client's own model, from ``ratings[offsets[c] : offsets[c + 1]]``."""
    clients = len(offsets) - 1
    owners = np.repeat(np.arange(clients), np.diff(offsets))
    sums = np.bincount(owners, weights=ratings, minlength=clients)
    mean = (sums / np.maximum(np.diff(offsets), 1)).astype(np.float32)
    found = form.started(inputs.width, mean, keys)
    for group in side_by_side(offsets, inputs.width):
        start = {name: array[group.clients] for name, array in found.items()}
        own = form.fitted(start, inputs.of(group.at), ratings[group.at], group.there, fitting)
        for name, array in own.items():
            found[name][group.clients] = array
    return found


def predicted(form: Form, parameters: Parameters, offsets: Long, inputs: "Lookup") -> Floats:
    """What each client's own model says of its entries, in their order."""
    found = np.zeros(int(offsets[-1]), dtype=np.float32)
    for group in side_by_side(offsets, inputs.width):
        own = {name: array[group.clients] for name, array in parameters.items()}
        there = group.there > 0
        found[group.at[there]] = form.values(own, inputs.of(group.at))[there]
    return found


@dataclass(frozen=True)
class Lookup:
    """The features of a flat column of items, looked up when they are needed."""

    table: ItemTable
    items: Index

    @property
    def width(self) -> int:
        """How many features an item has."""
        return self.table.width

    def of(self, at: Long) -> Floats:
        """The features of the items at some positions."""
        return self.table.of(self.items[at])
