"""How messages get from devices to the server, and what the server is handed over."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tacit.account.claim import Claim
from tacit.codec import Parts
from tacit.ledger.record import Traffic
from tacit.rng import Keys
from tacit.types import Arrays, Delivers, Index, Long, RoundFacts, Rows, Steps


@dataclass(frozen=True)
class Messages:
    """What some clients send: one row (or ragged part) per client, and each one's length on the wire.

    ``parts`` says what the bytes are, where that is known; seals are among the rest.
    """

    users: Index
    arrays: Arrays
    nbytes: Long
    parts: Parts | None = None


class ServerSession(ABC):
    """The server's half of one exchange; no input or output of its own."""

    @abstractmethod
    def receive(self, messages: Messages) -> Iterable[Messages]:
        """Take messages in; yield what may be handed on already."""

    @abstractmethod
    def close(self) -> Iterable[Messages]:
        """Nobody else will answer: yield the rest."""

    def carried(self, messages: Messages) -> Traffic:
        """What crosses when these messages are taken in."""
        rows = sum(array.total for array in messages.arrays.values() if isinstance(array, Rows))
        return Traffic(up=int(messages.nbytes.sum()), rows_up=rows)

    def closing(self) -> Traffic:
        """What else crossed, told after ``close``."""
        return Traffic()


class Transport(ABC):
    """Carries messages; one object describes both halves, a session holds what changes."""

    delivers: ClassVar[Delivers]

    def carrying(self, steps: Steps | None) -> "Transport":
        """The transport for such messages (``None``: numbers with a point); refuses what it cannot carry."""
        del steps
        return self

    def sent(self, messages: Messages, exchange: str, round: int, keys: Keys) -> Messages:
        """The client's half: what really crosses the wire."""
        del exchange, round, keys
        return messages

    @abstractmethod
    def server_session(self, facts: RoundFacts, keys: Keys) -> ServerSession:
        """The server's half."""

    @abstractmethod
    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """What this way of carrying is worth: shuffling amplifies, a sum hides single reports."""
