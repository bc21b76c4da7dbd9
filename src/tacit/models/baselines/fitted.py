"""What all baselines share: their inputs, and the matrix of who met what."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data.interactions import Interactions
from tacit.errors import TacitError
from tacit.rng import Keys
from tacit.types import Index

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Known:
    """What a baseline may look at.

    Items are learned from ``train`` alone. ``support`` is what test users show before they are judged: it
    says who they are (their history, their mean), and nothing is learned about items from it. ``keys`` feed
    what is random.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> train = Interactions(np.array([0, 1], "i4"), np.array([2, 0], "i4"), np.ones(2, "f4"))
        >>> Known(train, users=2, items=3, keys=SeededKeys(0)).history().toarray().tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    train: Interactions
    users: int
    items: int
    keys: Keys
    support: Interactions | None = None

    def __post_init__(self) -> None:
        """Refuse indices outside users x items, and a train part without anything in it."""
        if not len(self.train):
            raise TacitError("no training interactions", "choose a split with a train part")
        for part in self.parts:
            if len(part) and (
                min(int(part.users.min()), int(part.items.min())) < 0
                or int(part.users.max()) >= self.users
                or int(part.items.max()) >= self.items
            ):
                raise TacitError(
                    f"interactions outside {self.users} users and {self.items} items",
                    "give the numbers of users and items of the whole data set",
                )

    @property
    def parts(self) -> tuple[Interactions, ...]:
        """Train and, where there is one, support."""
        return (self.train,) if self.support is None else (self.train, self.support)

    def learned(self) -> sparse.csr_array:
        """Users x items, 1 where they met in training, whatever the rating."""
        return self._met((self.train,))

    def history(self) -> sparse.csr_array:
        """Users x items, 1 where they met in training or support, whatever the rating."""
        return self._met(self.parts)

    def _met(self, parts: tuple[Interactions, ...]) -> sparse.csr_array:
        users = np.concatenate([part.users for part in parts])
        items = np.concatenate([part.items for part in parts])
        ones = np.ones(len(users), np.float32)
        met = sparse.csr_array((ones, (users, items)), shape=(self.users, self.items))
        met.sum_duplicates()
        met.data[:] = 1
        return met


class Fitted(Protocol):
    """A baseline that has learned: it orders the catalogue for any user."""

    def scores(self, users: Index) -> Scores:
        """One row per user, one column per item; larger is better."""
        ...


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a setting outside its range (both ends allowed).

    Example:
        >>> within("reg", -1, 0, 10)
        Traceback (most recent call last):
        ...
        tacit.errors.TacitError: reg = -1 is out of range; use a value between 0 and 10
    """
    if not low <= value <= high:
        raise TacitError(f"{name} = {value} is out of range", f"use a value between {low:g} and {high:g}")


def chosen_rows(matrix: sparse.csr_array, users: Index) -> Any:
    """Some rows of a sparse matrix (SciPy's stubs lose the type of this selection).

    Example:
        >>> chosen_rows(sparse.csr_array(np.eye(3)), np.array([2], "i4")).toarray().tolist()
        [[0.0, 0.0, 1.0]]
    """
    return matrix[users]
