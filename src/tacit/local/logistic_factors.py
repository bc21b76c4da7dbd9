"""What a client of implicit matrix factorisation computes: a few epochs on its own items and sampled others.

The loss of a pair is ``-log σ(u·v)`` for an own item and ``-log σ(-u·v)`` for a sampled one, summed over a
batch. What leaves is, per row, ``(before - after) / rate``: the sum of the row's gradients over all local
steps. Its step size is the server's, so that ``V <- V - rate * sum`` adds everybody's change up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tacit.kernels.logistic import Samples, draw_samples, train_epochs
from tacit.kernels.vectors import padded
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index, Rows, Segment


def places(arrays: Mapping[str, Array], catalogue: int) -> Index:
    """The row of each item among the rows received (``-1``: it was not).

    The server marks the items of a sub-model in ``selected``, one bit each; without it all rows are there.

    Example:
        >>> places({"selected": np.packbits(np.array([0, 1, 1], dtype=bool))}, 3)
        array([-1,  0,  1], dtype=int32)
    """
    if "selected" not in arrays:
        return np.arange(catalogue, dtype=np.int32)
    chosen = np.unpackbits(arrays["selected"], count=catalogue).astype(bool)
    return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)


@dataclass(frozen=True)
class LogisticFactors(LocalWork):
    """``epochs`` passes in batches, ``negatives`` fresh unseen items per own item and epoch.

    Own items that were not received are left out. ``pool`` says where negatives come from: ``catalogue``
    draws among all unseen items and leaves out those not received, ``received`` draws among the received.
    ``sends`` is ``touched`` (the rows that samples touched, with their ids) or ``received`` (a row for every
    row received, zeros included, so that no ids need to be sent).
    """

    dim: int
    rate: float
    epochs: int
    batch: int
    negatives_per_item: int
    pool: Literal["catalogue", "received"] = "catalogue"
    sends: Literal["touched", "received"] = "touched"

    @property
    def dense(self) -> bool:
        """Whole tables, where a row is sent for every row received."""
        return self.sends == "received"

    def prepared(self, received: Broadcast) -> Broadcast:
        """The item rows padded to whole vectors, once for all clients."""
        return replace(received, arrays={**received.arrays, "items": padded(received.arrays["items"])})

    def _drawn(self, cohort: Cohort, keys: Keys, round: int, place: Index | None, epochs: int) -> Samples:
        return draw_samples(
            cohort.offsets,
            cohort.items,
            keys.users(cohort.users, "negatives", round),
            negatives=self.negatives_per_item,
            epochs=epochs,
            catalogue=cohort.catalogue,
            place=place,
            inside=place >= 0 if place is not None and self.pool == "received" else None,
        )

    def negatives(self, cohort: Cohort, keys: Keys, round: int) -> Segment | None:
        """The first epoch's negatives, before a sub-model leaves some of them out."""
        drawn = self._drawn(cohort, keys, round, None, 1)
        owner = np.repeat(np.arange(len(cohort)), drawn.counts[:, 0])
        lost = drawn.labels == 0
        ids = drawn.touched[drawn.touched_starts[owner] + drawn.slots][lost]
        lengths = np.bincount(owner[lost], minlength=len(cohort))
        return Segment(np.cumsum(lengths) - lengths, lengths, ids)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Draw, train, and tell the change."""
        del inbox
        table: Floats = received.arrays["items"]
        drawn = self._drawn(
            cohort, keys, received.round, places(received.arrays, cohort.catalogue), self.epochs
        )
        factors: Floats = private["user"]
        drawn = drawn._replace(labels=drawn.labels.astype(factors.dtype, copy=False))
        done = train_epochs(drawn, factors, table, self.dim, rate=self.rate, batch=self.batch)
        rows = Rows(done.starts, done.lengths, done.ids, done.gradients)
        if self.sends == "touched":
            return Work({"items": rows}, {"user": done.factors})
        whole = np.zeros((len(cohort), len(table), self.dim), dtype=factors.dtype)
        whole[np.repeat(np.arange(len(cohort)), done.lengths), done.ids] = done.gradients
        return Work({"items": whole}, {"user": done.factors})
