"""What crosses between a device, the server and the proxy: signed frames, each bound to its run and round.

A frame is ``mark, version, kind, lengths | head (JSON) | parts (bytes) | signature (Ed25519)``. The head says
what the parts are; arrays travel as :mod:`tacit.codec` writes them. Reading trusts nobody: every length is
checked before it is used, and what does not fit is refused under a name of :class:`Reason`.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

from tacit.errors import TacitError
from tacit.transport.secure_sum.client import public_identity, signed, verified

VERSION = 1
SIGNATURE_BYTES = 64
KEY_BYTES = 32
MAX_HEAD = 1 << 24
MAX_PARTS = 1 << 16
_MARK = b"TDF1"
_FRAME = struct.Struct("<4sBBII")
_LENGTH = struct.Struct("<Q")


class Kind(IntEnum):
    """What a frame is.

    Example:
        >>> Kind.ANSWER.name
        'ANSWER'
    """

    HELLO = 1  # server to device: who are you
    CARD = 2  # device to server: these people, with their public keys
    CHARTER = 3  # server to device: what this federation is
    INVITATION = 4  # server to device: take part in this exchange
    LEG = 5  # server to device: the next message of a protocol with several
    ANSWER = 6  # device to server
    REFUSAL = 7  # device to server: not now, under a name
    MODEL = 8  # server to device: the model as it is now
    KEPT = 9  # device to server: the last message is dealt with
    OPEN = 10  # server to proxy: an exchange begins
    POST = 11  # device to proxy: sealed reports or letters
    COLLECT = 12  # server to proxy: nobody else will answer
    BATCH = 13  # proxy to server
    FETCH = 14  # device to proxy: letters for me
    LETTERS = 15  # proxy to device
    FORGET = 16  # server to proxy: the exchange is over


class Reason(Enum):
    """Why a message was refused; these names are counted.

    Example:
        >>> Reason("replayed").name
        'REPLAYED'
    """

    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    DAMAGED = "damaged"
    MALFORMED = "malformed"
    VERSION = "other version"
    UNSIGNED = "unsigned"
    STRANGER = "stranger"
    REVOKED = "revoked"
    UNINVITED = "uninvited"
    DUPLICATE = "duplicate"
    REPLAYED = "replayed"
    LATE = "late"
    TOO_MANY = "too many"
    FOREIGN_RUN = "foreign run"
    FOREIGN_MODEL = "foreign model"
    NOT_FINITE = "not finite"
    WRONG_SHAPE = "wrong shape"
    TAMPERED = "tampered"
    SMALL_CROWD = "crowd too small"
    OUT_OF_TURN = "out of turn"


class No(Enum):
    """Why a device did not answer. A name only: an error's own text may hold what is private.

    Example:
        >>> No("paused").name
        'PAUSED'
    """

    PAUSED = "paused"
    LIMIT = "limit"
    FORGOTTEN = "forgotten"
    NO_HISTORY = "no history"
    NOBODY = "nobody of that number"
    ANSWERED_BEFORE = "answered before, to another question"
    FOREIGN_RUN = "foreign run"
    FOREIGN_SERVER = "foreign server"
    FOREIGN_MODEL = "foreign model"
    CHARTER = "not what the charter says"
    UNREADABLE = "unreadable"
    OUT_OF_TURN = "out of turn"
    SUM_ABORTED = "sum aborted"
    SEEDED = "a seeded run is not allowed"
    DISK_FULL = "disk full"
    SMALL_CROWD = "crowd too small"
    NO_PROXY = "proxy not reached"
    NOT_LASTING = "a secure sum needs a process that lasts"
    UNABLE = "unable"


class Refused(TacitError):
    """A message that is not used; ``reason`` is the name under which it is counted."""

    def __init__(self, reason: Reason, problem: str = "") -> None:
        super().__init__(f"a message was refused: {problem or reason.value}", "it is not counted")
        self.reason = reason

    def __reduce__(self) -> tuple[type["Refused"], tuple[Reason, str]]:  # type: ignore[override]
        """Survive a trip between processes."""
        return type(self), (self.reason, self.problem.removeprefix("a message was refused: "))


@dataclass(frozen=True)
class Frame:
    """A frame whose lengths fit; nobody has looked at its signature yet."""

    kind: Kind
    head: Mapping[str, Any]
    parts: tuple[bytes, ...]
    signature: bytes
    covered: bytes

    def signed_by(self, public: bytes) -> bool:
        """Whether the owner of this public key wrote it."""
        return verified(public, self.signature, self.covered)

    def read(self, name: str, kind: type) -> Any:
        """One entry of the head, of that kind; refused if it is not there."""
        value = self.head.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Refused(Reason.MALFORMED, f"its head holds no {name}")
        return value


def framed(kind: Kind, head: Mapping[str, Any], parts: Sequence[bytes], identity: bytes) -> bytes:
    """A frame, signed by ``identity`` (32 secret bytes).

    Example:
        >>> wire = framed(Kind.CARD, {"run": "r"}, [b"one", b""], b"i" * 32)
        >>> found = unframed(wire, most=1000)
        >>> found.kind.name, dict(found.head), found.parts, found.signed_by(public_identity(b"i" * 32))
        ('CARD', {'run': 'r'}, (b'one', b''), True)
    """
    told = json.dumps(head, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    lengths = b"".join(_LENGTH.pack(len(part)) for part in parts)
    body = _FRAME.pack(_MARK, VERSION, kind, len(told), len(parts)) + lengths + told + b"".join(parts)
    return body + signed(identity, body)


def unframed(wire: bytes, most: int) -> Frame:
    """Read a frame of at most ``most`` bytes; anything that does not fit is refused by name.

    Example:
        >>> unframed(b"no frame at all", most=1000)
        Traceback (most recent call last):
        tacit.deploy.wire.Refused: a message was refused: truncated; it is not counted
    """
    if len(wire) > most:
        raise Refused(Reason.OVERSIZED, f"{len(wire)} bytes where at most {most} are expected")
    if len(wire) < _FRAME.size + SIGNATURE_BYTES:
        raise Refused(Reason.TRUNCATED)
    kind, head_length, count = _begun(wire)
    at = _FRAME.size + _LENGTH.size * count
    end = len(wire) - SIGNATURE_BYTES
    if at > end:
        raise Refused(Reason.TRUNCATED)
    lengths = [_LENGTH.unpack_from(wire, _FRAME.size + _LENGTH.size * place)[0] for place in range(count)]
    if at + head_length + sum(lengths) != end:
        short = at + head_length + sum(lengths) > end
        raise Refused(Reason.TRUNCATED if short else Reason.MALFORMED)
    head = _head(wire[at : at + head_length])
    at += head_length
    parts = []
    for length in lengths:
        parts.append(wire[at : at + length])
        at += length
    return Frame(kind, head, tuple(parts), wire[end:], wire[:end])


def heading(start: bytes) -> tuple[Kind, dict[str, Any]]:
    """What a frame that begins so is, and its head (nothing where it is not whole).

    Example:
        >>> heading(framed(Kind.FETCH, {"slot": 3}, [bytes(1000)], b"i" * 32)[:100])
        (<Kind.FETCH: 14>, {'slot': 3})
    """
    if len(start) < _FRAME.size:
        raise Refused(Reason.TRUNCATED)
    kind, head_length, count = _begun(start)
    at = _FRAME.size + _LENGTH.size * count
    return kind, _head(start[at : at + head_length]) if at + head_length <= len(start) else {}


def _begun(start: bytes) -> tuple[Kind, int, int]:
    """A frame's kind, the length of its head and the number of its parts."""
    mark, version, kind, head_length, count = _FRAME.unpack_from(start)
    if mark != _MARK or kind not in Kind.__members__.values():
        raise Refused(Reason.MALFORMED, "it is none of ours")
    if version != VERSION:
        raise Refused(Reason.VERSION, f"version {version}, here {VERSION}")
    if head_length > MAX_HEAD or count > MAX_PARTS:
        raise Refused(Reason.OVERSIZED, "it announces more than can be")
    return Kind(kind), head_length, count


