"""Reports about several entries named by one seed: what a device and the server both derive from it.

A report is the seed, then its numbers in 16 bits each, two to a word. Sums are of whole numbers, so the order
of reports cannot change them.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.compiled import kernel
from tacit.types import Floats, Long

Words = NDArray[np.uint32]
PER_UNIT = 256  # sixteen bits then reach 128, far beyond any number a randomiser draws
_LIMIT = 32767
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def _entry(name: np.uint32, place: int, entries: float) -> np.uint32:
    """The entry at a place of a report, from the report's name alone."""
    word = (np.uint64(name) << np.uint64(20)) + np.uint64(place + 1) * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    word ^= word >> np.uint64(31)
    return np.uint32((word >> np.uint64(11)) * 2.0**-53 * entries)


def entries_of(names: Words, count: int, entries: int) -> Words:
    """The ``count`` entries that each name stands for, in the order of its numbers.

    Example:
        >>> found = entries_of(np.array([[7, 7]], "u4"), 3, 10)
        >>> found.shape, bool((found[0, 0] == found[0, 1]).all())
        ((1, 2, 3), True)
    """
    found = np.empty((*names.shape, count), dtype=np.uint32)
    _fill_entries(names.reshape(-1), float(entries), found.reshape(-1, count))
    return found


@kernel
def _fill_entries(names: Words, entries: float, found: Words) -> None:
    for report in range(len(names)):
        for place in range(found.shape[1]):
            found[report, place] = _entry(names[report], place, entries)


def packed(names: Words, numbers: Floats) -> Words:
    """Reports as words: the name, then two numbers a word, rounded to ``1 / PER_UNIT`` and cut at 16 bits.

    Example:
        >>> packed(np.array([[5]], "u4"), np.array([[[1.0, -0.5]]]))
        array([[[         5, 4286578944]]], dtype=uint32)
    """
    return np.concatenate([names[..., np.newaxis], halves(numbers)], axis=-1)


def halves(numbers: Floats) -> Words:
    """Numbers in 16 bits, two to a word along the last axis (a zero is added to an odd count).

    Example:
        >>> whole(halves(np.array([[1.0, -0.5, 2.0]])), 3) / PER_UNIT
        array([[ 1. , -0.5,  2. ]])
    """
    odd = numbers.shape[-1] % 2
    rounded = np.zeros((*numbers.shape[:-1], numbers.shape[-1] + odd), dtype="<i2")
    rounded[..., : numbers.shape[-1]] = np.clip(np.rint(numbers * PER_UNIT), -_LIMIT, _LIMIT)
    return rounded.view("<u4")


def whole(words: Words, count: int) -> NDArray[np.int16]:
    """The numbers of :func:`halves`, in whole steps of ``1 / PER_UNIT``."""
    return np.ascontiguousarray(words).view("<i2")[..., :count]


def add_packed(total: Long, reports: Words) -> None:
    """Add every report's numbers, in whole steps, to the entries its name stands for.

    Example:
        >>> total = np.zeros(1, dtype=np.int64)
        >>> add_packed(total, packed(np.array([5], "u4"), np.array([[1.0, -0.5]])))
        >>> total / PER_UNIT
        array([0.5])
    """
    _add(total, np.ascontiguousarray(reports))


@kernel
def _add(total: Long, reports: Words) -> None:
    entries = float(len(total))
    for report in range(len(reports)):
        name = reports[report, 0]
        for place in range(2 * (reports.shape[1] - 1)):
            half = (reports[report, 1 + place // 2] >> np.uint32(16 * (place % 2))) & np.uint32(0xFFFF)
            number = np.int64(half)
            if number > 32767:
                number -= 65536
            total[_entry(name, place, entries)] += number
