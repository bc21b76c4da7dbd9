"""Shamir's secret sharing of 32-byte secrets, and the sealed letters that carry two shares to a neighbour."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from tacit.errors import TacitError
from tacit.transport.secure_sum.field import PRIME, at_zero, evaluated

Entropy: TypeAlias = Callable[[int], bytes]
SECRET_BYTES, SHARE_BYTES = 32, 33
SEALED_BYTES = 2 * SHARE_BYTES + 16


class SharePair(NamedTuple):
    """What one neighbour keeps for another: a share of its self mask's seed and one of its mask key."""

    seed: bytes
    key: bytes


def split(secret: bytes, points: Sequence[int], threshold: int, entropy: Entropy) -> list[bytes]:
    """One share per point; any ``threshold`` of them give the secret back, fewer say nothing about it.

    Example:
        >>> import secrets
        >>> shares = split(b"s" * 32, [1, 2, 3, 4], 3, secrets.token_bytes)
        >>> joined([4, 1, 3], [shares[3], shares[0], shares[2]]) == b"s" * 32
        True
    """
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(points):
        raise TacitError(
            f"{threshold} of {len(points)} shares of {len(secret)} bytes",
            "share 32 bytes among enough people",
        )
    # 48 bytes modulo a prime of 33: the bias is below 2**-127.
    drawn = (int.from_bytes(entropy(48), "big") % PRIME for _ in range(threshold - 1))
    coefficients = [int.from_bytes(secret, "big"), *drawn]
    return [evaluated(coefficients, point).to_bytes(SHARE_BYTES, "big") for point in points]


def joined(points: Sequence[int], shares: Sequence[bytes]) -> bytes:
    """The secret behind these shares; as many as the threshold, no more are needed.

    Example:
        >>> joined([2], [(5).to_bytes(33, "big")])[-1]
        5
    """
    numbers = [int.from_bytes(share, "big") for share in shares]
    secret = at_zero(points, numbers)
    if secret >> (8 * SECRET_BYTES) or any(number >= PRIME for number in numbers):
        raise TacitError(
            "these shares belong to no 32-byte secret", "one of them is wrong; the sum is aborted"
        )
    return secret.to_bytes(SECRET_BYTES, "big")


def sealed(key: bytes, pair: SharePair, binding: bytes) -> bytes:
    """A share pair under a key that is used for this one letter only (hence the constant nonce).

    Example:
        >>> pair = SharePair(b"a" * 33, b"b" * 33)
        >>> opened(b"k" * 32, sealed(b"k" * 32, pair, b"1 to 2"), b"1 to 2") == pair
        True
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(bytes(12), pair.seed + pair.key, binding)


def opened(key: bytes, letter: bytes, binding: bytes) -> SharePair | None:
    """The pair in a sealed letter; ``None`` if the letter was damaged or meant for somebody else.

    Example:
        >>> opened(b"k" * 32, bytes(82), b"1 to 2") is None
        True
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        plain = AESGCM(key).decrypt(bytes(12), letter, binding)
    except InvalidTag:
        return None
    return SharePair(plain[:SHARE_BYTES], plain[SHARE_BYTES:])
