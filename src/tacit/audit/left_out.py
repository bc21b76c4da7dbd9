"""Left out of a run: silent where the server adds the noise, an empty update where devices do.

Someone who answers with nothing still adds a share of the noise that others count on, and is still seen to
answer; that is the neighbour which noise on devices is accounted for. Where the server adds the noise the
neighbour was never there, and says nothing at all. Either way they are drawn like everybody, so that
nobody's chances change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.federation.sampling import Sampling
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.protect.distributed import NoiseShares
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Protection
from tacit.rng import Keys
from tacit.round import Exchange
from tacit.types import Array, Cohort, Delivers, Index, RoundFacts, Rows


def left_out(exchange: Exchange, gone: frozenset[int]) -> Exchange:
    """The same exchange without some people."""
    stages = exchange.protections.stages
    if exchange.transport.delivers is Delivers.SUM or any(map(on_devices, stages)):
        return replace(exchange, local=Emptied(exchange.local, gone))
    return replace(exchange, sampling=Silent(exchange.sampling, gone))


def on_devices(stage: Protection) -> bool:
    """Whether devices add this noise.

    Example:
        >>> on_devices(GaussianNoise(1.0)), on_devices(GaussianNoise(1.0, "device"))
        (False, True)
    """
    return isinstance(stage, NoiseShares) or (isinstance(stage, GaussianNoise) and stage.where == "device")


@dataclass(frozen=True)
class Emptied(LocalWork):
    """The same work, of which some send nothing: zeros, and no rows."""

    inner: LocalWork
    gone: frozenset[int]

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
        """Everybody's work, without what the people left out would send."""
        work = self.inner.run(received, private, cohort, inbox, keys)
        kept = ~_among(cohort.users, self.gone)
        return replace(work, update={name: _emptied(array, kept) for name, array in work.update.items()})


def _emptied(array: Array | Rows, kept: Array) -> Array | Rows:
    if isinstance(array, Rows):
        return replace(array, lengths=np.where(kept, array.lengths, 0))
    return array * kept.reshape(-1, *[1] * (array.ndim - 1)).astype(array.dtype)


def _among(users: Index, gone: frozenset[int]) -> Array:
    return np.isin(users, np.fromiter(gone, dtype=np.int64, count=len(gone)))


@dataclass(frozen=True)
class Silent(Sampling):
    """The same draw, of which some never answer."""

    inner: Sampling
    silent: frozenset[int]

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """Whoever is drawn and not silent."""
        drawn = self.inner.draw(people, round, keys)
        return drawn[~_among(drawn, self.silent)]

    def event(self, claim: Any, facts: RoundFacts) -> Any:
        """What the run itself claims."""
        return self.inner.event(claim, facts)
