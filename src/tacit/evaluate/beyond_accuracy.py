"""Whom and what a model serves: coverage of the catalogue, popular and rare items, heavy and light users."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions
from tacit.errors import TacitError
from tacit.evaluate.ranking import recall
from tacit.evaluate.ranks import Ranks
from tacit.types import Long


@dataclass(frozen=True)
class GroupResult:
    """The mean of a metric over the users of a group, how many there are, and its standard error over them.

    Example:
        >>> GroupResult("head", 0.25, 120, "items with 80 or more interactions").users
        120
    """

    group: str
    mean: float
    users: int
    meaning: str
    error: float | None = None


def coverage(ranks: Ranks, k: int) -> float:
    """The share of the catalogue that is in the first k of at least one evaluated user.

    Example:
        >>> none, shown = np.empty(0, "i4"), np.array([[1, 2], [2, -1]], "i4")
        >>> at = np.array([0, 1], "i4")
        >>> ranks = Ranks(at, np.array([0, 1, 2]), at, at, np.tile(at, (2, 1)), at, shown, False, 8)
        >>> coverage(ranks, 2)
        0.25
    """
    if not 1 <= k <= ranks.shown.shape[1]:
        raise TacitError(
            f"coverage of the first {k} of lists {ranks.shown.shape[1]} long",
            "rank with a depth of at least k",
        )
    shown = np.unique(ranks.shown[:, :k])
    return float(np.count_nonzero(shown >= 0) / ranks.catalogue)


def by_popularity(
    ranks: Ranks, train: Interactions, k: int, *, head_share: float = 0.2
) -> tuple[GroupResult, GroupResult]:
    """Recall of popular (head) and of rare (tail) held-out items.

    The head is the ``head_share`` of the catalogue with the most training interactions; ties at its edge go
    to the tail, so that popularity alone decides. A user counts in a group with held-out items of that group.

    Args:
        ranks: From any protocol.
        train: Where popularity is counted.
        k: The cut-off.
        head_share: The share of the catalogue called popular.

    Returns:
        The head's and the tail's mean recall.

    Example:
        >>> train = Interactions(np.arange(3, dtype="i4"), np.array([0, 0, 1], "i4"), np.ones(3, "f4"))
        >>> at, shown = np.array([0, 1], "i4"), np.empty((2, 0), "i4")
        >>> found = np.array([1, 9], "i4")
        >>> ranks = Ranks(at, np.array([0, 1, 2]), at, found, np.tile(found, (2, 1)), found, shown, False, 5)
        >>> [result.mean for result in by_popularity(ranks, train, 5)]
        [1.0, 0.0]
    """
    among, edge = popular_items(train, ranks.catalogue, head_share=head_share)
    popular = among[ranks.items]
    head, tail = f"items with {edge} or more training interactions", f"items with fewer than {edge}"
    return _recall("head", ranks.keeping(popular), k, head), _recall("tail", ranks.keeping(~popular), k, tail)


def popular_items(
    train: Interactions, catalogue: int, *, head_share: float = 0.2
) -> tuple[NDArray[np.bool_], int]:
    """Which items are popular, and from how many training interactions on; ties at the edge are not.

    Example:
        >>> train = Interactions(np.arange(3, dtype="i4"), np.array([0, 0, 1], "i4"), np.ones(3, "f4"))
        >>> popular, edge = popular_items(train, 5)
        >>> popular.tolist(), edge
        ([True, False, False, False, False], 2)
    """
    if not 0 < head_share < 1:
        raise TacitError(f"a head of {head_share} of the catalogue", "use a share between 0 and 1, say 0.2")
    counts = np.bincount(train.items, minlength=catalogue)
    size = max(1, round(head_share * catalogue))
    ordered = np.sort(counts)[::-1]
    edge = int(ordered[size]) + 1 if size < len(ordered) else 0
    return counts >= edge, edge


def activity_groups(activity: Long, groups: int = 3) -> Long:
    """The group of each user, the least active in group 0: equal in size up to ties, equal users together.

    Args:
        activity: How much each user did in training.
        groups: How many groups; one may stay empty where many are equal.

    Returns:
        One number below ``groups`` per user.

    Example:
        >>> activity_groups(np.array([7, 1, 2, 2]), 2).tolist()
        [1, 0, 0, 0]
    """
    if groups < 2:
        raise TacitError(f"{groups} groups of users", "ask for two or more")
    # The share of users with strictly less activity puts equal users into the same group.
    return np.searchsorted(np.sort(activity), activity, side="left") * groups // max(1, len(activity))


def _recall(group: str, ranks: Ranks, k: int, meaning: str) -> GroupResult:
    values = recall(ranks, k)
    mean = float(values.mean()) if len(values) else float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return GroupResult(group, mean, len(ranks.users), meaning, error)
