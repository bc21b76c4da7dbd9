"""Canaries: people whose update is a direction of their own, and who looks for it in the protected totals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.protect.clip import norms
from tacit.rng import Keys
from tacit.server.step import ServerStep
from tacit.types import Array, Cohort, Floats, Index, Rows

_LOUD = 1e3


@dataclass(frozen=True)
class Noted(ServerStep):
    """The same step, with the protected totals shown to somebody first."""

    inner: ServerStep
    show: Callable[[Mapping[str, Mapping[str, Array]]], None]

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The step's own arrays."""
        return self.inner.init(shared)

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Show, then step."""
        self.show(totals)
        return self.inner.step(shared, totals, state, round)


@dataclass(frozen=True)
class Canaries(LocalWork):
    """The same work, with the update of some people replaced by a direction of their own.

    ``loud`` makes it longer than any clip norm; without a bound it is as long as the others' are.
    """

    inner: LocalWork
    place: Index
    directions: Floats
    loud: bool

    @property
    def dense(self) -> bool:
        """As the work itself."""
        return self.inner.dense

    def prepared(self, received: Broadcast) -> Broadcast:
        """As the work itself."""
        return self.inner.prepared(received)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Everybody's update; canaries' directions in place of their own."""
        work = self.inner.run(received, private, cohort, inbox, keys)
        place = self.place[cohort.users]
        canary = place >= 0
        if not canary.any():
            return work
        lengths = norms(work.update)
        usual = float(np.median(lengths[~canary])) if (~canary).any() else 1.0
        scale = _LOUD * max(usual, 1.0) if self.loud else usual
        told: dict[str, Array | Rows] = {}
        at = 0
        for name, array in work.update.items():
            assert isinstance(array, np.ndarray)
            size = int(np.prod(array.shape[1:]))
            own = self.directions[place[canary], at : at + size].reshape(-1, *array.shape[1:])
            told[name] = array.copy()
            told[name][canary] = (scale * own).astype(array.dtype)  # type: ignore[index]
            at += size
        return replace(work, update=told)
