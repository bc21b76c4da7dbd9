"""A random share of every person's own interactions."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions, user_offsets

_BLOCK = 1 << 22


def share_of_each(
    log: Interactions, wanted: NDArray[np.integer], draw: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark ``wanted[user]`` random rows of each user; the log is in order of user.

    Worked through in runs of whole users, so that memory beside the mask stays bounded. Each row draws
    one number in the log's order; a user's rows with the smallest numbers are marked.

    Example:
        >>> log = Interactions(np.array([0, 0, 0, 1], "i4"), np.arange(4, dtype="i4"), np.ones(4, "f4"))
        >>> marked = share_of_each(log, np.array([2, 0]), np.random.default_rng(1))
        >>> int(marked[:3].sum()), bool(marked[3])
        (2, False)
    """
    offsets = user_offsets(log, len(wanted))
    marked = np.zeros(len(log), dtype=np.bool_)
    first, users = 0, len(wanted)
    while first < users:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        start, stop = int(offsets[first]), int(offsets[last])
        owners = log.users[start:stop]
        order = np.argsort(owners + draw.random(stop - start), kind="stable")
        rank = np.arange(start, stop) - offsets[owners]
        marked[start + order[rank < wanted[owners]]] = True
        first = last
    return marked
