"""Who exists and what each holds; in a simulation all of them, on a device one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Features, Scale
from tacit.errors import TacitError
from tacit.kernels.ragged import gathered, gathered_offsets
from tacit.rng import Keys
from tacit.types import Array, Cohort, Index, Long


@dataclass(frozen=True)
class Federation:
    """Everybody's histories, client after client, items rising within each.

    Example:
        >>> tiny = Federation(
        ...     offsets=np.array([0, 2, 3]),
        ...     items=np.array([0, 4, 1], "i4"),
        ...     values=np.array([5, 3, 4], "f4"),
        ...     catalogue=5,
        ... )
        >>> len(tiny), tiny.cohort(np.array([1], "i4")).items
        (2, array([1], dtype=int32))
    """

    offsets: Long
    items: Index
    values: NDArray[np.float32]
    catalogue: int
    scale: Scale | None = None
    user_features: Features = field(default_factory=Features)
    item_features: Features = field(default_factory=Features)

    def __post_init__(self) -> None:
        if len(self.offsets) < 2:
            raise TacitError("a federation of nobody", "the training part needs at least one user")

    def __len__(self) -> int:
        """How many people there are."""
        return len(self.offsets) - 1

    @cached_property
    def people(self) -> Index:
        """Everybody who has any data: the others take no part."""
        return np.flatnonzero(np.diff(self.offsets)).astype(np.int32)

    def cohort(self, users: Index) -> Cohort:
        """The chosen people with their histories; neighbours in a row are not copied."""
        first, last = int(users[0]), int(users[-1]) + 1
        if last - first == len(users) and (len(users) == 1 or bool(np.all(np.diff(users) == 1))):
            offsets = self.offsets[first : last + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            items, values, offsets = self.items[rows], self.values[rows], offsets - offsets[0]
        else:
            offsets = gathered_offsets(self.offsets, users)
            items = gathered(self.offsets, users, offsets, self.items)
            values = gathered(self.offsets, users, offsets, self.values)
        return Cohort(users, offsets, items, values, self.catalogue, extras=self._about(users))

    def _about(self, users: Index) -> dict[str, Array]:
        """What each device knows of its owner, one array per public feature name."""
        known = {**self.user_features.categories, **self.user_features.numbers, **self.user_features.flags}
        return {f"about/{name}": column[users] for name, column in known.items()}

    def chunks(self, users: Index, pairs: int) -> list[Index]:
        """The chosen people in groups of about ``pairs`` interactions each."""
        if not len(users):
            return []
        done = np.cumsum(self.offsets[users.astype(np.int64) + 1] - self.offsets[users] + 1)
        cuts = np.searchsorted(done, np.arange(pairs, int(done[-1]), pairs), side="right")
        return [part for part in np.split(users, np.unique(cuts)) if len(part)]


@dataclass(frozen=True)
class Casting:
    """Who plays which part for the whole run, and to which peer each person's letters go.

    ``parts`` maps a part's name to its people in rising order; ``peer`` holds one recipient per person
    (``-1``: none).
    """

    parts: Mapping[str, Index]
    peer: Index | None = None


def alike(people: Index, keys: Keys) -> Casting:
    """One part for all, ``"everyone"``.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> list(alike(np.arange(3, dtype="i4"), SeededKeys(1)).parts)
        ['everyone']
    """
    del keys
    return Casting({"everyone": people})


def taken(private: Mapping[str, Array], users: Index) -> dict[str, Array]:
    """The private state of the chosen people."""
    return {name: array[users] for name, array in private.items()}


def put_back(private: Mapping[str, Array], users: Index, changed: Mapping[str, Array]) -> None:
    """Write the chosen people's new private state where each person's is kept."""
    for name, array in changed.items():
        private[name][users] = array
