"""What people did: interactions as columns, and a data set that can give raw ids back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Ids
from tacit.errors import TacitError

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Scale:
    """The values a rating may take: ``low``, ``low + step`` … ``high``.

    Example:
        >>> Scale(1, 5, 1).levels
        5
    """

    low: float
    high: float
    step: float

    @property
    def levels(self) -> int:
        """How many different ratings there are."""
        return round((self.high - self.low) / self.step) + 1


@dataclass(frozen=True)
class Interactions:
    """Columns of equal length: who (index), what (index), how much, when (unix seconds, or unknown).

    Example:
        >>> log = Interactions(np.array([0, 0, 1], "i4"), np.array([2, 0, 2], "i4"), np.ones(3, "f4"), None)
        >>> len(log), len(log.take(log.users == 0))
        (3, 2)
    """

    users: Ints
    items: Ints
    values: Floats
    times: Times | None = None

    def __len__(self) -> int:
        """The number of interactions."""
        return len(self.users)

    def __post_init__(self) -> None:
        """Refuse columns that do not line up."""
        lengths = {len(self.users), len(self.items), len(self.values)}
        if self.times is not None:
            lengths.add(len(self.times))
        if len(lengths) != 1:
            raise TacitError(f"columns of different lengths {sorted(lengths)}", "give one value per interaction")

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> "Interactions":
        """The chosen rows (a mask or positions), in the order given."""
        times = None if self.times is None else self.times[rows]
        return Interactions(self.users[rows], self.items[rows], self.values[rows], times)


@dataclass(frozen=True)
class Features:
    """Public or personal attributes, one row per user or item.

    ``categories`` maps a name to codes (``-1``: unknown) with ``labels`` saying what each code means;
    ``flags`` maps a name to a 0/1 matrix (genres) with its column ``labels``; ``numbers`` maps a name to
    floats; ``texts`` to raw text (titles).

    Example:
        >>> Features(numbers={"year": np.array([1999.0, 2001.0], "f4")}).numbers["year"].max()
        np.float32(2001.0)
    """

    categories: Mapping[str, Ints] = field(default_factory=dict)
    flags: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    texts: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """A log of interactions with the ids, features and rating scale its publisher gave.

    Users and items are numbered from 0 inside; ``user_ids`` and ``item_ids`` give raw ids back. Items
    may include some that nobody touched (the catalogue). ``scale`` is ``None`` for implicit feedback.
    """

    name: str
    interactions: Interactions
    user_ids: Ids
    item_ids: Ids
    scale: Scale | None
    user_features: Features = field(default_factory=Features)
    item_features: Features = field(default_factory=Features)
    citation: str = ""
    notes: tuple[str, ...] = ()

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.user_ids)

    @property
    def items(self) -> int:
        """How many items the catalogue has."""
        return len(self.item_ids)

    def keeping(self, interactions: Interactions) -> "Dataset":
        """The same people and catalogue with another log."""
        return replace(self, interactions=interactions)
