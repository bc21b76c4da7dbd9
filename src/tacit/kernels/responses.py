"""Randomised response: one bit per item, each told truthfully or not by a coin of its own."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.kernels.sampling import _word
from tacit.types import Index, Long

if TYPE_CHECKING:
    from tacit.rng import Keyed

Bits = NDArray[np.uint8]


def respond(offsets: Long, items: Index, keys: "Keyed", catalogue: int, lie: float) -> Bits:
    """Each client's bits over the catalogue, eight to a byte, each turned round with probability ``lie``.

    The coins are the client's own stream, so an answer depends on its key and its items alone. ``lie=0``
    tells the truth. Bits beyond the catalogue are zero.

    Example:
        >>> told = respond(np.array([0, 2]), np.array([0, 9], "i4"), np.array([7], "u8"), 10, 0.0)
        >>> np.unpackbits(told, axis=1, count=10).tolist()
        [[1, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """
    if not 0 <= lie < 0.5:
        raise TacitError(f"lies with probability {lie}", "give at least 0 and less than one half")
    if len(keys) != len(offsets) - 1:
        raise TacitError(f"{len(keys)} keys for {len(offsets) - 1} clients", "give one key per client")
    mine = items[offsets[0] : offsets[-1]]
    if len(mine) and (mine.min() < 0 or mine.max() >= catalogue):
        raise TacitError(f"an item outside the catalogue of {catalogue}", "number items from 0")
    bits = np.zeros((len(keys), -(-catalogue // 8)), dtype=np.uint8)
    _respond(offsets, items, keys, catalogue, np.uint64(min(int(lie * 2.0**64), 2**64 - 1)), bits)
    return bits


@kernel
def _respond(
    offsets: Long, items: Index, keys: "Keyed", catalogue: int, lies_below: np.uint64, bits: Bits
) -> None:
    for client in range(len(keys)):
        for at in range(offsets[client], offsets[client + 1]):
            item = np.uint32(items[at])
            bits[client, item >> np.uint32(3)] |= np.uint8(128) >> np.uint8(item & np.uint32(7))
        if lies_below == 0:
            continue
        for item in range(catalogue):
            if _word(keys[client], np.uint64(item + 1)) < lies_below:
                bits[client, item >> 3] ^= np.uint8(128) >> np.uint8(item & 7)
