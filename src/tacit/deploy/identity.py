"""Who a device is to a server: a key pair made on the device; only the public half is ever shown."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.deploy.folders import appearing
from tacit.deploy.store import DeviceStore

_NAME = "identity"


@dataclass(frozen=True)
class Identity:
    """An elliptic key pair (P-384, the kind Flower's node authentication takes).

    Example:
        >>> import tempfile
        >>> store = DeviceStore.created(Path(tempfile.mkdtemp()) / "mine")
        >>> mine = Identity.of(store)
        >>> mine.public_text.split()[0], Identity.of(store).fingerprint == mine.fingerprint
        ('ecdsa-sha2-nistp384', True)
        >>> verified(mine.public_text, b"hello", mine.signature(b"hello"))
        True
    """

    private_pem: bytes

    @classmethod
    def of(cls, store: DeviceStore) -> "Identity":
        """The device's own; made at first use, kept in its store (sealed where the store is)."""
        known = store.kept(_NAME)
        if known is not None:
            return cls(known)
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        pem = ec.generate_private_key(ec.SECP384R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        store.keep(_NAME, pem)
        return cls(pem)

    def key(self) -> Any:
        """The private key as the cryptography library holds it."""
        from cryptography.hazmat.primitives import serialization

        return serialization.load_ssh_private_key(self.private_pem, None)

    @property
    def public_text(self) -> str:
        """The public half in one line, to be given to the operator."""
        from cryptography.hazmat.primitives import serialization

        public = self.key().public_key()
        return public.public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        ).decode()

    @property
    def fingerprint(self) -> str:
        """A short name for the public half, to compare by eye."""
        return fingerprint(self.public_text)

    def signature(self, message: bytes) -> bytes:
        """Signs bytes (ECDSA with SHA-384)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        return self.key().sign(message, ec.ECDSA(hashes.SHA384()))

    def written(self, file: Path) -> Path:
        """The private half in a file only its owner can read, for programs that want one."""
        with appearing(file) as draft:
            draft.write_bytes(self.private_pem)
        return file


def fingerprint(public_text: str) -> str:
    """A short name for a public key: ten bytes of its digest.

    Example:
        >>> fingerprint("ecdsa-sha2-nistp384 AAAA")
        '63c1dd951ffedf6f7fd9'
    """
    return hashlib.sha256(public_text.split()[1].encode()).hexdigest()[:20]


def verified(public_text: str, message: bytes, signature: bytes) -> bool:
    """Whether the holder of a public key's other half signed these bytes."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_ssh_public_key(public_text.encode())
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        key.verify(signature, message, ec.ECDSA(hashes.SHA384()))
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True
