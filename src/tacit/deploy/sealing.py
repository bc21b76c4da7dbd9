"""Values at rest: sealed with a key that lies elsewhere, or in the clear where none was asked for."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import TacitError

_MARK = "tacit-device-key-1:"
_NONCE = 12


@dataclass(frozen=True)
class Sealing:
    """Seals and opens values; each is bound to its place, so that two cannot be swapped.

    Without a key, values pass unchanged.

    Example:
        >>> sealing = Sealing(bytes(32))
        >>> sealed = sealing.sealed(b"5 stars", "history/1")
        >>> sealing.opened(sealed, "history/1"), b"stars" in sealed
        (b'5 stars', False)
    """

    key: bytes | None

    def sealed(self, value: bytes, place: str) -> bytes:
        """The value as it is written."""
        if self.key is None:
            return value
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, value, place.encode())

    def opened(self, written: bytes, place: str) -> bytes:
        """The value that was written there; one clear error if it was altered or moved."""
        if self.key is None:
            return written
        from cryptography.exceptions import InvalidTag  # loads on first use

        try:
            return self._cipher().decrypt(written[:_NONCE], written[_NONCE:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise TacitError(
                "a sealed value of this device cannot be opened (another key, or it was altered)",
                "give the key file the device was made with, or put a good copy of its folder back",
            ) from error

    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        assert self.key is not None
        return ChaCha20Poly1305(self.key)


def written_key(file: Path) -> bytes:
    """A fresh key in a new file that only its owner can read; an existing file is read instead."""
    if file.exists():
        return read_key(file)
    key = secrets.token_bytes(32)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(_MARK + key.hex() + "\n")
    except OSError as error:
        raise TacitError(
            f"cannot write the key file {file} ({error.strerror})", "choose another path"
        ) from error
    return key


def read_key(file: Path) -> bytes:
    """The key in a file that :func:`written_key` made."""
    try:
        text = file.read_text(encoding="ascii").strip()
        if text.startswith(_MARK):
            key = bytes.fromhex(text.removeprefix(_MARK))
            if len(key) == 32:
                return key
    except OSError as error:
        raise TacitError(
            f"the key file {file} cannot be read ({error.strerror})", "give the file the device was made with"
        ) from error
    except ValueError:
        pass
    raise TacitError(f"{file} is not a key file of a device", "give the file that was made with the device")
