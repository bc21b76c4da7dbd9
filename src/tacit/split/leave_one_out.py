"""One held-out interaction per person: any, or the latest."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions, user_offsets


def any_of_each(log: Interactions, users: int, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Mark one random row of every user who has two or more; the log is in order of user.

    Example:
        >>> log = Interactions(np.array([0, 0, 1], "i4"), np.array([4, 5, 6], "i4"), np.ones(3, "f4"))
        >>> any_of_each(log, 2, np.random.default_rng(1)).tolist()
        [False, True, False]
    """
    offsets = user_offsets(log, users)
    counts = np.diff(offsets)
    # One number per user, drawn for everybody, so that a user's draw does not hang on who else has enough.
    places = (draw.random(users) * counts).astype(np.int64)
    chosen = np.flatnonzero(counts >= 2)
    marked = np.zeros(len(log), dtype=np.bool_)
    marked[offsets[chosen] + places[chosen]] = True
    return marked


def last_of_each(log: Interactions, users: int, draw: np.random.Generator) -> tuple[NDArray[np.bool_], int]:
    """Mark the latest row of every user who has two or more, and count the users whose latest is a tie.

    Among rows of one user with the same latest time, one is taken at random: taking the first or last in
    item order would favour low or high ids, and with them old or new items.

    Example:
        >>> log = Interactions(
        ...     np.array([0, 0, 0], "i4"), np.array([4, 5, 6], "i4"), np.ones(3, "f4"), np.array([30, 90, 10])
        ... )
        >>> last_of_each(log, 1, np.random.default_rng(1))
        (array([False,  True, False]), 0)
    """
    offsets = user_offsets(log, users)
    counts = np.diff(offsets)
    marked = np.zeros(len(log), dtype=np.bool_)
    chances = draw.random(users)
    if log.times is None or not len(log):
        return marked, 0
    some = counts > 0
    latest = np.zeros(users, dtype=np.int64)
    latest[some] = np.maximum.reduceat(log.times, offsets[:-1][some])
    last = np.flatnonzero(log.times == latest[log.users])
    starts = np.searchsorted(last, offsets)
    ties = np.diff(starts)
    chosen = np.flatnonzero(counts >= 2)
    places = (chances[chosen] * ties[chosen]).astype(np.int64)
    marked[last[starts[chosen] + places]] = True
    return marked, int(np.count_nonzero(ties[chosen] > 1))
