"""A public rotation that spreads a vector's length over all its entries, so that few bits carry a sum.

Random signs and the Walsh-Hadamard matrix, on the longest power of two from the front and then from the back:
every length keeps its length, and each entry takes part in a block of at least half of all.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.integers import walsh_hadamard
from tacit.rng import digest, stream


def rotate(rows: NDArray[np.float64], purpose: str) -> None:
    """Rotate every row in place; the purpose names the signs, which everybody knows.

    Example:
        >>> rows = np.array([[3.0, 5.0, 4.0]])
        >>> rotate(rows, "demo")
        >>> round(float(np.square(rows).sum()), 6)
        50.0
        >>> rotate_back(rows, "demo")
        >>> rows.round(6).tolist()
        [[3.0, 5.0, 4.0]]
    """
    for block, signs in _blocks(rows, purpose):
        part = block * signs
        walsh_hadamard(part)
        block[:] = part


def rotate_back(rows: NDArray[np.float64], purpose: str) -> None:
    """Undo :func:`rotate`."""
    for block, signs in reversed(_blocks(rows, purpose)):
        part = np.ascontiguousarray(block)
        walsh_hadamard(part)
        block[:] = part * signs


def _blocks(rows: NDArray[np.float64], purpose: str) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    length = rows.shape[1]
    width = 1 << (length.bit_length() - 1)
    starts = [0] if width == length else [0, length - width]
    keys = np.array([digest("rotation", purpose, start) for start in starts], dtype=np.uint64)
    bits = stream(keys, width) & np.uint64(1)
    signs = 1.0 - 2.0 * bits.astype(np.float64)
    return [(rows[:, start : start + width], signs[place]) for place, start in enumerate(starts)]
