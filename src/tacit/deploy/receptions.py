"""How the answers of one exchange come in: plainly, shuffled through the proxy, or as a secure sum.

A reception has legs. In each, everybody still taking part is sent something and answers; ``advance`` closes
the leg. The last one hands what arrived to the open exchange.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.deploy.arriving import Pattern, as_messages, tried
from tacit.deploy.journal import Device, Journal
from tacit.deploy.wire import Reason, Refused
from tacit.ledger.record import Traffic
from tacit.round import Exchange, OpenExchange, ServerState
from tacit.transport.sealed_reports import Envelope, Opener
from tacit.transport.secure_sum.carrier import SecureSum
from tacit.transport.secure_sum.layout import Layout, ring_for
from tacit.transport.secure_sum.server import Phase, Server
from tacit.transport.secure_sum.terms import Reason as Why
from tacit.transport.secure_sum.terms import SumAborted, Terms
from tacit.transport.shuffle_proxy import ShuffleProxy, handed_over
from tacit.transport.transport import Messages
from tacit.types import Index, RoundFacts


class Reception(ABC):
    """The server's end of one exchange."""

    def parts(self, slot: int) -> tuple[bytes, ...]:
        """What the present leg sends this person beside the invitation."""
        del slot
        return ()

    @abstractmethod
    def take(self, slot: int, parts: tuple[bytes, ...]) -> None:
        """Somebody's answer in the present leg; refused by name if it cannot be used."""

    def advance(self) -> tuple[int, ...] | None:
        """Close the leg: who takes part in the next one, or ``None`` after the last."""
        return None

    @abstractmethod
    def finish(self) -> None:
        """Hand over what arrived."""


@dataclass
class Plain(Reception):
    """Each answer is added to the sum as it comes, and forgotten."""

    exchange: Exchange
    state: ServerState
    pattern: Pattern
    opened: OpenExchange

    def take(self, slot: int, parts: tuple[bytes, ...]) -> None:
        """Check, add, forget."""
        if len(parts) != 1:
            raise Refused(Reason.MALFORMED, "an answer has one part")
        arrays = self.pattern.fits(parts[0], self.state.round)
        if arrays:
            tried(self.exchange, self.state, arrays)
        self.opened.receive(as_messages(slot, arrays, parts[0]))

    def finish(self) -> None:
        """All is added already."""


@dataclass(frozen=True)
class Batch:
    """What the proxy passes on: reports of one size, from so many people; counts of letters and refusals."""

    people: int
    reports: tuple[bytes, ...]
    letters: int
    letter_bytes: int
    read: int
    refused: Mapping[str, int]


