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


@dataclass(frozen=True)
class Interpolation(ServerStep):
    """``table += rate * mean update``: part of the way from the old model to where devices would have it.

    Noise on the update goes through ``rate`` with it. ``momentum`` keeps a running sum of past steps; it
    works on what was released already, so it costs no privacy.

    Example:
        >>> import numpy as np
        >>> step = Interpolation(0.5)
        >>> step.step({"w": np.ones(2)}, {"round": {"w": np.ones(2)}}, {}, 0)[0]["w"]
        array([1.5, 1.5])
    """

    rate: float
    momentum: float = 0.0

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """Past steps, where there is momentum."""
        return {name: array * 0 for name, array in shared.items()} if self.momentum else {}

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """One step towards the mean of the devices' models."""
        del round
        after: dict[str, Any] = dict(shared)
        past: dict[str, Any] = dict(state)
        for updates in totals.values():
            for name, update in updates.items():
                move: Any = update
                if self.momentum:
                    move = past[name] = (self.momentum * past[name] + update).astype(past[name].dtype)
                after[name] = after[name] + (self.rate * move).astype(after[name].dtype)
        return after, past


@dataclass(frozen=True)
class AdamInterpolation(ServerStep):
    """The mean update as Adam's (negative) gradient: steps of about ``rate`` for every number.

    It works on what was released already, so it costs no privacy.

    Example:
        >>> import numpy as np
        >>> step, shared = AdamInterpolation(0.5), {"w": np.ones(2)}
        >>> step.step(shared, {"round": {"w": np.array([2.0, -8.0])}}, step.init(shared), 0)[0]["w"].round(3)
        array([1.5, 0.5])
    """

    rate: float
    decay: float = 1.0
    first: float = 0.9
    second: float = 0.99
    tiny: float = 1e-8

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """Both moments of every table, at zero."""
        return {
            f"{moment}/{name}": array * 0 for name, array in shared.items() for moment in ("first", "second")
        }

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """One step on every table in the totals."""
        after: dict[str, Any] = dict(shared)
        past: dict[str, Any] = dict(state)
        rate = self.rate * self.decay**round / (1 - self.first ** (round + 1))
        for updates in totals.values():
            for name, found in updates.items():
                table = after[name]
                update: Any = found.astype(table.dtype)
                first = self.first * past[f"first/{name}"] + (1 - self.first) * update
                second = self.second * past[f"second/{name}"] + (1 - self.second) * update**2
                past[f"first/{name}"], past[f"second/{name}"] = first, second
                size = (second / (1 - self.second ** (round + 1))) ** 0.5 + self.tiny
                after[name] = (table + rate * first / size).astype(table.dtype)
        return after, past
