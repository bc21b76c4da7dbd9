"""Where each held-out item lands among the candidates of its user.

Two protocols live here: *full* ranks the whole catalogue minus what the user met in training or support, all
held-out items of a user in one list; *positives alone* ranks each held-out item on its own against the items
its user never met in any part (the protocol of PrivRec). Sampled candidates have their own module.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError, nearest
from tacit.evaluate.held_out import HeldOut
from tacit.evaluate.rank_loops import rank_block
from tacit.evaluate.scorer import BLOCK_BYTES, Scorer, score_blocks
from tacit.rng import Keys
from tacit.types import Index, Long

Ties = Literal["random", "best", "worst"]
_TIES: tuple[Ties, ...] = ("random", "best", "worst")


@dataclass(frozen=True)
class Ranks:
    """The rank of every held-out item, counted from 1.

    Held-out items of user ``users[r]`` are at positions ``offsets[r] : offsets[r + 1]``. ``alone`` says that
    each was ranked in a list of its own. ``bounds`` are the ranks when ties fall for (row 0) and against
    (row 1) the held-out items. ``among`` is the length of the list an item was ranked in.
    ``shown`` holds the first items of each user's list (``-1``: no more candidates), ties at random.

    Example:
        >>> ranks = Ranks(
        ...     users=np.array([7], "i4"),
        ...     offsets=np.array([0, 2]),
        ...     items=np.array([3, 5], "i4"),
        ...     ranks=np.array([1, 4], "i4"),
        ...     bounds=np.array([[1, 4], [1, 6]], "i4"),
        ...     among=np.array([9, 9], "i4"),
        ...     shown=np.empty((1, 0), "i4"),
        ...     alone=False,
        ...     catalogue=10,
        ... )
        >>> ranks.tied.tolist(), ranks.settled("worst").ranks.tolist()
        ([False, True], [1, 6])
    """

    users: Index
    offsets: Long
    items: Index
    ranks: Index
    bounds: Index
    among: Index
    shown: Index
    alone: bool
    catalogue: int

    @classmethod
    def of(cls, held: HeldOut, ranks: Index, among: Index, shown: Index, *, alone: bool) -> "Ranks":
        """Ranks in three rows (ties at random, best, worst), with the users they belong to."""
        users, offsets, items = held.users, held.positives.offsets, held.positives.items
        return cls(users, offsets, items, ranks[0], ranks[1:], among, shown, alone, held.catalogue)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Whether the way ties are settled moves each held-out item."""
        return self.bounds[0] != self.bounds[1]

    @property
    def positives(self) -> Long:
        """How many held-out items each user has."""
        return np.diff(self.offsets)

    def settled(self, ties: Ties) -> "Ranks":
        """The same with ties settled at random, in the best or in the worst way."""
        if ties not in _TIES:
            raise TacitError(f"no way to settle ties is called {ties!r}", nearest(str(ties), _TIES))
        return self if ties == "random" else replace(self, ranks=self.bounds[_TIES.index(ties) - 1])

    def keeping(self, chosen: NDArray[np.bool_]) -> "Ranks":
        """Only the chosen held-out items, at the ranks they have, and the users who have any of them."""
        counts = (
            np.add.reduceat(chosen.astype(np.int64), self.offsets[:-1]) if len(self.users) else self.positives
        )
        some = counts > 0
        return replace(
            self,
            users=self.users[some],
            offsets=np.concatenate([[0], np.cumsum(counts[some])]),
            items=self.items[chosen],
            ranks=self.ranks[chosen],
            bounds=self.bounds[:, chosen],
            among=self.among[chosen],
            shown=self.shown[some],
        )


def full_ranks(
    scorer: Scorer, held: HeldOut, *, keys: Keys, depth: int = 0, block_bytes: int = BLOCK_BYTES
) -> Ranks:
    """Rank held-out items within the whole catalogue minus what the user had seen.

    Args:
        scorer: The model.
        held: Who is judged on what.
        keys: Settle ties, the same way for every model with the same keys.
        depth: How many items of each list to keep as ``shown``.
        block_bytes: Memory for one block of scores (speed only).

    Returns:
        Ranks within one list per user.

    Example:
        >>> from tacit.evaluate.held_out import Lists
        >>> from tacit.rng import SeededKeys
        >>> class Rising:
        ...     def scores(self, users):
        ...         return np.tile(np.arange(4, dtype="f4"), (len(users), 1))
        >>> one, user = np.array([0, 1]), np.array([0], "i4")
        >>> seen, met = Lists(one, np.array([3], "i4")), Lists(2 * one, np.array([1, 3], "i4"))
        >>> held = HeldOut(user, Lists(one, np.array([1], "i4")), seen, met, 4, 0)
        >>> ranks = full_ranks(Rising(), held, keys=SeededKeys(0), depth=2)
        >>> ranks.ranks.tolist(), ranks.shown.tolist()
        ([2], [[2, 1]])
    """
    return _in_blocks(scorer, held, keys, depth, block_bytes, alone=False)


def alone_ranks(scorer: Scorer, held: HeldOut, *, keys: Keys, block_bytes: int = BLOCK_BYTES) -> Ranks:
    """Rank each held-out item alone against the items its user never met in any part.

    Args:
        scorer: The model.
        held: Who is judged on what.
        keys: Settle ties.
        block_bytes: Memory for one block of scores (speed only).

    Returns:
        Ranks, each within a list of its own.

    Example:
        >>> from tacit.evaluate.held_out import Lists
        >>> from tacit.rng import SeededKeys
        >>> class Rising:
        ...     def scores(self, users):
        ...         return np.tile(np.arange(4, dtype="f4"), (len(users), 1))
        >>> two, none = (
        ...     Lists(np.array([0, 2]), np.array([1, 2], "i4")),
        ...     Lists(np.zeros(2, "i8"), np.empty(0, "i4")),
        ... )
        >>> held = HeldOut(np.array([0], "i4"), two, none, two, 4, 0)
        >>> alone_ranks(Rising(), held, keys=SeededKeys(0)).ranks.tolist()
        [2, 2]
    """
    return _in_blocks(scorer, held, keys, 0, block_bytes, alone=True)


def _in_blocks(
    scorer: Scorer, held: HeldOut, keys: Keys, depth: int, block_bytes: int, *, alone: bool
) -> Ranks:
    ranks = np.empty((3, len(held.positives.items)), np.int32)
    top = np.empty((len(held.users), depth), np.int32)
    places = keys.users(held.users, "evaluate/ties")
    hidden = held.met if alone else held.seen
    lists = hidden.offsets, hidden.items, held.positives.offsets, held.positives.items
    for rows, scores in score_blocks(scorer, held.users, held.catalogue, block_bytes):
        rank_block(scores, rows.start, *lists, places, ranks, top)
    candidates = held.catalogue - hidden.lengths + (1 if alone else 0)
    among = np.repeat(candidates, held.positives.lengths).astype(np.int32)
    return Ranks.of(held, ranks, among, top, alone=alone)
