"""Deep gradient compression on a device: what is not sent is not lost (Lin et al., ICLR 2018).

Momentum correction, local clipping and factor masking, around any other local work:

    g <- clip(update);  velocity <- momentum * velocity + g;  unsent <- unsent + velocity
    send unsent at the chosen entries, and forget velocity and unsent there

``choice="shared"`` takes the entries of the round's public draw, so that noise can follow and no ids are
sent; ``"largest"`` takes the largest, as published: their places tell something that no noise covers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.schedule import Warming
from tacit.types import Array, Arrays, Cohort, Segment

Places = Any


@dataclass(frozen=True)
class Residual(LocalWork):
    """Another local work, whose arrays ``names`` are sent in part; ``places`` says which entries a round has.

    Each device keeps ``velocity/<name>`` and ``unsent/<name>`` of every array. ``clip`` bounds the joint norm
    of the arrays before they are accumulated (0: no bound).
    """

    inner: LocalWork
    names: tuple[str, ...]
    share: Warming
    places: Places
    momentum: float = 0.9
    clip: float = 0.0
    choice: Literal["shared", "largest"] = "shared"

    @property
    def dense(self) -> bool:
        """As the inner work."""
        return self.inner.dense

    def on(self, device: str) -> "Residual":
        """The inner work on an accelerator."""
        return replace(self, inner=self.inner.on(device))

    def prepared(self, received: Broadcast) -> Broadcast:
        """As the inner work wants it."""
        return self.inner.prepared(received)

    def negatives(self, received: Broadcast, cohort: Cohort, keys: Keys) -> Segment | None:
        """Those of the inner work."""
        return self.inner.negatives(received, cohort, keys)

    def drawable(self, received: Broadcast, catalogue: int) -> NDArray[np.bool_]:
        """As for the inner work."""
        return self.inner.drawable(received, catalogue)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Train, accumulate, send a part and keep the rest."""
        work = self.inner.run(received, private, cohort, inbox, keys)
        update: dict[str, Any] = dict(work.update)
        kept: dict[str, Array] = dict(work.private)
        factors = self._shortened(update)
        for name in self.names:
            gradient = update[name] * factors.reshape(-1, *[1] * (update[name].ndim - 1))
            velocity = self.momentum * private[f"velocity/{name}"] + gradient
            unsent = private[f"unsent/{name}"] + velocity
            chosen = self._chosen(name, unsent, received.round)
            update[name] = np.where(chosen, unsent, 0).astype(np.float32)
            kept[f"velocity/{name}"] = np.where(chosen, 0, velocity).astype(np.float32)
            kept[f"unsent/{name}"] = np.where(chosen, 0, unsent).astype(np.float32)
        return replace(work, update=update, private=kept)

    def _shortened(self, update: Arrays) -> Any:
        arrays = [np.asarray(update[name]) for name in self.names]
        squares = sum(np.square(a.reshape(len(a), -1)).sum(axis=1, dtype=np.float64) for a in arrays)
        if self.clip == 0:
            return np.ones(len(arrays[0]), dtype=np.float32)
        return np.minimum(1, self.clip / np.maximum(np.sqrt(squares), 1e-30)).astype(np.float32)

    def _chosen(self, name: str, unsent: Array, round: int) -> Array:
        share, size = self.share.at(round), unsent[0].size if len(unsent) else 0
        flat = np.zeros((len(unsent), size), dtype=bool)
        if self.choice == "shared":
            flat[:, self.places(name, round, size, share)] = True
        else:
            keep = int(np.ceil(share * size))
            for client, numbers in enumerate(np.abs(unsent.reshape(len(unsent), size))):
                flat[client, np.argpartition(numbers, size - keep)[size - keep :]] = True
        return flat.reshape(unsent.shape)
