"""A certificate authority of one's own, and the certificates it vouches for."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.deploy.folders import appearing, made
from tacit.errors import TacitError

DAYS = 365
AUTHORITY_DAYS = 10 * DAYS
SOON = 30  # days before its end in which a certificate of one's own is made anew


@dataclass(frozen=True)
class Certified:
    """Where a certificate, its key and the authority that vouches for it lie."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True)
class Authority:
    """A folder with ``ca.pem`` (to hand out) and ``ca.key`` (to keep).

    Example:
        >>> import tempfile
        >>> authority = Authority.made(Path(tempfile.mkdtemp()))
        >>> authority.vouched("server", ["127.0.0.1", "localhost"]).certificate.name
        'server.pem'
    """

    folder: Path

    @property
    def certificate(self) -> Path:
        """What devices are given."""
        return self.folder / "ca.pem"

    @classmethod
    def made(cls, folder: Path, days: int = AUTHORITY_DAYS) -> "Authority":
        """A fresh authority."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        authority = cls(made(folder))
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Tacit authority of one's own")
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        built = (
            _begun(name, name, key, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        signed = _signed(built, key, key)
        _write(authority.certificate, signed, private=False)
        _write(folder / "ca.key", _pem(key), private=True)
        return authority

    def vouched(self, name: str, addresses: Sequence[str], days: int = DAYS) -> Certified:
        """A key and a certificate for a server at these addresses (names or IP addresses)."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        try:
            own: Any = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
            root = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise TacitError(
                f"{self.folder} holds no authority", "make one, or give your own files"
            ) from error
        key = ec.generate_private_key(ec.SECP256R1())
        built = (
            _begun(_name(name), root.subject, key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_address(one) for one in addresses]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        found = Certified(self.folder / f"{name}.pem", self.folder / f"{name}.key", self.certificate)
        _write(found.certificate, _signed(built, own, key), private=False)
        _write(found.key, _pem(key), private=True)
        return found


def own_certificate(folder: Path, name: str, addresses: Sequence[str]) -> Certified:
    """A certificate of one's own: made at first use, and anew when it ends soon or lacks an address.

    The authority stays, so that nobody has to be given another ``ca.pem``.
    """
    authority = Authority(folder)
    found = Certified(folder / f"{name}.pem", folder / f"{name}.key", authority.certificate)
    if not (folder / "ca.key").exists() and not found.certificate.exists():
        authority = Authority.made(folder)
    if (folder / "ca.key").exists() and not _lasts(found.certificate, addresses):
        return authority.vouched(name, addresses)
    return found


def _lasts(file: Path, addresses: Sequence[str]) -> bool:
    """Whether a certificate is there, speaks for these addresses, and does not end soon."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(file.read_bytes())
        named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    left = found.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left > datetime.timedelta(days=SOON) and {_address(one) for one in addresses} <= set(named)


def certificate_in(file: Path) -> bytes:
    """The text of a certificate's file; one clear line if it holds none."""
    from cryptography import x509

    try:
        text = file.read_bytes()
        x509.load_pem_x509_certificates(text)
    except (OSError, ValueError) as error:
        raise TacitError(f"{file} holds no certificate", "give the ca.pem of whoever vouches") from error
    return text


def _address(text: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(common: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(subject: Any, issuer: Any, key: Any, days: int) -> Any:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(built: Any, own: Any, key: Any) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    del key
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key())
    signed = built.add_extension(issuer, critical=False).sign(own, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def _pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(file: Path, content: bytes, *, private: bool) -> None:
    with appearing(file, 0o600 if private else 0o644) as draft:
        draft.write_bytes(content)
