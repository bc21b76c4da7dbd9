"""Sums of item rows, and their mean over the people behind each item."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.kernels.precision import widened
from tacit.kernels.rows import add_rows, add_rows_grid, add_values, add_values_grid, finish
from tacit.kernels.vectors import padded_zeros
from tacit.types import Array, Arrays, Delivers, Floats, Long, RankOne, RoundFacts, Rows


@dataclass
class ItemTally:
    """The running sum. ``lazy`` counts rows whose ``reg * V_i`` part is added once, at the end."""

    table: Floats
    total: Array | None
    counts: Long
    lazy: Long
    reg: float = 0.0


@dataclass(frozen=True)
class PerItemMean(Aggregator):
    """``sum / count`` for every item somebody sent a row of; the others stay where they are.

    ``divide=False`` leaves the sum as it is (summed gradients). ``precise`` sums floats in double precision:
    where much is added only to be taken out again, single precision would leave its rounding behind.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)
    table: str = "items"
    divide: bool = True
    precise: bool = False

    def start(self, shared: Mapping[str, Array]) -> ItemTally:
        """Nothing summed yet."""
        table: Floats = shared[self.table]
        if self.precise:
            table = table.astype(np.float64)
        return ItemTally(
            table, None, np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.int64)
        )

    def add(self, tally: ItemTally, arrays: Arrays) -> None:
        """Add some clients' rows, in the order in which they are given."""
        rows = arrays[self.table]
        if not isinstance(rows, Rows):
            self._add_whole(tally, rows, arrays[f"{self.table}.count"])
            return
        if self.precise:
            rows = widened(rows)
        values = rows.values
        known = values if isinstance(values, RankOne) else None
        whole = values.grid > 0 if isinstance(values, RankOne) else np.issubdtype(values.dtype, np.integer)
        if tally.total is None:
            tally.total = (
                np.zeros(tally.table.shape, dtype=np.int64)
                if whole
                else padded_zeros(len(tally.table), tally.table.shape[1], tally.table.dtype)
            )
        if known and whole:
            add_rows_grid(tally.total, tally.counts, rows, bits=known.grid)
        elif known:
            add_rows(tally.total, tally.lazy, rows)
            tally.reg = known.reg
        elif whole:
            add_values_grid(tally.total, tally.counts, rows)
        else:
            add_values(tally.total, tally.counts, rows)

    def _add_whole(self, tally: ItemTally, tables: Array, counts: Array | Rows) -> None:
        """Whole tables in whole numbers, with counts of their own: what noise on every entry leaves."""
        assert not isinstance(counts, Rows)
        part = tables.sum(axis=0, dtype=np.int64)
        tally.total = part if tally.total is None else tally.total + part
        tally.counts = tally.counts + counts.sum(axis=0, dtype=np.int64)

    def total(self, tally: ItemTally) -> dict[str, Array]:
        """The sum, and how many people stand behind each row of it."""
        counts = tally.counts + tally.lazy
        if tally.total is None:
            return {self.table: np.zeros_like(tally.table), f"{self.table}.count": counts}
        if np.issubdtype(tally.total.dtype, np.integer):
            return {self.table: tally.total, f"{self.table}.count": counts}
        total: Floats = tally.total[:, : tally.table.shape[1]].copy()
        finish(total, tally.lazy, tally.table, tally.reg)
        return {self.table: total, f"{self.table}.count": counts}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The mean over people, item by item."""
        del facts
        table: Floats = total[self.table]
        if not self.divide:
            return {self.table: table}
        counts: Long = total[f"{self.table}.count"]
        mean = table / np.maximum(counts, 1).astype(table.dtype)[:, np.newaxis]
        mean[counts <= 0] = 0  # fillers taken out again leave rounding noise where nobody rated
        return {self.table: mean}
