"""One cut through a common time line: everything before it trains, what comes after tests."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions, Times


def moment(times: Times, share: float) -> int | None:
    """The first moment of the test period, so that about ``share`` of the rows come before it.

    Rows of one second stay together; of the two possible cuts the one nearer to the share is taken.
    ``None`` when all rows carry the same time.

    Example:
        >>> moment(np.array([1, 2, 3, 3, 9]), 0.8)
        9
    """
    instants, counts = np.unique(times, return_counts=True)
    if len(instants) < 2:
        return None
    before = np.cumsum(counts)[:-1]
    return int(instants[1 + int(np.abs(before - share * len(times)).argmin())])


def later(log: Interactions, share: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Masks of the test rows and of the rows left out, or ``None`` without two different times.

    Left out are later rows of users or items that the training period does not know: no model that
    was trained before the cut can say anything about them, so keeping them would only measure that.

    Example:
        >>> log = Interactions(
        ...     np.array([0, 0, 1, 2], "i4"),
        ...     np.array([1, 2, 2, 1], "i4"),
        ...     np.ones(4, "f4"),
        ...     np.array([1, 9, 2, 8]),
        ... )
        >>> test, left_out = later(log, 0.5)
        >>> test.tolist(), left_out.tolist()
        ([False, True, False, False], [False, False, False, True])
    """
    if log.times is None or not len(log):
        return None
    cut = moment(log.times, share)
    if cut is None:
        return None
    after = log.times >= cut
    known_users = np.zeros(int(log.users.max()) + 1, dtype=np.bool_)
    known_items = np.zeros(int(log.items.max()) + 1, dtype=np.bool_)
    known_users[log.users[~after]] = True
    known_items[log.items[~after]] = True
    known = known_users[log.users] & known_items[log.items]
    return after & known, after & ~known
