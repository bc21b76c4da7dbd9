"""Sums over a sub-model: bits that were reported, and rows that everybody who was asked holds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.kernels.rows import add_values
from tacit.types import Array, Arrays, Delivers, Long, RankOne, RoundFacts, Rows


@dataclass
class BitTally:
    """How often each item was reported."""

    counts: Long


@dataclass(frozen=True)
class ReportedShare(Aggregator):
    """The share of those who answered that reported each item; bits travel eight to a byte.

    There are as many items as the shared array ``like`` has rows.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset({Delivers.REPORTS, Delivers.SHUFFLED})
    like: str = "selected"

    def start(self, shared: Mapping[str, Array]) -> BitTally:
        """Nothing reported yet."""
        return BitTally(np.zeros(len(shared[self.like]), dtype=np.int64))

    def add(self, tally: BitTally, arrays: Arrays) -> None:
        """Add some clients' bits."""
        bits = arrays["bits"]
        assert isinstance(bits, np.ndarray)
        tally.counts += np.unpackbits(bits, axis=1, count=len(tally.counts)).sum(axis=0, dtype=np.int64)

    def total(self, tally: BitTally) -> dict[str, Array]:
        """The counts."""
        return {"bits": tally.counts}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """Shares of those who answered."""
        return {"bits": total["bits"] / max(1, facts.answered)}


@dataclass
class PartTally:
    """Running sums per array, how many stand behind each row in play, and the shapes of whole arrays."""

    sums: dict[str, Array]
    counts: Long
    shapes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class SubModelSum(Aggregator):
    """The sum, or FedSubAvg's mean, of updates to a part of the model.

    ``tables`` have one row per item; in the server's arrays ``selected`` marks the rows in play (without it:
    all are). Clients send a row for each of them, or those they touched with their places among them. Every
    other array of an update belongs to all clients. Totals hold the rows in play, in their order.

    ``weights`` says what a sum is divided by: nothing (``sum``), how many were to be expected (``mean``), or
    for each row those who sent one (``holders``; FedSubAvg, Eq. 11: rows held by few are not shrunk by those
    who have no say in them). Where every client sends every row the last two are the same.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)
    tables: tuple[str, ...] = ("items",)
    weights: Literal["sum", "mean", "holders"] = "sum"
    beside: tuple[str, ...] = ()

    def carrying(self, beside: tuple[str, ...]) -> "SubModelSum":
        """These as well, a number each."""
        return replace(self, beside=beside)

    def start(self, shared: Mapping[str, Array]) -> PartTally:
        """Nothing summed yet."""
        marked = shared.get("selected")
        rows = len(shared[self.tables[0]]) if marked is None else int(np.count_nonzero(marked))
        sums: dict[str, Array] = {
            name: np.zeros((rows, *shared[name].shape[1:]), dtype=np.float64) for name in self.tables
        }
        sums |= {name: np.zeros(1) for name in self.beside}
        shapes = {name: array.shape for name, array in shared.items()}
        return PartTally(sums, np.zeros(rows, dtype=np.int64), shapes)

    def add(self, tally: PartTally, arrays: Arrays) -> None:
        """Add some clients' updates, one by one: grouping must not change a bit of the sum."""
        for name, array in arrays.items():
            values = array.values if isinstance(array, Rows) else array
            assert not isinstance(values, RankOne)
            if np.issubdtype(values.dtype, np.integer) and name in tally.sums:
                tally.sums[name] = tally.sums[name].astype(np.int64, copy=False)
            if isinstance(array, Rows):
                self._add_rows(tally, name, array, values.shape[1])
                continue
            if name not in tally.sums:
                kind = np.int64 if np.issubdtype(array.dtype, np.integer) else np.float64
                tally.sums[name] = np.zeros(array.shape[1:], dtype=kind)
            for update in array:
                tally.sums[name] += update
            if name == self.tables[0]:
                tally.counts += len(array)

    def _add_rows(self, tally: PartTally, name: str, rows: Rows, width: int) -> None:
        """Rows of a table in play, or what is left of an array that was made sparse."""
        if name not in tally.sums:
            tally.sums[name] = np.zeros(tally.shapes[name], dtype=np.float64)
        total = tally.sums[name].reshape(-1, width)
        behind = tally.counts if name == self.tables[0] else np.zeros(len(total), dtype=np.int64)
        add_values(total, behind, _as_wide_as(rows, total))

    def total(self, tally: PartTally) -> dict[str, Array]:
        """The sums, and who stands behind each row where that matters."""
        behind: dict[str, Array] = {"holders.count": tally.counts} if self.weights == "holders" else {}
        return {**tally.sums, **behind}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """Divided as ``weights`` says."""
        found: dict[str, Array] = {}
        for name, summed in total.items():
            if name.endswith(".count"):
                continue
            if self.weights == "holders" and name in self.tables:
                found[name] = summed / np.maximum(total["holders.count"], 1)[:, np.newaxis]
            else:
                found[name] = summed if self.weights == "sum" else summed / facts.expected
        return found


def _as_wide_as(rows: Rows, total: Array) -> Rows:
    """The rows in the total's type, for a sum in double precision."""
    values = rows.values
    assert not isinstance(values, RankOne)
    return Rows(rows.starts, rows.lengths, rows.ids, values.astype(total.dtype, copy=False), rows.counts)