def _head(raw: bytes) -> dict[str, Any]:
    try:
        head = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(Reason.MALFORMED, "its head is not JSON") from error
    if not isinstance(head, dict):
        raise Refused(Reason.MALFORMED, "its head is not a table")
    return head


@dataclass(frozen=True)
class Place:
    """Where a message belongs: a run, a round, an exchange, one opening of it, and a step within.

    ``nonce`` is drawn from the server's key, the run, the round and the exchange: nobody else can tell it
    beforehand, an answer to another opening cannot be passed off as one to this, and a server put back to an
    older state asks the same question under the same name, which is answered with the same bytes.
    """

    run: str
    round: int
    exchange: str
    nonce: str
    leg: int = 0

    def head(self) -> dict[str, Any]:
        """As entries of a frame's head."""
        return {
            "run": self.run,
            "round": self.round,
            "exchange": self.exchange,
            "nonce": self.nonce,
            "leg": self.leg,
        }

    @classmethod
    def of(cls, frame: Frame) -> "Place":
        """The place a frame names."""
        words = (frame.read(name, str) for name in ("run", "exchange", "nonce"))
        run, exchange, nonce = words
        return cls(run, frame.read("round", int), exchange, nonce, frame.read("leg", int))


def key_told(text: str, option: str, remedy: str) -> bytes:
    """A public key that a person was told and types in; one clear line where it is none.

    Example:
        >>> key_told("ab" * 32, "--charter", "ask the operator").hex()[:4]
        'abab'
    """
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise TacitError(f"{option} is not a key", remedy)
    return key


__all__ = [
    "Frame", "Kind", "No", "Place", "Reason", "Refused", "framed", "heading", "key_told", "public_identity",
    "unframed",
]  # fmt: skip
