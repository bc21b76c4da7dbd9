"""Several steps of gradient descent along one aggregate, as FMF-LDP takes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.schedule import Decaying
from tacit.server.step import ServerStep
from tacit.types import Array, Floats


@dataclass(frozen=True)
class RepeatedDescent(ServerStep):
    """``steps`` times ``V <- V - rate (gradient + 2 reg V)`` with the same gradient: nobody is asked again.

    Example:
        >>> step = RepeatedDescent(Decaying(0.5), steps=2)
        >>> step.step({"items": np.ones((1, 2))}, {"round": {"items": np.ones((1, 2))}}, {}, 0)[0]["items"]
        array([[0., 0.]])
    """

    schedule: Decaying
    reg: float = 0.0
    steps: int = 1
    table: str = "items"

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """All steps of a round."""
        rate = self.schedule.at(round)
        before: Floats = shared[self.table]
        table: Any = before.astype(np.float64)
        gradient: Any = sum(gradients[self.table] for gradients in totals.values())
        for _ in range(self.steps):
            table = table - rate * (gradient + 2.0 * self.reg * table)
        return {**shared, self.table: table.astype(before.dtype)}, state