@dataclass
class Shuffled(Reception):
    """Devices say that they sent their reports to the proxy; the proxy's batch is opened at the end."""

    exchange: Exchange
    pattern: Pattern
    opened: OpenExchange
    opener: bytes
    collect: Callable[[], Batch]
    count: Callable[[str, int], None]
    round: int

    def take(self, slot: int, parts: tuple[bytes, ...]) -> None:
        """An acknowledgement carries nothing."""
        del slot
        if parts not in {(), (b"",)}:
            raise Refused(Reason.MALFORMED, "reports go to the proxy, not to the server")

    def finish(self) -> None:
        """Open the batch: each report once."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

        batch = self.collect()
        if not batch.reports:
            return
        key = X25519PrivateKey.from_private_bytes(self.opener)
        opener = Opener(key, Envelope(self.exchange.name, self.round))
        raw = opener.opened(batch.reports)
        self.count("tampered", opener.tampered)
        self.count("duplicate", opener.repeated)
        honest = self.pattern.arrays["reports"]
        assert isinstance(honest, np.ndarray)
        words = honest.shape[2] if honest.ndim == 3 else 1
        self.count("wrong shape", sum(len(report) != 4 * words for report in raw))
        self.opened.receive(handed_over(raw, batch.people, honest.shape[1], words))


@dataclass
class Summed(Reception):
    """A secure sum of several legs. What was taken is journaled before a leg is closed and anything is sent.

    So a kill loses nothing that others were told of; a message refused leaves no trace, and a sender whose
    message was not journaled any more is asked again.
    """

    step: int
    journal: Journal
    opened: OpenExchange
    layout: Layout
    terms: Terms
    server: Server
    least: int
    leg: int = 0
    up: int = 0
    down: int = 0
    outgoing: dict[int, bytes] = field(default_factory=dict)
    aborted: SumAborted | None = None
    _heard_of: int = 0

    def parts(self, slot: int) -> tuple[bytes, ...]:
        """The protocol's message to this person."""
        return (self.outgoing[slot],) if slot in self.outgoing else ()

    def take(self, slot: int, parts: tuple[bytes, ...]) -> None:
        """One message of the protocol."""
        if len(parts) != 1:
            raise Refused(Reason.MALFORMED, "a leg's answer has one part")
        self._heard(slot, parts[0])
        self.journal.keep_leg(self.step, self.leg, slot, parts[0])

    def _heard(self, slot: int, message: bytes) -> None:
        self.server.ignored.clear()
        self.server.receive(slot, message)
        if self.server.ignored:
            raise Refused(Reason.OUT_OF_TURN, self.server.ignored[slot])
        self.up += len(message)
        self._heard_of += 1

    def advance(self) -> tuple[int, ...] | None:
        """Close the leg; too few people abort the sum."""
        if self.over:
            return None
        self.journal.keep_advance(self.step, self.leg)
        return self._moved()

    def _moved(self) -> tuple[int, ...] | None:
        try:
            if self.server.phase is Phase.KEYS and self._heard_of < self.least:
                raise SumAborted(
                    Why.TOO_FEW_KEYS, f"{self._heard_of} people answered, {self.least} are needed"
                )
            self.outgoing = self.server.advance()
        except SumAborted as error:
            self.aborted = error
            return None
        self.leg += 1
        self.down += sum(map(len, self.outgoing.values()))
        return None if self.server.phase is Phase.DONE else tuple(sorted(self.outgoing))

    @property
    def over(self) -> bool:
        """Whether nobody is asked anything more."""
        return self.aborted is not None or self.server.phase is Phase.DONE

    def replayed(self) -> tuple[int, ...] | None:
        """Bring the sum to where it was before a kill; who takes part in the leg under way."""
        kept, closed = self.journal.legs(self.step)
        people: tuple[int, ...] | None = None
        for leg in range(closed + 1):
            for slot, message in kept.get(leg, []):
                self._heard(slot, message)
            if leg < closed:
                people = self._moved()
        return people

    def answered(self) -> set[int]:
        """Who answered the leg under way already (after a replay)."""
        return {slot for slot, _ in self.journal.legs(self.step)[0].get(self.leg, [])}

    def finish(self) -> None:
        """Hand over the sum and the survivors, and count what crossed."""
        if self.aborted is not None:
            self.opened.note(Traffic(up=self.up, down=self.down), {})
            raise self.aborted
        survivors = np.array(self.server.survivors, dtype=np.int32)
        silent = np.zeros(len(survivors), dtype=np.int64)
        self.opened.receive(Messages(survivors, self.layout.arrays(self.server.total), silent))
        people, numbers = len(survivors), len(survivors) * self.layout.length
        crossed = Traffic(
            up=self.up,
            down=self.down,
            rows_up=people * self.layout.table_rows,
            values_up=numbers * self.terms.ring // 8,
            numbers_up=numbers,
        )
        self.opened.note(crossed, {})


def terms_of(
    exchange: Exchange, run: str, facts: RoundFacts, sent: tuple[bytes, Sequence[Any]], layout: Layout
) -> Terms:
    """The terms of a sum: both sides work them out from what was ``sent``, the model and public states.

    A clip norm is such a state: whoever is told another one than the others must not be summed with them.
    Fewer invited than the run's own rules ask (somebody's key was revoked) count as drop-outs: a server must
    not make a cohort small to make the share of its friends seem smaller.
    """
    broadcast, states = sent
    told = hashlib.sha256(broadcast).digest() + json.dumps(list(states)).encode()
    carrier = carried_by_sum(exchange)
    assert carrier is not None
    assert carrier.steps is not None
    everyone = exchange.part == "everyone"
    asked = exchange.sampling.least(facts.population) if everyone else 0
    return Terms(
        run=run.encode(),
        round=facts.round + 1,
        exchange=exchange.name,
        model=hashlib.sha256(told).digest(),
        length=layout.length,
        ring=ring_for(carrier.steps, facts.invited, layout.length),
        rates=carrier.rates,
        invited=max(facts.invited, asked),
    )


def carried_by_sum(exchange: Exchange) -> SecureSum | None:
    """The secure sum that carries an exchange, if one does."""
    return exchange.transport if isinstance(exchange.transport, SecureSum) else None


def shuffled_by(exchange: Exchange) -> ShuffleProxy | None:
    """The shuffling proxy that carries an exchange, if one does."""
    return exchange.transport if isinstance(exchange.transport, ShuffleProxy) else None


def directory(devices: Mapping[int, Device], invited: Index) -> dict[int, bytes]:
    """The public identities of those invited."""
    return {slot: devices[slot].identity for slot in invited.tolist()}
