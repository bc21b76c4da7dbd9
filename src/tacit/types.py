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

    With ``cells`` these are single entries of rows that many numbers long (one value each, the other entries
    zero), and an id is ``row * cells + column``: what is left of an update that was made sparse. ``whole`` is
    the shape of the array per client that they were taken from, if it was a dense one.
    """

    starts: Long
    lengths: Long
    ids: Index
    values: Array | RankOne
    counts: Index | None = None
    cells: int = 0
    whole: tuple[int, ...] = ()

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
    """What is public about one exchange: its place in the run, who was asked and who answered, as counts.

    ``population`` counts those who may be asked (the people of the exchange's part). ``expected`` is how many
    of them are asked on average (all, where nothing else is said): what a sum is divided by.
    ``received`` holds the shapes of the arrays that the server sent out.

    Example:
        >>> RoundFacts(0, "train", population=40, invited=6, answered=6).expected
        40
    """

    round: int
    exchange: str
    population: int
    invited: int
    answered: int
    received: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    expected: int = 0

    def __post_init__(self) -> None:
        if not self.expected:
            object.__setattr__(self, "expected", max(1, self.population))


@dataclass(frozen=True)
class Steps:
    """What the whole numbers in a client's message stand for, and how large they get.

    ``size`` is one step; no entry is beyond ``largest`` steps before noise, and an entry carries noise of
    ``noise_std`` steps. ``norm`` (in steps, where known) bounds a client's vector; ``flat`` says that it was
    rotated, so that no entry stands out. ``honest`` is how many honest answers the noise counts on.
    """

    size: float
    largest: float
    noise_std: float = 0.0
    norm: float = 0.0
    flat: bool = False
    honest: int = 0

    def reach(self, clients: int, entries: int) -> float:
        """How far an entry of a sum may lie from zero: surely without noise, else 6.5 deviations.

        Example:
            >>> Steps(size=0.5, largest=8).reach(clients=10, entries=100)
            80.0
        """
        noise = clients**0.5 * self.noise_std
        if self.flat:  # at least half of all entries share the norm
            return 6.5 * ((clients * self.norm) ** 2 / max(1, entries // 2) + noise**2) ** 0.5
        return clients * self.largest + 6.5 * noise


class Delivers(Enum):
    """What the server gets to see."""

    REPORTS = "reports"
    SHUFFLED = "shuffled"
    SUM = "sum"
