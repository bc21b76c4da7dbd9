"""What a sum is about. Both sides know it beforehand; everything signed or derived is bound to it."""

import hashlib
import struct
from dataclasses import dataclass, field
from enum import Enum

from tacit.errors import TacitError
from tacit.transport.secure_sum.masks import RINGS
from tacit.transport.secure_sum.plan import Rates

VERSION = b"tacit secure sum 1"


class Reason(Enum):
    """Why a sum was aborted.

    Example:
        >>> Reason.SPLIT_VIEW.value
        'split view'
    """

    TOO_FEW_KEYS = "too few keys"
    TOO_FEW_SHARERS = "too few sharers"
    TOO_FEW_INPUTS = "too few inputs"
    TOO_FEW_VOTES = "too few votes"
    TOO_FEW_OPENINGS = "too few openings"
    WRONG_SHARE = "wrong share"
    UNSIGNED = "unsigned"
    STRANGER = "stranger"
    DUPLICATE = "duplicate"
    LEFT_OUT = "left out"
    LONELY = "lonely"
    REVIVED = "revived"
    SPLIT_VIEW = "split view"
    OUT_OF_TURN = "out of turn"
    ROUND_REUSED = "round reused"
    OVERFLOW = "overflow"
    MALFORMED = "malformed"


class SumAborted(TacitError):
    """A sum ended without a result; ``reason`` says why. Nothing is revealed by ending early.

    Example:
        >>> SumAborted(Reason.TOO_FEW_VOTES, "3 of 7 people agreed").reason.value
        'too few votes'
    """

    def __init__(self, reason: Reason, problem: str, remedy: str = "the sum is aborted") -> None:
        super().__init__(f"secure sum: {problem}", remedy)
        self.reason = reason

    def __reduce__(self) -> tuple[type["SumAborted"], tuple[Reason, str, str]]:  # type: ignore[override]
        """Survive a trip between processes."""
        return type(self), (self.reason, self.problem.removeprefix("secure sum: "), self.remedy)


@dataclass(frozen=True)
class Terms:
    """One sum: its run, its place, the very model its members were sent, its length and its safety.

    Each client fills in ``model`` from the bytes it received itself, and ``invited`` from what it knows of
    the run: how many may work for the server, and how many must agree, follow from it. Whoever was sent
    another model has other terms: its keys do not verify for the others, and its masks would not cancel.

    Example:
        >>> one = Terms(run=b"a run", round=3, exchange="train", model=bytes(32), length=10, invited=20)
        >>> from dataclasses import replace
        >>> one.digest == replace(one, round=4).digest
        False
    """

    run: bytes
    round: int
    exchange: str
    model: bytes
    length: int
    ring: int = 64
    rates: Rates = field(default_factory=Rates)
    invited: int = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.ring not in RINGS:
            raise TacitError(f"a ring of {self.ring} bits", "use 16, 32 or 64")
        if self.length < 1 or len(self.model) != 32:
            raise TacitError(
                f"a sum of {self.length} numbers over a model digest of {len(self.model)} bytes",
                "sum at least one number, and give the SHA-256 of the broadcast",
            )

    @property
    def digest(self) -> bytes:
        """32 bytes that differ wherever any of the terms differs."""
        rates = self.rates
        name = self.exchange.encode()
        parts = struct.pack(
            "<HqHQHddIHHHI", len(self.run), self.round, len(name), self.length, self.ring, rates.dropout,
            rates.adversary, rates.crowd, rates.secrecy, rates.success, rates.grinding, self.invited,
        )  # fmt: skip
        return hashlib.sha256(b"".join((VERSION, parts, self.run, name, self.model))).digest()

    @property
    def nbytes(self) -> int:
        """The length of a masked vector."""
        return self.length * self.ring // 8
