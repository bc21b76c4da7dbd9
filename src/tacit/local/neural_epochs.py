"""What a client of neural collaborative filtering computes: epochs of Adam on its rows and its network.

Clients with equally many batches train side by side, each with its own network, in one batched product per
layer. A client holds the rows its samples touch and no others; only batches are padded, never cohorts.
``adam="lazy"`` moves a row's running means when a batch touches it, ``"dense"`` in every step, as an
optimiser over whole tables would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.local.neural_steps import Networks, alike, trained
from tacit.local.sampled_pairs import Pool, drawable, drawn, first_negatives, places, whole_tables
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.neural_cf import TABLES, layers
from tacit.rng import Keys
from tacit.types import Array, Cohort, Rows, Segment


@dataclass(frozen=True)
class NeuralEpochs(LocalWork):
    """``epochs`` passes in batches over own items and sampled others (see ``sampled_pairs``).

    What leaves is the change of every array: ``after - before``. ``sends`` is ``touched`` (item rows that
    samples touched, with their ids) or ``received`` (a row for every row received). ``side_by_side`` and
    ``device`` change only speed.
    """

    rate: float
    epochs: int
    batch: int
    negatives_per_item: int
    depth: int
    adam: Literal["lazy", "dense"] = "lazy"
    pool: Pool = "catalogue"
    sends: Literal["touched", "received"] = "touched"
    side_by_side: int = 4
    device: str = "cpu"

    @property
    def dense(self) -> bool:
        """Whole tables, where a row is sent for every row received."""
        return self.sends == "received"

    def on(self, device: str) -> "NeuralEpochs":
        """The same work on an accelerator, with more clients side by side."""
        import torch  # loads on first use

        if device == "cuda" and not torch.cuda.is_available():
            raise TacitError("no CUDA device is available", "leave --device out to compute on the CPU")
        return replace(self, device=device, side_by_side=64 if device == "cuda" else self.side_by_side)

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
        samples = drawn(
            cohort, keys, received.round, places(received.arrays, cohort.catalogue),
            epochs=self.epochs, negatives=self.negatives_per_item, pool=self.pool,
        )  # fmt: skip
        lengths = samples.touched_counts
        starts = np.cumsum(lengths) - lengths
        ids = np.concatenate(
            [
                samples.touched[first : first + count]
                for first, count in zip(samples.touched_starts, lengths, strict=True)
            ]
            or [np.zeros(0, dtype=np.int32)]
        )
        shared: Mapping[str, Any] = received.arrays
        update: dict[str, Any] = {
            name: np.zeros((len(ids), shared[name].shape[1]), dtype=np.float32) for name in TABLES
        }
        network = layers(self.depth)
        update |= {name: np.zeros((len(cohort), *shared[name].shape), np.float32) for name in network}
        mine = {name: np.array(private[name], dtype=np.float32) for name in ("gmf_user", "mlp_user")}
        for group in alike(samples, self.batch, self.side_by_side):
            rows = np.concatenate([np.arange(int(starts[c]), int(starts[c] + lengths[c])) for c in group])
            start = Networks.of(shared, mine, group, ids[rows], network)
            after = trained(
                start, samples, group, np.cumsum(lengths[group]) - lengths[group], self.rate, self.batch,
                adam=self.adam, device=self.device,
            )  # fmt: skip
            for name in TABLES:
                update[name][rows] = after.rows[name] - shared[name][ids[rows]]
            for name in network:
                update[name][group] = after.whole[name] - shared[name]
            for name in mine:
                mine[name][group] = after.whole[name]
        for name in TABLES:
            told = update[name]
            update[name] = (
                Rows(starts, lengths, ids, told)
                if self.sends == "touched"
                else whole_tables(lengths, ids, told, len(shared[name]))
            )
        return Work(update, mine)
