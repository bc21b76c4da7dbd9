"""Loops over whole numbers and signs: draws from a table of thresholds, and the Walsh-Hadamard transform."""

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.compiled import kernel
from tacit.rng import Keyed
from tacit.types import Long

GUIDE_BITS = 12


def guide_of(thresholds: Keyed) -> Long:
    """Where to start looking, by a word's leading bits.

    Example:
        >>> int(guide_of(np.array([1 << 63], dtype=np.uint64))[-1])
        1
    """
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    return np.searchsorted(thresholds, starts, side="right").astype(np.int64)


def looked_up(words: Keyed, thresholds: Keyed, guide: Long) -> Long:
    """How many of the rising thresholds are at most each word: a draw, if the words are uniform.

    Example:
        >>> thresholds = np.array([5, 1 << 63], dtype=np.uint64)
        >>> looked_up(np.array([[4, 5, 1 << 63]], dtype=np.uint64), thresholds, guide_of(thresholds)).tolist()
        [[0, 1, 2]]
    """
    found = np.empty(words.shape, dtype=np.int64)
    _look_up(words.reshape(-1), thresholds, guide, found.reshape(-1))
    return found


@kernel
def _look_up(words: Keyed, thresholds: Keyed, guide: Long, found: Long) -> None:
    shift = np.uint64(64 - GUIDE_BITS)
    for place in range(len(words)):
        word = words[place]
        at = guide[np.int64(word >> shift)]
        while at < len(thresholds) and thresholds[at] <= word:
            at += 1
        found[place] = at


def walsh_hadamard(rows: NDArray[np.float64]) -> None:
    """Each row, of a power of two numbers, times the orthonormal Walsh-Hadamard matrix; its own inverse.

    Example:
        >>> row = np.array([[2.0, 0.0, 0.0, 0.0]])
        >>> walsh_hadamard(row)
        >>> row.tolist()
        [[1.0, 1.0, 1.0, 1.0]]
    """
    for row in rows:
        _transform(row)
    rows *= rows.shape[1] ** -0.5


@kernel
def _transform(row: NDArray[np.float64]) -> None:
    half = 1
    while half < len(row):
        for low in range(0, len(row), 2 * half):
            for place in range(low, low + half):
                left, right = row[place], row[place + half]
                row[place] = left + right
                row[place + half] = left - right
        half *= 2
