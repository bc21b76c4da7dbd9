"""Arrays that the server sets once to what it was told, beside those that an optimiser moves."""

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.server.step import ServerStep
from tacit.types import Array


@dataclass(frozen=True)
class Keeping(ServerStep):
    """Total ``told`` replaces the shared arrays it names; all other totals go to ``inner``.

    Example:
        >>> import numpy as np
        >>> from tacit.schedule import Decaying
        >>> from tacit.server.step import Descent
        >>> step = Keeping(Descent(Decaying(1.0)), "mean")
        >>> step.step({"m": np.zeros(1)}, {"mean": {"m": np.array([3.5])}}, {}, 0)[0]["m"]
        array([3.5])
    """

    inner: ServerStep
    told: str

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The inner optimiser's arrays."""
        return self.inner.init(shared)

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Set what was told, then step on the rest."""
        others = {into: total for into, total in totals.items() if into != self.told}
        after, state = self.inner.step(shared, others, state, round) if others else (dict(shared), state)
        for name, array in totals.get(self.told, {}).items():
            after[name] = array.astype(after[name].dtype)
        return after, state
