"""The exchange under way at the server, and what each person is sent in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.deploy.arriving import Pattern
from tacit.deploy.charter import digest
from tacit.deploy.journal import Device
from tacit.deploy.receptions import Reception, Summed, carried_by_sum
from tacit.deploy.wire import Kind, Place, framed
from tacit.federation.federation import Casting
from tacit.round import Exchange, OpenExchange
from tacit.transport.sealed_reports import report_nbytes
from tacit.transport.shuffle_proxy import ShuffleProxy
from tacit.types import Index


@dataclass
class Step:
    """The exchange under way: ``pending`` take part in the present leg, ``waiting`` have not answered it.

    ``letters_from`` names where a reader's letters lie: exchange and nonce of those that wrote them.
    """

    number: int
    exchange: Exchange
    place: Place
    invited: Index
    broadcast: bytes
    opened: OpenExchange
    reception: Reception
    letters_from: list[str]
    pending: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with everybody invited, or where a secure sum was when its server was killed."""
        self.pending = set(self.invited.tolist())
        if isinstance(self.reception, Summed):
            moved = self.reception.replayed()
            if self.reception.leg or self.reception.over:
                self.pending = set() if self.reception.over else set(moved or ())
            self.place = replace(self.place, leg=self.reception.leg)
            self.answered = self.reception.answered()
        self.waiting = self.pending - self.answered

    def next_leg(self, people: tuple[int, ...]) -> None:
        """The same exchange goes on with these people."""
        self.place = replace(self.place, leg=self.place.leg + 1)
        self.pending, self.waiting = set(people), set(people)
        self.answered, self.silent = set(), set()


@dataclass(frozen=True)
class Sender:
    """What a server writes invitations with: its key, who is there, who plays which part."""

    identity: bytes
    devices: Mapping[int, Device]
    casting: Casting

    def message(self, step: Step, slot: int, states: tuple[Any, ...]) -> bytes:
        """The invitation, or the present leg's message, for one person."""
        head = {
            **step.place.head(),
            "slot": slot,
            "person": self.devices[slot].identity.hex(),
            "model": digest(step.broadcast),
        }
        if step.place.leg:
            return framed(Kind.LEG, head, step.reception.parts(slot), self.identity)
        peer = self._peer(slot)
        to = self.devices[peer].letters if peer in self.devices else b""
        head |= {
            "invited": len(step.invited),
            "population": len(self.devices),
            "peer": peer,
            "cast": self.casting.peer is not None,
            "letters_from": step.letters_from,
        }
        parts = [step.broadcast, json.dumps(list(states)).encode(), to, self._people(step)]
        return framed(Kind.INVITATION, head, parts, self.identity)

    def _peer(self, slot: int) -> int:
        peers = self.casting.peer
        return -1 if peers is None or slot >= len(peers) else int(peers[slot])

    def _people(self, step: Step) -> bytes:
        """Everybody's public identity by slot, where people sum among one another.

        All at once and the same in every round: a device keeps to the first list it was shown.
        """
        if carried_by_sum(step.exchange) is None:
            return b""
        return b"".join(self.devices[slot].identity for slot in sorted(self.devices))


def payload_bytes(step: Step, slot: int) -> int:
    """How much of a message to this person is the method's own; the rest is framing."""
    return sum(map(len, step.reception.parts(slot))) if step.place.leg else len(step.broadcast)


def sizes(pattern: Pattern, shuffles: ShuffleProxy | None) -> tuple[int, int, int, int]:
    """What the proxy may expect of an exchange.

    The length of a sealed report, how many a person sends, how many people must be behind a batch, and how
    long a person's message is at most.
    """
    if shuffles is None:
        return 0, 0, 1, pattern.most
    honest: Any = pattern.arrays["reports"]
    size, each = report_nbytes(honest.shape[2] if honest.ndim == 3 else 1), honest.shape[1]
    return size, each, shuffles.n_min, pattern.most + size * each
