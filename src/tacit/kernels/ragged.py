"""Ragged copies: runs of rows from where they are to where they should be."""

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.compiled import kernel
from tacit.types import Array, Long

Whole = NDArray[np.integer]


@kernel
def _copy(starts: Long, lengths: Long, targets: Long, source: Array, target: Array) -> None:
    for run in range(len(starts)):
        for row in range(lengths[run]):
            target[targets[run] + row] = source[starts[run] + row]


def copy_runs(starts: Long, lengths: Long, targets: Long, source: Array, target: Array) -> None:
    """Copy ``source[starts[r] : starts[r] + lengths[r]]`` to ``target[targets[r] :]`` for every run.

    Example:
        >>> target = np.zeros(4, dtype=np.int64)
        >>> copy_runs(np.array([3, 0]), np.array([2, 1]), np.array([0, 3]), np.arange(5), target)
        >>> target
        array([3, 4, 0, 0])
    """
    if len(starts) and (
        min(int(starts.min()), int(lengths.min()), int(targets.min())) < 0
        or int((starts + lengths).max()) > len(source)
        or int((targets + lengths).max()) > len(target)
    ):
        raise IndexError("a run outside its column")
    _copy(starts, lengths, targets, source, target)


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
    copy_runs(offsets[chosen], np.diff(new_offsets), new_offsets[:-1], source, target)
    return target
