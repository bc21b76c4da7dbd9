"""Masks: a 32-byte seed becomes a stream of ring elements by AES-256 in counter mode.

Seeds are never shortened, and none serves two sums: each comes from fresh keys, and what is derived from it
is bound to the terms of the sum, to the roster and to the people who shared.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError

Ring = NDArray[np.unsignedinteger]
Sign = Literal[1, -1]
TILE = 1 << 17
"""Bytes of one column tile: the running sum of a tile stays in the cache while all masks pass over it."""
TOGETHER = 512
RINGS = {16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}


def keypair(entropy: bytes) -> tuple[bytes, bytes]:
    """A private key for agreement (X25519) from 32 fresh bytes, and its public half.

    Example:
        >>> mine, yours = keypair(b"a" * 32), keypair(b"b" * 32)
        >>> agreed(mine[0], yours[1], b"demo") == agreed(yours[0], mine[1], b"demo")
        True
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return entropy, X25519PrivateKey.from_private_bytes(entropy).public_key().public_bytes_raw()


def agreed(private: bytes, public: bytes, purpose: bytes) -> bytes:
    """32 bytes that only the two owners can derive (X25519, then HKDF-SHA256 bound to ``purpose``).

    Example:
        >>> agreed(b"a" * 32, bytes(32), b"demo")
        Traceback (most recent call last):
        tacit.errors.TacitError: a public key of small order; nothing is agreed with its owner
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    try:
        shared = X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError as error:
        raise TacitError("a public key of small order", "nothing is agreed with its owner") from error
    return HKDF(SHA256(), 32, salt=None, info=b"tacit secure sum 1 " + purpose).derive(shared)


def usable(public: bytes) -> bool:
    """Whether a public key can agree on anything; one of small order makes everybody's secret the same.

    Example:
        >>> usable(bytes(32)), usable(keypair(b"a" * 32)[1])
        (False, True)
    """
    try:
        agreed(b"any private key does" + bytes(12), public, b"trial")
    except TacitError:
        return False
    return True


def stream(seed: bytes) -> Any:
    """The key stream of a seed, read from its start; ``update_into(zeros, room)`` gives the next bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if len(seed) != 32:
        raise TacitError(f"a mask seed of {len(seed)} bytes", "seeds have 32")
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()


def add_masks(total: Ring, seeds: Iterable[tuple[bytes, Sign]]) -> None:
    """Add (or take away) the mask of every seed, column tile after column tile, modulo the ring.

    Example:
        >>> total = np.zeros(5, dtype="<u4")
        >>> add_masks(total, [(b"s" * 32, 1), (b"s" * 32, -1)])
        >>> total.tolist()
        [0, 0, 0, 0, 0]
    """
    if total.dtype not in RINGS.values() or not total.flags.c_contiguous:
        raise TacitError(f"a vector of {total.dtype}", "use unsigned 16, 32 or 64 bits, in one piece")
    width = max(1, TILE // total.itemsize)
    zeros, room = bytes(width * total.itemsize), bytearray(width * total.itemsize + 15)
    keystream = np.frombuffer(room, dtype=total.dtype, count=width)
    for group in _groups(seeds):
        streams = [(stream(seed).update_into, np.add if sign > 0 else np.subtract) for seed, sign in group]
        for low in range(0, len(total), width):
            tile = total[low : low + width]
            source, mask = zeros[: tile.nbytes], keystream[: len(tile)]
            for fill, merge in streams:
                fill(source, room)
                merge(tile, mask, out=tile)


def _groups(seeds: Iterable[tuple[bytes, Sign]]) -> Iterator[list[tuple[bytes, Sign]]]:
    left = iter(seeds)
    while group := list(islice(left, TOGETHER)):
        yield group
