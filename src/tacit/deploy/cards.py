"""A device's card: the people it hosts, by the public halves of their keys, signed with the device's own.

A person's keys are derived from the device's secret, so a restart changes nothing and nothing more is stored.
"""

import hashlib
from dataclasses import dataclass

from tacit.deploy.identity import Identity, verified
from tacit.deploy.wire import Frame, Kind, Reason, Refused, framed, public_identity


@dataclass(frozen=True)
class PersonKeys:
    """The private halves of one person's two keys in one run: to sign with, and to open letters with.

    Example:
        >>> keys = PersonKeys.of(bytes(32), "r1", "ann")
        >>> keys == PersonKeys.of(bytes(32), "r1", "ann"), keys == PersonKeys.of(bytes(32), "r2", "ann")
        (True, False)
    """

    identity: bytes
    letters: bytes

    @classmethod
    def of(cls, secret: bytes, run: str, person: str) -> "PersonKeys":
        """Derived from a device's secret."""
        return cls(*(_derived(secret, f"{purpose}/{run}/{person}") for purpose in ("identity", "letters")))

    @property
    def public(self) -> bytes:
        """What signatures are verified with."""
        return public_identity(self.identity)

    @property
    def address(self) -> bytes:
        """What letters are sealed to (X25519)."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

        return X25519PrivateKey.from_private_bytes(self.letters).public_key().public_bytes_raw()


def _derived(secret: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(purpose.encode(), key=secret, digest_size=32, person=b"tacit device").digest()


@dataclass(frozen=True)
class Person:
    """One person on a card; ``wish`` is the number they would like (-1: any)."""

    identity: bytes
    letters: bytes
    wish: int


@dataclass(frozen=True)
class Card:
    """A device and its people."""

    device: str
    people: tuple[Person, ...]


def written_card(run: str, device: Identity, people: list[tuple[PersonKeys, int]]) -> bytes:
    """A card: each person signs for themselves, the device for all of them."""
    parts = [
        framed(
            Kind.CARD, {"run": run, "letters": keys.address.hex(), "wish": wish}, [keys.public], keys.identity
        )
        for keys, wish in people
    ]
    seal = device.signature(_sealed(run, parts)).hex()
    head = {"run": run, "device": device.public_text, "seal": seal}
    signer = people[0][0].identity if people else bytes(32)
    return framed(Kind.CARD, head, parts, signer)


def _sealed(run: str, parts: list[bytes]) -> bytes:
    return b"tacit card" + run.encode() + hashlib.sha256(b"".join(parts)).digest()


def read_card(frame: Frame, run: str) -> Card:
    """A card whose signatures all hold; refused by name if one does not."""
    if frame.kind is not Kind.CARD:
        raise Refused(Reason.MALFORMED, "it is not a card")
    if frame.read("run", str) != run:
        raise Refused(Reason.FOREIGN_RUN)
    device = frame.read("device", str)
    try:
        seal = bytes.fromhex(frame.read("seal", str))
    except ValueError as error:
        raise Refused(Reason.MALFORMED) from error
    if not verified(device, _sealed(run, list(frame.parts)), seal):
        raise Refused(Reason.UNSIGNED, "the card is not the device's")
    return Card(device, tuple(_person(part, run) for part in frame.parts))


def _person(wire: bytes, run: str) -> Person:
    from tacit.deploy.wire import unframed

    one = unframed(wire, 1 << 12)
    if len(one.parts) != 1 or len(one.parts[0]) != 32 or one.read("run", str) != run:
        raise Refused(Reason.MALFORMED)
    try:
        letters = bytes.fromhex(one.read("letters", str))
    except ValueError as error:
        raise Refused(Reason.MALFORMED) from error
    if len(letters) != 32:
        raise Refused(Reason.MALFORMED)
    if not one.signed_by(one.parts[0]):
        raise Refused(Reason.UNSIGNED, "a person's keys are not signed by their owner")
    return Person(one.parts[0], letters, one.read("wish", int))
