"""A sub-model: the rows of the item table that are worth sending, chosen from how often items are met.

The choice lives among the server's arrays: ``selected`` marks the chosen items, ``frequency`` is the estimate
it rests on. Rows that were never chosen still hold their random start. Ranked by it they would win, because
training pushes the scores of unmet items below zero and theirs stay near it; so they are put last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.account.local import keep_probability
from tacit.errors import TacitError
from tacit.models.model import Scorer
from tacit.types import Array, Floats, Index

Unselected = Literal["last", "frequency", "untrained"]


def nothing_chosen_yet(catalogue: int) -> dict[str, Array]:
    """The server's arrays before anybody was asked: all rows, no estimate."""
    return {
        "selected": np.ones(catalogue, dtype=np.uint8),
        "frequency": np.zeros(catalogue, dtype=np.float32),
    }


def estimated_frequencies(told: Floats, epsilon: float) -> Floats:
    """The likeliest true frequencies behind randomised answers (DP-SUB, Eq. 8), held within 0 and 1.

    Example:
        >>> keep = keep_probability(2.0)
        >>> true = np.array([0.0, 0.25])
        >>> np.round(estimated_frequencies(true * keep + (1 - true) * (1 - keep), 2.0), 6).tolist()
        [0.0, 0.25]
    """
    keep = keep_probability(epsilon)
    return np.clip((told + keep - 1) / (2 * keep - 1), 0, 1)


def chosen(frequencies: Floats, threshold: float) -> NDArray[np.bool_]:
    """The items met more often than ``threshold``.

    Example:
        >>> chosen(np.array([0.1, 0.2, 0.6]), 0.3).tolist()
        [False, False, True]
    """
    found = frequencies > threshold
    if not found.any():
        raise TacitError(
            "no item is met often enough for the sub-model", "lower the threshold, or raise epsilon"
        )
    return found


@dataclass(frozen=True)
class Selected:
    """What is sent of the shared arrays: the chosen rows of ``tables``, one bit per item, ``whole`` arrays.

    Example:
        >>> shared = {"items": np.arange(6.0).reshape(3, 2), "selected": np.array([0, 1, 1], "u1")}
        >>> Selected(("items",))(shared)["items"].tolist()
        [[2.0, 3.0], [4.0, 5.0]]
    """

    tables: tuple[str, ...]
    whole: tuple[str, ...] = ()

    def __call__(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The sub-model."""
        rows = shared["selected"].astype(bool)
        parts: dict[str, Any] = {name: shared[name][rows] for name in self.tables}
        parts |= {name: shared[name] for name in self.whole}
        return {**parts, "selected": np.packbits(rows)}


@dataclass(frozen=True)
class SelectedFirst:
    """Another model's scores, with the items that were never sent put last or ordered by their frequency."""

    inner: Scorer
    selected: NDArray[np.bool_]
    frequency: Floats
    unselected: Unselected

    def scores(self, users: Index) -> Floats:
        """One row of scores per user."""
        found = np.array(self.inner.scores(users))
        if self.unselected == "untrained" or self.selected.all():
            return found
        below = found[:, self.selected].min(axis=1, keepdims=True) - 1
        rest = ~self.selected
        order = self.frequency[rest] - 1 if self.unselected == "frequency" else np.zeros(int(rest.sum()))
        found[:, rest] = below + order.astype(found.dtype)
        return found

    def predict(self, users: Index, items: Index) -> Floats:
        """One score per pair, as the inner model gives it."""
        return self.inner.predict(users, items)
