"""Ragged gathers: the rows of chosen clients, back to back."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.types import Array, Long

Whole = NDArray[np.integer]


@njit(nogil=True, cache=True)
def _gather(offsets, chosen, new_offsets, source, target):  # noqa: ANN001, ANN202 - compiled
    for position in range(len(chosen)):
        client = np.uint64(chosen[position])
        start, stop = offsets[client], offsets[client + np.uint64(1)]
        at = new_offsets[position]
        for row in range(start, stop):
            target[at] = source[row]
            at += 1


def gathered_offsets(offsets: Long, chosen: Whole) -> Long:
    """Offsets of the chosen clients' rows laid back to back.

    Example:
        >>> gathered_offsets(np.array([0, 2, 2, 5]), np.array([2, 0], "i4"))
        array([0, 3, 5])
    """
    lengths = offsets[chosen.astype(np.int64) + 1] - offsets[chosen]
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def gathered(offsets: Long, chosen: Whole, new_offsets: Long, source: Array) -> Array:
    """The chosen clients' entries of a ragged column.

    Example:
        >>> offsets, chosen = np.array([0, 2, 2, 5]), np.array([2, 0], "i4")
        >>> gathered(offsets, chosen, gathered_offsets(offsets, chosen), np.arange(5))
        array([2, 3, 4, 0, 1])
    """
    target = np.empty((int(new_offsets[-1]), *source.shape[1:]), dtype=source.dtype)
    _gather(offsets, chosen, new_offsets, source, target)
    return target
