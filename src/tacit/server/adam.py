"""Adam at the server: steps of about the same size for every coordinate, however large its gradient."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.schedule import Decaying
from tacit.server.step import ServerStep
from tacit.types import Array, Floats


@dataclass(frozen=True)
class Adam(ServerStep):
    """Kingma and Ba's method on every table in the totals, with ``2 reg table`` added to its gradient.

    Example:
        >>> step = Adam(Decaying(0.5))
        >>> table = {"items": np.ones((1, 2))}
        >>> state = step.init(table)
        >>> after, state = step.step(table, {"round": {"items": np.array([[2.0, -8.0]])}}, state, 0)
        >>> after["items"].round(3)
        array([[0.5, 1.5]])
    """

    schedule: Decaying
    reg: float = 0.0
    first: float = 0.9
    second: float = 0.999
    tiny: float = 1e-8
    table: str = "items"

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """Both moments at zero."""
        shape = shared[self.table].shape
        return {
            "first": np.zeros(shape),
            "second": np.zeros(shape),
            "steps": np.zeros(1, dtype=np.int64),
        }

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """One step on the sum of all totals of the table."""
        table: Floats = shared[self.table]
        gradient: Any = 2.0 * self.reg * table.astype(np.float64)
        for gradients in totals.values():
            gradient = gradient + gradients[self.table]
        steps = int(state["steps"][0]) + 1
        first: Any = self.first * state["first"] + (1 - self.first) * gradient
        second: Any = self.second * state["second"] + (1 - self.second) * gradient**2
        size = self.schedule.at(round) / (1 - self.first**steps)
        change = size * first / (np.sqrt(second / (1 - self.second**steps)) + self.tiny)
        after = {**shared, self.table: (table - change).astype(table.dtype)}
        return after, {"first": first, "second": second, "steps": np.array([steps])}
