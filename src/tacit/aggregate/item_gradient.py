"""The mean of whole item gradients over clients, however they were written down."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.aggregate.per_item import ItemTally, PerItemMean
from tacit.types import Array, Arrays, Delivers, Floats, RoundFacts, Rows


@dataclass
class GradientTally:
    """Running sums of the rated rows, of ``x x^T`` and of dense gradients."""

    rows: ItemTally
    gram: Floats
    dense: Floats


@dataclass(frozen=True)
class ItemGradientMean(Aggregator):
    """``(1 / clients) sum_u gradient_u``, over the expected number of clients.

    A dense gradient is added as it is. A compact one is rated rows and the upper half of ``x x^T``: the sum
    of the clients' dense gradients is the sum of their rows plus ``2 V sum_u x_u x_u^T``.

    **A clipped compact upload bounds the dense gradient it stands for.** That is ``g x^T`` with
    ``g = r + 2 V x``, ``r`` being what the rows hold times ``x``. In the user's closed form the gradient with
    respect to ``x`` is zero, ``V^T g + 2 reg x = 0``, so that

        |g|^2 = |r|^2 + 4 x.V^T r + 4 |Vx|^2 = |r|^2 - 4 |Vx|^2 - 8 reg |x|^2 <= |r|^2

    and the dense gradient, ``|g| |x|``, is no longer than the rows alone, ``|r| |x|``. Scaling an upload down
    scales both. Rounding or leaving out any of it does not, which is why such stages are refused beside
    noise at the server (``compact``).
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)
    table: str = "items"
    compact: bool = True

    @property
    def linear(self) -> bool:
        """Dense gradients are summed; compact ones go through a product with the table."""
        return not self.compact

    def start(self, shared: Mapping[str, Array]) -> GradientTally:
        """Nothing summed yet."""
        items: Floats = shared[self.table]
        dim = items.shape[1]
        return GradientTally(
            PerItemMean(self.table, divide=False).start(shared),
            np.zeros(dim * (dim + 1) // 2),
            np.zeros(items.shape),
        )

    def add(self, tally: GradientTally, arrays: Arrays) -> None:
        """Add some clients' gradients."""
        update = arrays[self.table]
        if not isinstance(update, Rows):
            tally.dense += update.sum(axis=0, dtype=np.float64)
            return
        PerItemMean(self.table, divide=False).add(tally.rows, {self.table: update})
        tally.gram += np.asarray(arrays["gram"], dtype=np.float64).sum(axis=0)

    def total(self, tally: GradientTally) -> dict[str, Array]:
        """The sum of the dense gradients."""
        table = tally.rows.table
        dim = table.shape[1]
        gram = np.zeros((dim, dim))
        gram[np.triu_indices(dim)] = tally.gram
        whole = gram + np.triu(gram, 1).T
        rows: Floats = PerItemMean(self.table, divide=False).total(tally.rows)[self.table]
        return {self.table: rows + 2.0 * (table.astype(np.float64) @ whole) + tally.dense}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The mean over the people who were to be expected: who answered is not public."""
        summed: Floats = total[self.table]
        return {self.table: summed / facts.expected}
