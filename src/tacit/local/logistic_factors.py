"""What a client of implicit matrix factorisation computes: a few epochs on its own items and sampled others.

The loss of a pair is ``-log σ(u·v)`` for an own item and ``-log σ(-u·v)`` for a sampled one, summed over a
batch. What leaves is, per row, ``(before - after) / rate``: the sum of the row's gradients over all local
steps. Its step size is the server's, so that ``V <- V - rate * sum`` adds everybody's change up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.logistic import train_epochs
from tacit.kernels.vectors import padded
from tacit.local.sampled_pairs import Pool, drawable, drawn, first_negatives, places, whole_tables
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Rows, Segment


@dataclass(frozen=True)
class LogisticFactors(LocalWork):
    """``epochs`` passes in batches over own items and sampled others (see ``sampled_pairs``).

    ``sends`` is ``touched`` (the rows that samples touched, with their ids) or ``received`` (a row for every
    row received, zeros included, so that no ids need to be sent).
    """

    dim: int
    rate: float
    epochs: int
    batch: int
    negatives_per_item: int
    pool: Pool = "catalogue"
    sends: Literal["touched", "received"] = "touched"

    @property
    def dense(self) -> bool:
        """Whole tables, where a row is sent for every row received."""
        return self.sends == "received"

    def prepared(self, received: Broadcast) -> Broadcast:
        """The item rows padded to whole vectors, once for all clients."""
        return replace(received, arrays={**received.arrays, "items": padded(received.arrays["items"])})

    def negatives(self, received: Broadcast, cohort: Cohort, keys: Keys) -> Segment | None:
        """The first epoch's negatives, before a sub-model leaves some of them out."""
        return first_negatives(cohort, keys, received, negatives=self.negatives_per_item, pool=self.pool)

    def drawable(self, received: Broadcast, catalogue: int) -> NDArray[np.bool_]:
        """All items, or those received."""
        return drawable(received.arrays, catalogue, self.pool)

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
        samples = drawn(
            cohort, keys, received.round, places(received.arrays, cohort.catalogue),
            epochs=self.epochs, negatives=self.negatives_per_item, pool=self.pool,
        )  # fmt: skip
        factors: Floats = private["user"]
        samples = samples._replace(labels=samples.labels.astype(factors.dtype, copy=False))
        done = train_epochs(samples, factors, table, self.dim, rate=self.rate, batch=self.batch)
        if self.sends == "touched":
            rows = Rows(done.starts, done.lengths, done.ids, done.gradients)
            return Work({"items": rows}, {"user": done.factors})
        whole = whole_tables(done.lengths, done.ids, done.gradients, len(table))
        return Work({"items": whole}, {"user": done.factors})
