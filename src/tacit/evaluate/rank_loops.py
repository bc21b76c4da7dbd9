"""The inner loops of ranking: counts, not sorts.

The rank of an item is one plus the number of candidates with a higher score, plus those of the same score
that a keyed shuffle puts before it. The shuffle depends on the user's key and the item alone, so all items
of a user are ranked by one and the same random order, however users are grouped.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.rng import Keyed
from tacit.types import Index, Long

Row = NDArray[np.float32]
Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_NOTHING = np.float32(-np.inf)


@njit(cache=True)
def place(key: np.uint64, item: int) -> np.uint64:
    """Where the shuffle of a key puts an item.

    Example:
        >>> int(place(np.uint64(5), 3)) == int(place(np.uint64(5), 3))
        True
    """
    word = key + (np.uint64(item) + np.uint64(1)) * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@njit(cache=True)
def _higher_and_equal(row: Row, score: np.float32) -> tuple[int, int]:
    higher = 0
    equal = 0
    for item in range(len(row)):
        higher += 1 if row[item] > score else 0
        equal += 1 if row[item] == score else 0
    return higher, equal


@njit(cache=True)
def _settle(
    row: Row, score: np.float32, item: int, key: np.uint64, relevant: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """How many tied items come before: in the shuffle, of the relevant ones; and how many are irrelevant."""
    mine = place(key, item)
    before = 0
    relevant_before = 0
    irrelevant = 0
    for other in range(len(row)):
        if row[other] == score and other != item:
            earlier = 1 if place(key, other) < mine else 0
            before += earlier
            if relevant[other]:
                relevant_before += earlier
            else:
                irrelevant += 1
    return before, relevant_before, irrelevant


@njit(cache=True)
def _fill_top(row: Row, key: np.uint64, top: Index, scores: Row, places: Bits) -> None:
    """The first ``len(top)`` items by score, ties by the shuffle; -1 where candidates run out."""
    depth = len(top)
    held = 0
    for item in range(len(row)):
        score = row[item]
        if score == _NOTHING or (held == depth and score < scores[depth - 1]):
            continue
        mine = place(key, item)
        if held == depth and score == scores[depth - 1] and mine > places[depth - 1]:
            continue
        at = held if held < depth else depth - 1
        while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and places[at - 1] > mine)):
            top[at], scores[at], places[at] = top[at - 1], scores[at - 1], places[at - 1]
            at -= 1
        top[at], scores[at], places[at] = item, score, mine
        held = min(held + 1, depth)
    top[held:] = -1


@njit(cache=True)
def rank_block(
    scores: NDArray[np.float32],
    first: int,
    hidden_offsets: Long,
    hidden: Index,
    offsets: Long,
    positives: Index,
    keys: Keyed,
    ranks: NDArray[np.int32],
    top: NDArray[np.int32],
) -> None:
    """Rank each positive of a block of users among all items that are not hidden for its user.

    Args:
        scores: The block, users x items.
        first: The position of the block's first user in the lists.
        hidden_offsets: Where each user's hidden items start.
        hidden: Items that are no candidates; a hidden positive is ranked all the same, alone among the rest.
        offsets: Where each user's positives start.
        positives: Held-out items, user after user.
        keys: One key per user, for the shuffle that settles ties.
        ranks: Written: (settled at random, best case, worst case) x positives.
        top: Written: users x depth, the first items by score.

    Example:
        >>> none, ranks = np.zeros(2, "i8"), np.zeros((3, 1), "i4")
        >>> scores, empty = np.array([[3, 1, 1, 5]], "f4"), np.zeros(0, "i4")
        >>> keys, top = np.zeros(1, "u8"), np.zeros((1, 1), "i4")
        >>> at, item = np.array([0, 1]), np.array([2], "i4")
        >>> rank_block(scores, 0, none, empty, at, item, keys, ranks, top)
        >>> ranks[1:, 0].tolist(), top.tolist()
        ([3, 4], [[3]])
    """
    depth = top.shape[1]
    relevant = np.zeros(scores.shape[1], np.bool_)
    top_scores = np.empty(depth, np.float32)
    top_places = np.empty(depth, np.uint64)
    for local in range(scores.shape[0]):
        user = first + local
        row = scores[local].copy()
        mine = positives[offsets[user] : offsets[user + 1]]
        row[hidden[hidden_offsets[user] : hidden_offsets[user + 1]]] = _NOTHING
        if depth:
            _fill_top(row, keys[user], top[user], top_scores, top_places)
        relevant[mine] = True
        for slot in range(offsets[user], offsets[user + 1]):
            item = positives[slot]
            score = scores[local, item]
            higher, equal = _higher_and_equal(row, score)
            ranks[:, slot] = higher + 1
            itself = 1 if row[item] == score else 0
            if equal > itself:
                before, relevant_before, irrelevant = _settle(row, score, item, keys[user], relevant)
                ranks[0, slot] += before
                ranks[1, slot] += relevant_before
                ranks[2, slot] += relevant_before + irrelevant
        relevant[mine] = False


@njit(cache=True)
def rank_block_sampled(
    scores: NDArray[np.float32],
    first: int,
    seen_offsets: Long,
    seen: Index,
    offsets: Long,
    positives: Index,
    keys: Keyed,
    draws: Keyed,
    negatives: int,
    ranks: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> None:
    """Rank each positive of a block of users among ``negatives`` unseen items, drawn without replacement.

    Args:
        scores: The block, users x items.
        first: The position of the block's first user in the lists.
        seen_offsets: Where each user's seen items start.
        seen: Seen items, user after user.
        offsets: Where each user's positives start.
        positives: Held-out items, user after user.
        keys: One key per user, for the shuffle that settles ties.
        draws: One key per user, for the negatives.
        negatives: How many to draw per positive; all there are, where they are fewer.
        ranks: Written: (settled at random, best case, worst case) x positives.
        ranked: Written: how many items each positive was ranked among, itself included.

    Example:
        >>> none, ranks, ranked = np.zeros(2, "i8"), np.zeros((3, 1), "i4"), np.zeros(1, "i4")
        >>> scores, empty = np.array([[3, 1, 4, 5]], "f4"), np.zeros(0, "i4")
        >>> key, at, item = np.zeros(1, "u8"), np.array([0, 1]), np.array([2], "i4")
        >>> rank_block_sampled(scores, 0, none, empty, at, item, key, key, 99, ranks, ranked)
        >>> ranks[0].tolist(), ranked.tolist()
        ([2], [4])
    """
    catalogue = scores.shape[1]
    hidden = np.zeros(catalogue, np.bool_)
    pool = np.empty(catalogue, np.int32)
    for local in range(scores.shape[0]):
        user = first + local
        known = seen[seen_offsets[user] : seen_offsets[user + 1]]
        hidden[known] = True
        size = 0
        for item in range(catalogue):
            if not hidden[item]:
                pool[size] = item
                size += 1
        hidden[known] = False
        for slot in range(offsets[user], offsets[user + 1]):
            _rank_one(
                scores[local],
                positives[slot],
                pool[:size],
                negatives,
                keys[user],
                draws[user],
                ranks[:, slot],
            )
            ranked[slot] = min(negatives, size - 1) + 1


@njit(cache=True)
def _rank_one(
    row: Row,
    item: int,
    pool: Index,
    negatives: int,
    key: np.uint64,
    draw: np.uint64,
    ranks: NDArray[np.int32],
) -> None:
    """A shuffle of the pool, cut short: whoever comes first is drawn, the positive itself passed over."""
    score = row[item]
    mine = place(key, item)
    stream = place(draw, item)
    ranks[:] = 1
    drawn = 0
    at = 0
    while drawn < negatives and at < len(pool):
        other_at = at + np.int64(place(stream, at) % np.uint64(len(pool) - at))
        pool[at], pool[other_at] = pool[other_at], pool[at]
        other = pool[at]
        at += 1
        if other == item:
            continue
        drawn += 1
        if row[other] > score:
            ranks += 1
        elif row[other] == score:
            ranks[2] += 1
            ranks[0] += 1 if place(key, other) < mine else 0
