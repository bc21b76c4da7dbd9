"""Sealed reports, and the proxy that passes them on without senders: what devices, proxy and server each do.

Every report is sealed on its own to the server's key (HPKE: X25519, HKDF-SHA256, ChaCha20-Poly1305), and all
are of one size. Nothing here does input or output, so three processes can use it as it is:

1. The server makes an X25519 key pair for the run (never reused: a report of another run must not open) and
   tells devices the public half with the invitation.
2. A device computes its reports (``client_side`` with system keys), seals each with :func:`sealed` for
   ``Envelope(exchange, round)`` and sends them to the proxy as one message, under its own name.
3. The proxy keeps one :class:`Proxy` per exchange and round. ``receive`` refuses by name and counts; what
   must survive a restart is the plain data in its fields (``waiting``, ``people``, the marks of senders and
   reports). When the exchange closes it calls ``batch`` **once** and passes the reports on with the number of
   people behind them. A claim of shuffling holds for the people of one batch: two batches are two crowds.
4. The server opens them with one :class:`Opener` per exchange and round, and hands
   ``handed_over(opener.opened(batch), people, each, words)`` to ``OpenExchange.receive`` of a method whose
   transport is ``ShuffleProxy(n_min)`` (both in ``shuffle_proxy``): the number of people decides the claim,
   and what did not open, was seen before or has another size is counted and not used.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import codec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

SEAL_BYTES = 48  # the key of one sealing (32) and the tag that shows tampering (16)


@dataclass(frozen=True)
class Envelope:
    """Where a report belongs: sealed for one exchange of one round, it cannot be opened for another.

    Example:
        >>> Envelope("train", 3).info
        b'tacit/report/train/3'
    """

    exchange: str
    round: int

    @property
    def info(self) -> bytes:
        """What both ends bind the seal to."""
        return f"tacit/report/{self.exchange}/{self.round}".encode()


def _suite() -> Any:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite  # loads on first use

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def sealed(report: bytes, server: "X25519PublicKey", envelope: Envelope) -> bytes:
    """One report that only the server can open; always ``SEAL_BYTES`` longer than the report.

    Example:
        >>> from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        >>> private, envelope = X25519PrivateKey.generate(), Envelope("train", 0)
        >>> wire = sealed(b"word", private.public_key(), envelope)
        >>> len(wire), Opener(private, envelope).opened([wire])
        (52, [b'word'])
    """
    return _suite().encrypt(report, server, envelope.info)


@dataclass
class Opener:
    """The server's end: opens each sealed report once; what was altered or seen before is counted, not used.

    Example:
        >>> from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        >>> private, envelope = X25519PrivateKey.generate(), Envelope("train", 0)
        >>> opener, wire = Opener(private, envelope), sealed(b"word", private.public_key(), envelope)
        >>> opener.opened([wire, wire, b"x" * 52]), opener.repeated, opener.tampered
        ([b'word'], 1, 1)
    """

    private: "X25519PrivateKey"
    envelope: Envelope
    seen: set[bytes] = field(default_factory=set)
    repeated: int = 0
    tampered: int = 0

    def opened(self, wires: Iterable[bytes]) -> list[bytes]:
        """The contents of those that open, in the order given."""
        suite, found = _suite(), []
        for wire in wires:
            name = hashlib.blake2b(wire, digest_size=16).digest()
            if name in self.seen:
                self.repeated += 1
                continue
            self.seen.add(name)
            try:
                found.append(suite.decrypt(wire, self.private, self.envelope.info))
            except Exception:
                self.tampered += 1
        return found


@dataclass
class Proxy:
    """The proxy's state in one exchange: takes sealed reports, gives them back in batches, keeps no sender.

    A batch holds the reports of at least ``n_min`` people. A wrong size, another number of reports than
    ``each`` (where that is given), a second message of a person and a report seen before are refused and
    counted.

    Example:
        >>> proxy = Proxy(size=2, n_min=2)
        >>> proxy.receive("a", [b"11", b"12"]), proxy.batch()
        (True, [])
        >>> proxy.receive("b", [b"21", b"12"]), sorted(proxy.batch()), proxy.refused["repeated"]
        (True, [b'11', b'12', b'21'], 1)
    """

    size: int
    n_min: int
    each: int | None = None
    refused: dict[str, int] = field(
        default_factory=lambda: {"size": 0, "count": 0, "sender": 0, "repeated": 0}
    )
    waiting: list[bytes] = field(default_factory=list)
    people: int = 0
    _senders: set[bytes] = field(default_factory=set)
    _seen: set[bytes] = field(default_factory=set)

    def receive(self, sender: str, reports: Sequence[bytes]) -> bool:
        """Take one person's sealed reports; ``False`` if the message was refused as a whole."""
        name = hashlib.blake2b(sender.encode(), digest_size=16).digest()
        if name in self._senders:
            self.refused["sender"] += 1
            return False
        if any(len(report) != self.size for report in reports):
            self.refused["size"] += 1
            return False
        if self.each is not None and len(reports) != self.each:
            self.refused["count"] += 1
            return False
        self._senders.add(name)
        fresh = []
        for report in reports:
            mark = hashlib.blake2b(report, digest_size=16).digest()
            if mark in self._seen:
                self.refused["repeated"] += 1
            else:
                self._seen.add(mark)
                fresh.append(report)
        self.waiting.extend(fresh)
        self.people += 1
        return True

    def batch(self) -> list[bytes]:
        """All that waits, in a random order, if enough people are behind it; else nothing."""
        if self.people < self.n_min:
            return []
        reports, self.waiting, self.people = self.waiting, [], 0
        secrets.SystemRandom().shuffle(reports)
        return reports


def report_nbytes(words: int) -> int:
    """Bytes of one sealed report of so many 32-bit words.

    Example:
        >>> report_nbytes(1)
        52
    """
    return 4 * words + SEAL_BYTES


def message_nbytes(reports: int, words: int) -> int:
    """Bytes of one person's message to the proxy: its sealed reports and our framing.

    Example:
        >>> message_nbytes(100, 1)
        5234
    """
    shaped = np.empty((1, reports, report_nbytes(words)), dtype=np.uint8)
    return int(codec.nbytes({"sealed": shaped}, 1)[0])
