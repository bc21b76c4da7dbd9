"""Randomised response: one bit per item, each told truthfully or not by a coin of its own."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Index, Long

if TYPE_CHECKING:
    from tacit.rng import Keyed

Bits = NDArray[np.uint8]


def truth(offsets: Long, items: Index, catalogue: int) -> Bits:
    """Each client's bits over the catalogue, eight to a byte; those beyond the catalogue are zero.

    Example:
        >>> told = truth(np.array([0, 2]), np.array([0, 9], "i4"), 10)
        >>> np.unpackbits(told, axis=1, count=10).tolist()
        [[1, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """
    mine = items[offsets[0] : offsets[-1]]
    if len(mine) and (mine.min() < 0 or mine.max() >= catalogue):
        raise TacitError(f"an item outside the catalogue of {catalogue}", "number items from 0")
    bits = np.zeros((len(offsets) - 1, -(-catalogue // 8)), dtype=np.uint8)
    _tell(offsets, items, bits)
    return bits


def respond(bits: Bits, words: "Keyed", lies_below: int) -> None:
    """Turn round every bit whose own word, one per item of the catalogue, is below ``lies_below``.

    Example:
        >>> told = truth(np.array([0, 1]), np.array([0], "i4"), 3)
        >>> respond(told, np.array([[9, 2, 9]], "u8"), lies_below=3)
        >>> np.unpackbits(told, axis=1, count=3).tolist()
        [[1, 1, 0]]
    """
    if not 0 <= lies_below < 2**63:
        raise TacitError(f"lies below {lies_below}", "give less than half of 2^64")
    if words.shape != (len(bits), words.shape[1]) or -(-words.shape[1] // 8) != bits.shape[1]:
        raise TacitError(f"{words.shape} words for bits in {bits.shape} bytes", "give one word per bit")
    bits ^= np.packbits(words < np.uint64(lies_below), axis=1)


@kernel
def _tell(offsets: Long, items: Index, bits: Bits) -> None:
    for client in range(len(bits)):
        for at in range(offsets[client], offsets[client + 1]):
            item = np.uint32(items[at])
            bits[client, item >> np.uint32(3)] |= np.uint8(128) >> np.uint8(item & np.uint32(7))
