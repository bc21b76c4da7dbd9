"""Data without behaviour that every room shares: sparse rows, cohorts, facts of a round."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating]
Index: TypeAlias = NDArray[np.int32]
Long: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class RankOne:
    """Values of sparse rows that are known by their factors: ``coef[r] * factors[client] + reg * table[id]``.

    The gradient of a squared error with respect to an item's vector has this shape, so a chunk of a
    simulated cohort carries 8 bytes per row instead of ``4 d`` until somebody needs the numbers.
    """

    coef: Floats  # one per stored row position (indexed like Rows.ids)
    factors: Floats  # one vector per client
    table: Floats  # the table the rows belong to, as it was broadcast
    reg: float
    grid: int = 0  # when above 0: each entry is rounded to a whole number of 2**-grid (int64)


@dataclass(frozen=True)
class Rows:
    """Sparse rows of one table, client after client.

    Client ``c`` holds ``ids[starts[c] : starts[c] + lengths[c]]`` and the values at the same positions.
    ``counts`` says how many people stand behind each row where that is not one.
    """

    starts: Long
    lengths: Long
    ids: Index
    values: Array | RankOne
    counts: Index | None = None

    @property
    def clients(self) -> int:
        """How many clients these rows come from."""
        return len(self.starts)

    @property
    def total(self) -> int:
        """How many rows there are in all."""
        return int(self.lengths.sum())


Arrays: TypeAlias = Mapping[str, Array | Rows]
"""Named arrays. Where a cohort is meant, the first axis of a dense array is the client."""


@dataclass(frozen=True)
class Segment:
    """A ragged list of item ids per client (fillers, negatives): positions as in :class:`Rows`."""

    starts: Long
    lengths: Long
    ids: Index


@dataclass(frozen=True)
class Cohort:
    """The clients at work and what each holds; one real device is a cohort of one.

    ``items[offsets[c] : offsets[c + 1]]`` are the items client ``c`` interacted with, in rising order, and
    ``values`` their ratings. ``catalogue`` is the number of items there are to know of.
    """

    users: Index
    offsets: Long
    items: Index
    values: NDArray[np.float32]
    catalogue: int
    fillers: Segment | None = None
    extras: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many clients."""
        return len(self.users)


@dataclass(frozen=True)
class RoundFacts:
    """What is public about one exchange: its place in the run, who was asked and who answered, as counts."""

    round: int
    exchange: str
    population: int
    invited: int
    answered: int


class Delivers(Enum):
    """What the server gets to see."""

    REPORTS = "reports"
    SHUFFLED = "shuffled"
    SUM = "sum"
