"""Who is evaluated on what: held-out items, and the items a user has seen before."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions
from tacit.errors import TacitError
from tacit.types import Index, Long


class SplitLike(Protocol):
    """The parts of a split that evaluation reads."""

    @property
    def train(self) -> Interactions:
        """What the model learned from."""
        ...

    @property
    def test(self) -> Interactions:
        """What it is judged on."""
        ...

    @property
    def support(self) -> Interactions | None:
        """What a test user shows before being judged, where the split has such a part."""
        ...


@dataclass(frozen=True)
class Lists:
    """Lists of items: list ``r`` is ``items[offsets[r] : offsets[r + 1]]``, rising and without repeats.

    Example:
        >>> lists = Lists(np.array([0, 2, 3]), np.array([4, 7, 1], "i4"))
        >>> len(lists), lists[0].tolist(), lists.lengths.tolist()
        (2, [4, 7], [2, 1])
    """

    offsets: Long
    items: Index

    def __len__(self) -> int:
        """How many lists."""
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Index:
        """One list."""
        return self.items[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Long:
        """How long each list is."""
        return np.diff(self.offsets)

    def keeping(self, chosen: NDArray[np.bool_]) -> "Lists":
        """Only the chosen lists."""
        lengths = self.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
        return Lists(offsets, self.items[np.repeat(chosen, lengths)])


@dataclass(frozen=True)
class HeldOut:
    """Users who have something held out, with what each has seen.

    ``positives``, ``seen`` (training and support) and ``met`` (these and the whole test part) have one list
    per entry of ``users``. ``repeated`` counts test pairs left
    out because the user had met the item before: what is known already is not a recommendation.
    """

    users: Index
    positives: Lists
    seen: Lists
    met: Lists
    catalogue: int
    repeated: int

    def keeping(self, chosen: NDArray[np.bool_]) -> "HeldOut":
        """Only the chosen users."""
        return replace(
            self,
            users=self.users[chosen],
            positives=self.positives.keeping(chosen),
            seen=self.seen.keeping(chosen),
            met=self.met.keeping(chosen),
        )


def held_out(split: SplitLike, catalogue: int, *, relevant_from: float | None = None) -> HeldOut:
    """What to rank for whom: test items against everything the user met in training or support.

    Every test interaction counts as a positive, whatever its rating, unless ``relevant_from`` says
    otherwise. Users without a positive are left out.

    Args:
        split: Train, test and maybe support interactions.
        catalogue: How many items there are.
        relevant_from: Test items rated lower are no positives; they stay candidates like any unseen item.

    Returns:
        The users with at least one new test item, in rising order.

    Example:
        >>> from types import SimpleNamespace
        >>> def log(*pairs):
        ...     users, items = np.array(pairs, "i4").T
        ...     return Interactions(users, items, np.ones(len(pairs), "f4"))
        >>> split = SimpleNamespace(train=log((0, 1), (1, 2)), test=log((1, 0), (1, 2)), support=None)
        >>> held = held_out(split, catalogue=3)
        >>> held.users.tolist(), held.positives[0].tolist(), held.seen[0].tolist(), held.repeated
        ([1], [0], [2], 1)
    """
    known = [part for part in (split.train, split.support) if part is not None]
    for part in (*known, split.test):
        _check(part, catalogue)
    seen = _pairs(known, catalogue)
    asked = _pairs([split.test], catalogue)
    fresh = asked[~_among(asked, seen)]
    relevant = fresh
    if relevant_from is not None:
        liked = _pairs([split.test.take(split.test.values >= relevant_from)], catalogue)
        relevant = fresh[_among(fresh, liked)]
    users = np.unique(relevant // catalogue)
    return HeldOut(
        users=users.astype(np.int32),
        positives=_lists_of(users, relevant, catalogue),
        seen=_lists_of(users, seen, catalogue),
        met=_lists_of(users, np.sort(np.concatenate([seen, fresh])), catalogue),
        catalogue=catalogue,
        repeated=len(asked) - len(fresh),
    )


def one_each(held: HeldOut, generator: np.random.Generator) -> HeldOut:
    """The same users with a single positive each, drawn at random among theirs.

    Example:
        >>> lists, user = Lists(np.array([0, 3]), np.array([1, 2, 5], "i4")), np.array([0], "i4")
        >>> held = HeldOut(user, lists, Lists(np.zeros(2, "i8"), lists.items[:0]), lists, 6, 0)
        >>> len(one_each(held, np.random.default_rng(0)).positives[0])
        1
    """
    chosen = held.positives.offsets[:-1] + generator.integers(0, held.positives.lengths)
    single = Lists(np.arange(len(held.users) + 1, dtype=np.int64), held.positives.items[chosen])
    return replace(held, positives=single)


def _pairs(parts: list[Interactions], catalogue: int) -> Long:
    """User and item as one number, rising and without repeats (np.unique takes five times as long)."""
    pairs = np.sort(np.concatenate([part.users.astype(np.int64) * catalogue + part.items for part in parts]))
    return pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs


def _lists_of(users: Long, pairs: Long, catalogue: int) -> Lists:
    starts = np.searchsorted(pairs, users * catalogue)
    stops = np.searchsorted(pairs, (users + 1) * catalogue)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])
    rows = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return Lists(offsets, (pairs[rows] % catalogue).astype(np.int32))


def _among(wanted: Long, rising: Long) -> NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(rising, wanted), len(rising) - 1)
    return rising[at] == wanted


def _check(part: Interactions, catalogue: int) -> None:
    if not len(part):
        return
    if min(int(part.items.min()), int(part.users.min())) < 0 or int(part.items.max()) >= catalogue:
        raise TacitError(
            f"an item or user outside the catalogue of {catalogue} items",
            "pass the number of items of the data set as the catalogue",
        )
