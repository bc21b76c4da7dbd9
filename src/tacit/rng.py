"""Randomness as an argument, keyed by run, round, user and purpose.

Grouping and order of arrival never change a draw: a user's key depends on the seed, the round, the
purpose and the user alone. A device uses :class:`SystemKeys`: keys a server could derive hide nothing.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.types import Index

Keyed = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mixed(words: Keyed) -> Keyed:
    """Each 64-bit word through the finaliser of splitmix64 (a bijection that scatters neighbours).

    Example:
        >>> mixed(np.array([1, 2], dtype=np.uint64))
        array([ 6238072747940578789, 15839785061582574730], dtype=uint64)
    """
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * _MIX_1
        words = (words ^ (words >> np.uint64(27))) * _MIX_2
    return words ^ (words >> np.uint64(31))


def digest(*parts: object) -> int:
    """A stable 64-bit number for any printable parts."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class Keys(Protocol):
    """Where random keys come from."""

    def users(self, users: Index, purpose: str, round: int | None = None) -> Keyed:
        """One key per user for a purpose; without a round the key is the same in every round."""
        ...

    def words(self, users: Index, purpose: str, round: int, width: int) -> Keyed:
        """``width`` fresh 64-bit words per user, for noise that must not be guessed."""
        ...

    def kept_words(self, users: Index, purpose: str, width: int) -> Keyed:
        """``width`` 64-bit words per user that are the same in every call and must not be guessed."""
        ...

    def generator(self, purpose: str, round: int | None = None) -> np.random.Generator:
        """A generator for what the server or the simulation draws."""
        ...


@dataclass(frozen=True)
class SeededKeys:
    """Repeatable keys for a simulation.

    Example:
        >>> keys = SeededKeys(1)
        >>> both = keys.users(np.array([3, 4], "i4"), "fillers", 0)
        >>> bool(keys.users(np.array([4], "i4"), "fillers", 0)[0] == both[1])
        True
    """

    seed: int

    def users(self, users: Index, purpose: str, round: int | None = None) -> Keyed:
        """One key per user, the same however users are grouped."""
        base = np.uint64(digest(self.seed, purpose, round))
        with np.errstate(over="ignore"):
            return mixed(base + (users.astype(np.uint64) + np.uint64(1)) * _GOLDEN)

    def words(self, users: Index, purpose: str, round: int, width: int) -> Keyed:
        """Words of each user's own stream: repeatable, so good for a simulation and for nothing else."""
        return stream(self.users(users, purpose, round), width)

    def kept_words(self, users: Index, purpose: str, width: int) -> Keyed:
        """The first words of each user's stream without a round."""
        return stream(self.users(users, purpose), width)

    def generator(self, purpose: str, round: int | None = None) -> np.random.Generator:
        """A generator for this purpose and round."""
        return np.random.default_rng(digest(self.seed, purpose, round))


@dataclass(frozen=True)
class SystemKeys:
    """Keys from the operating system's entropy, for devices: nobody can derive them.

    ``kept`` is a secret of the device: keys without a round are derived from it, so that what must be
    drawn once and kept (permanent randomised response) stays the same after a restart.
    """

    kept: bytes

    def users(self, users: Index, purpose: str, round: int | None = None) -> Keyed:
        """Fresh keys in every call with a round, kept ones without."""
        if round is None:
            words = [
                hashlib.blake2b(f"{purpose}/{user}".encode(), key=self.kept, digest_size=8) for user in users
            ]
            return np.array([int.from_bytes(word.digest(), "little") for word in words], dtype=np.uint64)
        return np.frombuffer(secrets.token_bytes(8 * len(users)), dtype=np.uint64)

    def words(self, users: Index, purpose: str, round: int, width: int) -> Keyed:
        """Words straight from the operating system's cryptographic generator: none follows from another."""
        del purpose, round
        drawn = secrets.token_bytes(8 * len(users) * width)
        return np.frombuffer(drawn, dtype=np.uint64).reshape(len(users), width)

    def kept_words(self, users: Index, purpose: str, width: int) -> Keyed:
        """An extendable hash of the secret and the purpose: 256 bits stand behind it, not a 64-bit key.

        A key of 64 bits could be found by trying: a server that holds thousands of answers knows the right
        one when it meets it.
        """
        drawn = bytearray()
        for user in users:
            key = hashlib.blake2b(f"{purpose}/{user}".encode(), key=self.kept, person=b"kept words")
            drawn += hashlib.shake_256(key.digest()).digest(8 * width)
        return np.frombuffer(bytes(drawn), dtype=np.uint64).reshape(len(users), width)

    def generator(self, purpose: str, round: int | None = None) -> np.random.Generator:
        """A generator seeded with 256 fresh bits."""
        del purpose, round
        return np.random.default_rng(secrets.randbits(256))


def stream(keys: Keyed, width: int) -> Keyed:
    """The first ``width`` words of each key's stream (splitmix64).

    Example:
        >>> stream(np.array([7], dtype=np.uint64), 3).shape
        (1, 3)
    """
    steps = (np.arange(width, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
    with np.errstate(over="ignore"):
        return mixed(keys[:, np.newaxis] + steps)


def uniforms(keys: Keyed, width: int) -> NDArray[np.float64]:
    """``width`` numbers in [0, 1) per key.

    Example:
        >>> uniforms(np.array([7], dtype=np.uint64), 3).shape
        (1, 3)
    """
    return _fractions(stream(keys, width))


def _fractions(words: Keyed) -> NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normals_of(words: Keyed) -> NDArray[np.float64]:
    """Two standard normal numbers from each pair of words (Box and Muller), row by row.

    The words' randomness is the numbers': words nobody can guess make noise nobody can guess. Doubles
    have gaps that ideal noise has not; where that matters use a discrete mechanism.

    Example:
        >>> normals_of(stream(np.arange(2, dtype=np.uint64), 6)).shape
        (2, 6)
    """
    pairs = _fractions(words)
    half = words.shape[1] // 2
    radius = np.sqrt(-2.0 * np.log1p(-pairs[:, :half]))
    angle = 2.0 * np.pi * pairs[:, half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def normals(keys: Keyed, width: int) -> NDArray[np.float64]:
    """``width`` standard normal numbers per key (for starting values, never for privacy noise).

    Example:
        >>> many = normals(np.arange(1000, dtype=np.uint64), 10)
        >>> bool(abs(many.mean()) < 0.05 and abs(many.std() - 1) < 0.05)
        True
    """
    pairs = uniforms(keys, 2 * width)
    radius = np.sqrt(-2.0 * np.log1p(-pairs[:, :width]))
    return radius * np.cos(2.0 * np.pi * pairs[:, width:])
