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
            raise TacitError(
                f"columns of different lengths {sorted(lengths)}", "give one value per interaction"
            )

    def take(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> "Interactions":
        """The chosen rows (a mask or positions), in the order given."""
        times = None if self.times is None else self.times[rows]
        return Interactions(self.users[rows], self.items[rows], self.values[rows], times)


@dataclass(frozen=True)
class Features:
    """Public or personal attributes, one row per user or item.

    ``categories`` maps a name to codes (``-1``: unknown) with ``labels`` saying what each code means;
    ``flags`` maps a name to a 0/1 matrix (genres) with its column ``labels``; ``numbers`` maps a name to
    floats; ``texts`` to raw text (titles). ``from_log`` names numbers that are what people did, added up
    (``log(1 + uses)`` of an item): there is one once :meth:`Dataset.keeping` says whose log counts, and a
    method reads it only where it is asked for by name.

    Example:
        >>> Features(numbers={"year": np.array([1999.0, 2001.0], "f4")}).numbers["year"].max()
        np.float32(2001.0)
    """

    categories: Mapping[str, Ints] = field(default_factory=dict)
    flags: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    texts: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_log: tuple[str, ...] = ()


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
        """The same people and catalogue with another log, and with the features that it adds up to."""
        about, log = self.item_features, interactions
        if not about.from_log:
            return replace(self, interactions=log)
        uses = np.log1p(np.bincount(log.items, log.values, self.items)).astype(np.float32)
        counted = dict.fromkeys(about.from_log, uses)
        others = {name: column for name, column in about.numbers.items() if name not in counted}
        return replace(self, interactions=log, item_features=replace(about, numbers={**counted, **others}))


_BLOCK = 1 << 22  # rows sorted at once: bounds the temporaries to about 100 MB, whatever the log's length


def _is_ordered(log: Interactions) -> bool:
    for start in range(0, max(len(log) - 1, 0), _BLOCK):
        users, items = log.users[start : start + _BLOCK + 1], log.items[start : start + _BLOCK + 1]
        later = (users[1:] > users[:-1]) | ((users[1:] == users[:-1]) & (items[1:] >= items[:-1]))
        if not later.all():
            return False
    return True


def user_offsets(log: Interactions, users: int) -> Times:
    """Where each user's rows start and end in a log ordered by user: ``users + 1`` positions.

    Example:
        >>> user_offsets(Interactions(np.array([0, 0, 2], "i4"), np.zeros(3, "i4"), np.ones(3, "f4")), 3)
        array([0, 2, 2, 3])
    """
    return _starts(np.bincount(log.users, minlength=users))


def _starts(counts: NDArray[np.integer]) -> Times:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def ordered(log: Interactions) -> Interactions:
    """The log in order of user, then item; the same object when it is in that order already.

    Rows of the same user and item keep their order. Beside the result, memory is used for a bounded
    number of rows at a time.

    Example:
        >>> log = Interactions(np.array([1, 0, 0], "i4"), np.array([2, 5, 3], "i4"), np.ones(3, "f4"))
        >>> ordered(log).items
        array([3, 5, 2], dtype=int32)
    """
    if _is_ordered(log):
        return log
    offsets = _starts(np.bincount(log.users))
    times = None if log.times is None else np.empty_like(log.times)
    result = Interactions(
        np.empty_like(log.users), np.empty_like(log.items), np.empty_like(log.values), times
    )
    first, people = 0, len(offsets) - 1
    while first < people:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        rows = np.flatnonzero((log.users >= first) & (log.users < last))
        keys = (log.users[rows].astype(np.int64) << 32) | log.items[rows]
        _copy(log, rows[np.argsort(keys, kind="stable")], result, int(offsets[first]))
        first = last
    return result


def _copy(source: Interactions, rows: NDArray[np.integer], target: Interactions, start: int) -> None:
    stop = start + len(rows)
    target.users[start:stop] = source.users[rows]
    target.items[start:stop] = source.items[rows]
    target.values[start:stop] = source.values[rows]
    if source.times is not None and target.times is not None:
        target.times[start:stop] = source.times[rows]


def by_user(log: Interactions, users: int) -> tuple[Times, Ints, Floats]:
    """What each user holds: offsets, then items in rising order and their values.

    ``items[offsets[u] : offsets[u + 1]]`` belong to user ``u``. A log that is in order already (every
    loaded data set and every part of a split is) is not copied: the columns are the log's own.

    Example:
        >>> log = Interactions(np.array([2, 0, 2], "i4"), np.array([7, 1, 3], "i4"), np.ones(3, "f4"))
        >>> offsets, items, values = by_user(log, 4)
        >>> offsets.tolist(), items.tolist()
        ([0, 1, 1, 3, 3], [1, 3, 7])
    """
    if len(log) and (int(log.users.max()) >= users or int(log.users.min()) < 0):
        raise TacitError(
            f"the log names user {int(log.users.max())}, but there are {users} users", "give the right number"
        )
    log = ordered(log)
    return user_offsets(log, users), log.items, log.values
