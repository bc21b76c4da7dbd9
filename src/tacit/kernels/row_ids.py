"""The ids of sparse rows in few bytes: packed as Elias and Fano did where that is shorter than written out.

Of each id the lowest bits are written as they are, the rest as gaps in unary: about ``2 + log2(m / n)`` bits
an id for ``n`` rising ids below ``m``, within half a bit of the least there is. The length follows from the
count and the largest id alone, so it is known without packing, and it tells nothing else about the ids.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Index, Long

Bytes = NDArray[np.uint8]
_HEAD = 4  # the largest id


class Form(IntEnum):
    """How a client's ids are written.

    Example:
        >>> Form.PACKED.value
        1
    """

    PLAIN = 0
    PACKED = 1


class Sizes(NamedTuple):
    """The shorter form of each client's ids, and its length in bytes.

    Example:
        >>> Sizes(np.zeros(1, "u1"), np.array([12])).nbytes.tolist()
        [12]
    """

    forms: Bytes
    nbytes: Long


def id_sizes(starts: Long, lengths: Long, ids: Index) -> Sizes:
    """What each client's ids take, without writing them.

    Example:
        >>> many = np.arange(0, 3000, 10, dtype="i4")
        >>> found = id_sizes(np.array([0, 0]), np.array([300, 1]), many)
        >>> found.nbytes.tolist(), found.forms.tolist()
        ([202, 4], [1, 0])
    """
    largest = np.zeros(len(starts), dtype=np.int64)
    _largest(starts, lengths, ids, largest)
    shift = _shift(largest, lengths)
    packed = _HEAD + _whole(lengths * shift) + _whole(lengths + (largest >> shift))
    plain = 4 * lengths
    return Sizes((packed < plain).astype(np.uint8), np.minimum(packed, plain))


@kernel
def _largest(starts: Long, lengths: Long, ids: Index, largest: Long) -> None:
    for client in range(len(starts)):
        held, found = ids[starts[client] : starts[client] + lengths[client]], np.int32(0)
        for at in range(len(held)):  # a slice of its own: no index can wrap, so the loop is vectorised
            found = held[at] if held[at] > found else found
        largest[client] = found


def _shift(largest: Long, counts: Long) -> Long:
    """How many low bits of an id are written as they are: the whole part of ``log2(m / n)``."""
    ratio = (largest + 1) // np.maximum(counts, 1)
    return np.maximum(np.frexp(ratio.astype(np.float64))[1] - 1, 0).astype(np.int64)


def _whole(bits: Long) -> Long:
    return (bits + 7) // 8


def written_ids(ids: Index, form: int) -> Bytes:
    """Rising ids in one of the forms.

    Example:
        >>> read_ids(written_ids(np.array([3, 7, 7, 900], "i4"), Form.PACKED), 4, Form.PACKED).tolist()
        [3, 7, 7, 900]
    """
    if form == Form.PLAIN:
        return ids.astype("<i4").view(np.uint8)
    largest = np.array([ids[-1] if len(ids) else 0], dtype=np.int64)
    shift = int(_shift(largest, np.array([len(ids)]))[0])
    low = (ids[:, np.newaxis] >> np.arange(shift)) & 1
    high = np.zeros(len(ids) + int(largest[0] >> shift), dtype=np.uint8)
    high[(ids >> shift) + np.arange(len(ids))] = 1
    head = largest.astype("<u4").view(np.uint8)
    return np.concatenate([head, np.packbits(low.astype(np.uint8).ravel()), np.packbits(high)])


def packed_length(largest: int, count: int) -> int:
    """The bytes that ``count`` packed ids take, the largest of which is known.

    Example:
        >>> packed_length(2990, 300)
        202
    """
    shift = int(_shift(np.array([largest]), np.array([count]))[0])
    return _HEAD + int(_whole(np.array(count * shift))) + int(_whole(np.array(count + (largest >> shift))))


def read_ids(raw: Bytes, count: int, form: int) -> Index:
    """The ids that :func:`written_ids` wrote; anything else is refused.

    Example:
        >>> read_ids(np.array([7, 0, 0, 0], "u1"), 1, Form.PLAIN).tolist()
        [7]
    """
    altered = TacitError("a message has other ids than it declares", "it was altered; it is not counted")
    if form == Form.PLAIN:
        found = raw.view("<i4").astype(np.int32) if len(raw) == 4 * count else np.zeros(0, dtype=np.int32)
    else:
        largest = int(raw[:_HEAD].view("<u4")[0]) if len(raw) >= _HEAD else 0
        if largest >= 2**31 or len(raw) != packed_length(largest, count):
            raise altered
        found = _unpacked(raw[_HEAD:], count, int(_shift(np.array([largest]), np.array([count]))[0]))
        if len(found) != count or (count and found[-1] != largest):
            raise altered
    if len(found) != count or (count and found.min() < 0):
        raise altered
    return found


def _unpacked(raw: Bytes, count: int, shift: int) -> Index:
    cut = (count * shift + 7) // 8
    low = np.unpackbits(raw[:cut], count=count * shift).reshape(count, shift).astype(np.int64)
    high = np.flatnonzero(np.unpackbits(raw[cut:]))
    if len(high) != count:
        return np.zeros(0, dtype=np.int32)
    values = ((high - np.arange(count)) << shift) + (low << np.arange(shift)).sum(axis=1)
    return values.astype(np.int32)
