"""Some people train; the others show half of what they did and are asked for the rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions
from tacit.split.per_user import share_of_each


@dataclass(frozen=True)
class Halves:
    """Masks over the log's rows: what test people show (support) and what they are asked for (query)."""

    support: NDArray[np.bool_]
    query: NDArray[np.bool_]


def strangers(log: Interactions, users: int, share: float, draw: np.random.Generator) -> Halves:
    """Take this share of the people who have two or more interactions, and halve what each did at random.

    With an odd number the support gets the one more.

    Example:
        >>> log = Interactions(np.repeat([0, 1], 3).astype("i4"), np.arange(6, dtype="i4"), np.ones(6, "f4"))
        >>> halves = strangers(log, 2, 0.5, np.random.default_rng(1))
        >>> int(halves.support.sum()), int(halves.query.sum())
        (2, 1)
    """
    counts = np.bincount(log.users, minlength=users)
    people = int(np.count_nonzero(counts))
    enough = np.flatnonzero(counts >= 2)
    number = min(max(round(share * people), 1), len(enough))
    chosen = np.zeros(users, dtype=np.bool_)
    chosen[draw.choice(enough, number, replace=False)] = True
    mine = chosen[log.users]
    query = share_of_each(log, np.where(chosen, counts // 2, 0), draw)
    return Halves(support=mine & ~query, query=query)
