"""Straight to the server, which sees every message and who sent it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tacit.account.claim import Claim
from tacit.rng import Keys
from tacit.transport.transport import Messages, ServerSession, Transport
from tacit.types import Delivers, RoundFacts


class _HandedOn(ServerSession):
    def receive(self, messages: Messages) -> Iterable[Messages]:
        yield messages

    def close(self) -> Iterable[Messages]:
        return ()


@dataclass(frozen=True)
class Direct(Transport):
    """Each message as it is, under its sender's name.

    Formal guarantees:
        None. The server learns what each client sends; encryption on the way (TLS) keeps others out.

    Example:
        >>> Direct().delivers.value
        'reports'
    """

    delivers: ClassVar[Delivers] = Delivers.REPORTS

    def server_session(self, facts: RoundFacts, keys: Keys) -> ServerSession:
        """Messages are handed on at once."""
        del facts, keys
        return _HandedOn()

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """Nothing is hidden, nothing is added."""
        del facts
        return claim


def direct() -> Direct:
    """The plain way, written out so that nobody has it by accident.

    Example:
        >>> direct().delivers.value
        'reports'
    """
    return Direct()


TRANSPORTS = {"direct": direct}
