"""What the tail of an exact sum shows: an item that one person of a cohort touched is that person's row.

Rows of one person point the same way, so they can be put together again, and then a handful of them is an
upload like any other. Noise on the sum, or a threshold on how many people stand behind a row, ends it.
"""

from dataclasses import dataclass

import numpy as np

from tacit.audit.reconstruction import Gradient, Recovered, Upload, line_of, one_round
from tacit.data.interactions import Scale
from tacit.types import Floats, Index

FEWEST = 3


@dataclass(frozen=True)
class Exposed:
    """Rows of a sum that one person added: the items, and what they give away."""

    items: Index
    found: Recovered


def lonely(counts: Floats) -> Index:
    """The items behind which exactly one person stands.

    Example:
        >>> lonely(np.array([0.0, 1.0, 3.0, 1.0])).tolist()
        [1, 3]
    """
    return np.flatnonzero(np.abs(counts - 1.0) < 1e-6).astype(np.int32)


def groups(
    items: Index, rows: Floats, table: Floats, gradient: Gradient, *, angle: float = 1e-4
) -> list[Index]:
    """Those of some rows that point the same way, up to sign: at least three together.

    Example:
        >>> table, none = np.zeros((4, 2)), np.arange(4, dtype="i4")
        >>> rows = np.array([[1.0, 2.0], [-2.0, -4.0], [3.0, 1.0], [0.5, 1.0]])
        >>> [group.tolist() for group in groups(none, rows, table, Gradient())]
        [[0, 1, 3]]
    """
    plain = rows.astype(np.float64) - gradient.reg * table[items].astype(np.float64)
    lengths = np.linalg.norm(plain, axis=1)
    left = np.flatnonzero(lengths > 0)
    directions = plain / np.where(lengths > 0, lengths, 1)[:, np.newaxis]
    found = []
    while len(left):
        along = directions[left] @ directions[left[0]]
        apart = directions[left] - along[:, np.newaxis] * directions[left[0]]
        same = np.linalg.norm(apart, axis=1) < angle
        if same.sum() >= FEWEST:
            found.append(items[left[same]])
        same[0] = True
        left = left[~same]
    return found


def exposed(
    rows: Floats, counts: Floats, table: Floats, gradient: Gradient, scale: Scale, *, tolerance: float = 1e-4
) -> list[Exposed]:
    """Everybody whom the tail gives away: groups of rows whose ratings all fall on the scale."""
    alone = lonely(counts)
    found = []
    for items in groups(alone, rows[alone], table, gradient):
        upload = Upload(items, rows[items], table)
        solved = one_round(upload, gradient, scale, tolerance=tolerance)
        if line_of(upload, gradient).rest < 1e-6 and solved.rated.sum() >= (
            1 if gradient.mixed else len(items)
        ):
            found.append(Exposed(items, solved))
    return found
