"""What the server does with a total: one step of an optimiser."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.schedule import Decaying
from tacit.types import Array


class ServerStep(ABC):
    """``step(shared, totals, state, round) -> shared, state``; values in, values out."""

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The optimiser's own arrays."""
        del shared
        return {}

    @abstractmethod
    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """The shared arrays and the optimiser's after one step."""


@dataclass(frozen=True)
class Descent(ServerStep):
    """``table -= rate * gradient`` for every table in the totals; rows nobody sent stay put.

    Example:
        >>> import numpy as np
        >>> step = Descent(Decaying(0.5))
        >>> step.step({"items": np.ones((1, 2))}, {"round": {"items": np.ones((1, 2))}}, {}, 0)[0]["items"]
        array([[0.5, 0.5]])
    """

    schedule: Decaying

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """One step of gradient descent."""
        rate = self.schedule.at(round)
        after: dict[str, Any] = dict(shared)
        for gradients in totals.values():
            for name, gradient in gradients.items():
                table = after[name]
                after[name] = table - (rate * gradient).astype(table.dtype)
        return after, state
