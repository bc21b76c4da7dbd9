"""Sums under one key that all clients share and the server lacks: homomorphic FedMF, for comparison only.

Chai, Wang, Chen, Yang: Secure Federated Matrix Factorization, 2019; here with the CKKS scheme of TenSEAL
(128-bit parameters, additions only) in place of Paillier. The server keeps the item table encrypted, adds
encrypted steps to it and hands it out again; only clients see numbers.

Why the product does not run on it: one client that works for the server has everybody's key, so single
uploads are as open as in plain text; nobody can tell who that is; and every client sees the whole sum. A
secure sum needs no such trust. CKKS is approximate, and its decryptions must never be shown to the server
(they would give the key away: Li and Micciancio 2021), so the server here never gets any.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.types import Floats

DEGREE = 4096
SLOTS = DEGREE // 2
MODULUS_BITS = (54, 55)
SCALE = 2.0**36
LARGEST = 2.0**16
"""Entries stay below this, and with them sums below what the modulus holds."""
_LENGTH = struct.Struct("<I")


class KeyHolder:
    """A client's half: it holds the key that all clients share.

    Example:
        ``mine = KeyHolder.made()``, ``yours = KeyHolder(mine.letter)``; then
        ``yours.decrypted(mine.encrypted(vector), len(vector))`` is ``vector`` to about six digits.
    """

    def __init__(self, letter: bytes) -> None:
        self._context = _read_context(letter)
        if self._context.is_public():
            raise TacitError("this letter holds no secret key", "take the one that another client wrote")

    @classmethod
    def made(cls) -> "KeyHolder":
        """The first client, with a fresh key."""
        library = _tenseal()
        context = library.context(library.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=list(MODULUS_BITS))
        context.global_scale = SCALE
        return cls(_written(context, secret=True))

    @property
    def letter(self) -> bytes:
        """The key, for other clients' eyes only: to be sent sealed, never past the server in clear."""
        return _written(self._context, secret=True)

    @property
    def public(self) -> bytes:
        """What the server is given: enough to add, nothing to decrypt with."""
        return _written(self._context, secret=False)

    def encrypted(self, vector: Floats) -> bytes:
        """A vector as ciphertexts of ``SLOTS`` numbers each."""
        values = np.asarray(vector, dtype=np.float64).reshape(-1)
        if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > LARGEST:
            raise TacitError(
                f"an update beyond {LARGEST:g}, or not finite (training diverged)", "lower the step size"
            )
        library = _tenseal()
        pieces = [values[at : at + SLOTS] for at in range(0, len(values), SLOTS)]
        return _packed([library.ckks_vector(self._context, piece).serialize() for piece in pieces])

    def decrypted(self, wire: bytes, length: int) -> Floats:
        """The numbers in a message of the server."""
        parts = [np.asarray(part.decrypt()) for part in _vectors(self._context, wire)]
        if [len(part) for part in parts] != _sizes(length):
            raise TacitError(f"ciphertexts that do not hold {length} numbers", "both sides need one method")
        return np.concatenate(parts)


class BlindTable:
    """The server's half: an encrypted vector to which encrypted ones are added; it cannot decrypt.

    Example:
        ``table = BlindTable(mine.public, mine.encrypted(start))``, then ``table.add(message)`` for whatever
        arrives, then ``table.wire`` to everybody.
    """

    def __init__(self, public: bytes, start: bytes) -> None:
        self._context = _read_context(public)
        if not self._context.is_public():
            raise TacitError("the server was given a secret key", "give it KeyHolder.public")
        self._parts = _vectors(self._context, start)

    def add(self, wire: bytes) -> None:
        """Add a client's ciphertexts."""
        parts = _vectors(self._context, wire)
        if [part.size() for part in parts] != [part.size() for part in self._parts]:
            raise TacitError("ciphertexts of another length", "let all clients run one method")
        self._parts = [mine + theirs for mine, theirs in zip(self._parts, parts, strict=True)]

    @property
    def wire(self) -> bytes:
        """The encrypted vector, as it is handed out."""
        return _packed([part.serialize() for part in self._parts])


def _sizes(length: int) -> list[int]:
    return [min(SLOTS, length - at) for at in range(0, length, SLOTS)]


def _written(context: Any, *, secret: bool) -> bytes:
    return context.serialize(
        save_public_key=True, save_secret_key=secret, save_galois_keys=False, save_relin_keys=False
    )


def _packed(ciphertexts: Sequence[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(one)) + one for one in ciphertexts)


def _vectors(context: Any, wire: bytes) -> list[Any]:
    """The ciphertexts of a message; reading trusts nobody."""
    library, found, at = _tenseal(), [], 0
    while at < len(wire):
        end = at + _LENGTH.size
        size = _LENGTH.unpack_from(wire, at)[0] if end <= len(wire) else len(wire)
        if end + size > len(wire):
            raise TacitError("a message that ends within a ciphertext", "send it again")
        try:
            found.append(library.ckks_vector_from(context, wire[end : end + size]))
        except (ValueError, RuntimeError) as error:
            raise TacitError("bytes that are no ciphertext of these clients", "send it again") from error
        at = end + size
    return found


def _read_context(raw: bytes) -> Any:
    try:
        return _tenseal().context_from(raw)
    except (ValueError, RuntimeError) as error:
        raise TacitError("bytes that are no key", "take KeyHolder.letter or KeyHolder.public") from error


def _tenseal() -> Any:
    try:
        import tenseal  # loads on first use: an optional extra
    except ImportError as error:
        raise TacitError(
            "homomorphic sums need TenSEAL", "install it: pip install 'tacit[he]', or take a secure sum"
        ) from error
    return tenseal
