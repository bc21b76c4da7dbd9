"""The server as a state machine: what is due to whom, what came, when a step is over. It carries nothing.

Whoever drives it sends what is ``due``, hands over what arrives, and calls ``advance`` when nobody is
waited for any more or the deadline has passed. Every step is journaled, so that a new coordinator on the
same journal goes on where the last one was killed.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.deploy.about import RunAbout
from tacit.deploy.arriving import Pattern, over_network
from tacit.deploy.cards import read_card
from tacit.deploy.charter import FIRST, Charter, digest
from tacit.deploy.claims import derivable
from tacit.deploy.enrolment import enrolled
from tacit.deploy.journal import Device, Journal, Opened
from tacit.deploy.proxy_calls import ProxyLink, ProxyLost
from tacit.deploy.receptions import (
    Plain,
    Reception,
    Shuffled,
    Summed,
    carried_by_sum,
    directory,
    shuffled_by,
    terms_of,
)
from tacit.deploy.step import Sender, Step, payload_bytes, sizes
from tacit.deploy.wire import Frame, Kind, No, Place, Reason, Refused, framed, unframed
from tacit.errors import TacitError
from tacit.federation.federation import Casting
from tacit.ledger.record import ExchangeRecord, Traffic
from tacit.rng import SeededKeys
from tacit.round import Exchange, Method, OpenExchange, ServerState, first_state, server_side
from tacit.transport.secure_sum.layout import Layout
from tacit.transport.secure_sum.plan import plan_for
from tacit.transport.secure_sum.server import Server
from tacit.transport.secure_sum.terms import SumAborted
from tacit.types import Index, RoundFacts


class Coordinator:
    """One federation's server, without input or output.

    ``proxy`` carries frames to the proxy where the method needs one.
    """

    def __init__(self, journal: Journal, proxy: ProxyLink | None = None) -> None:
        self.journal = journal
        self.identity = _needed(journal, "identity")
        self._opener = _needed(journal, "opener")
        self.charter = Charter.of(RunAbout.decoded(_needed(journal, "charter")))
        self.method: Method = self.charter.method
        self.proxy = proxy
        self._keys = self.charter.keys(_needed(journal, "kept"))
        self._step: Step | None = None
        self._tallies: dict[str, Any] = {}
        self._records: list[ExchangeRecord] = []
        self._framing = 0
        self._seen = journal.seen
        self.devices: Mapping[int, Device] = journal.devices()
        state = journal.state()
        self.state = state if state is not None else self._first()
        self.clear_proxy()

    def _first(self) -> ServerState:
        state = first_state(self.method, len(self.charter.about.items), self._keys)
        state = replace(state, round=FIRST if self.method.setup else 0)
        with self.journal.whole():
            self.journal.save_state(state, [])
        return state

    # who is there

    @property
    def rounds(self) -> int:
        """How many rounds there will be."""
        return self.method.rounds

    @property
    def finished(self) -> bool:
        """Whether the last round is over."""
        return self.state.round >= self.rounds

    @property
    def complete(self) -> bool:
        """Whether everybody has enrolled whom the charter counts."""
        return len(self.devices) >= self.charter.about.people

    @property
    def reachable(self) -> set[int]:
        """Everybody whose key was not revoked."""
        return {slot for slot, device in self.devices.items() if not device.revoked}

    def hello(self) -> bytes:
        """The question who is there, with all that is public about this federation."""
        return framed(
            Kind.HELLO, {"run": self.charter.run}, [self.charter.announced.encoded()], self.identity
        )

    def enrol(self, card: bytes, node: str = "") -> tuple[int, ...]:
        """Take in the people on a device's card; returns their slots. A refusal is counted by its name."""
        try:
            frame = unframed(card, 1 << 24)
            if frame.kind is Kind.REFUSAL:
                self.journal.count("device", _no(frame))
                return ()
            slots = enrolled(
                self.journal, read_card(frame, self.charter.run), self.charter.about.people, node
            )
        except Refused as error:
            self.journal.count("server", error.reason.value)
            return ()
        self.devices = self.journal.devices()
        return slots

    def revoke(self, slot: int) -> None:
        """Nothing more in, nothing more out for this key."""
        self.journal.revoke(slot)
        self._look()

    def notice(self) -> None:
        """Take up what the operator wrote into the journal meanwhile: a key that was revoked."""
        if self.journal.seen != self._seen:
            self._look()

    def _look(self) -> None:
        self._seen, self.devices = self.journal.seen, self.journal.devices()
        if self._step is not None:
            self._step.waiting -= {slot for slot, device in self.devices.items() if device.revoked}

    # the round

    @property
    def step(self) -> Step:
        """The exchange under way; opened (or taken up again after a restart) when first asked for."""
        if self._step is None:
            self._step = self._resumed()
        return self._step

    @property
    def waiting(self) -> set[int]:
        """Who has not answered the present leg."""
        return self.step.waiting

    def _exchanges(self) -> tuple[Exchange, ...]:
        return self.charter.asked(self.state.round)

    def _casting(self) -> Casting:
        casting = self.journal.casting()
        if casting is None:
            people = np.array(sorted(self.devices), dtype=np.int32)
            casting = self.method.casting(people, self._keys)
            self.journal.keep_casting(casting)
        return casting

    def _resumed(self) -> Step:
        """Open the next exchange, after putting back the sums of those already closed in this round."""
        kept = self.journal.opened_steps()
        for number, exchange in enumerate(self._exchanges()):
            found = kept.get(number)
            if found is not None and found.record is not None:
                if number >= len(self._records):
                    fresh = exchange.aggregator.start(self.state.shared)
                    self._tallies[exchange.into] = Journal.tally(found, fresh)
                    received = Journal.received(found)
                    facts = replace(found.record.facts, received=received)
                    self._records.append(replace(found.record, facts=facts))
                continue
            return self._opened(number, exchange, found)
        raise TacitError("a round without an open exchange", "this is a defect: report it")

    def _opened(self, number: int, exchange: Exchange, kept: Opened | None) -> Step:
        self.clear_proxy()
        casting = self._casting()
        if kept is None:
            drawn = exchange.sampling.draw(casting.parts[exchange.part], self.state.round, self._keys)
            invited = np.array([s for s in drawn.tolist() if self._allowed_slot(s)], dtype=np.int32)
            kept = Opened(self._nonce(exchange.name), invited, None, None)
            self.journal.open(number, kept.nonce, kept.invited)
        place = Place(self.charter.run, self.state.round, exchange.name, kept.nonce)
        opened = OpenExchange(
            over_network(exchange),
            self.state,
            invited=len(kept.invited),
            population=len(casting.parts[exchange.part]),
            keys=self._keys,
            tally=self._tallies.get(exchange.into),
        )
        broadcast = codec.encode_broadcast(opened.received.arrays, max(0, self.state.round))
        reception = self._reception(number, exchange, place, kept.invited, opened, broadcast, casting)
        step = Step(
            number,
            exchange,
            place,
            kept.invited,
            broadcast,
            opened,
            reception,
            self._letters_from(number, exchange),
        )
        step.waiting = {slot for slot in step.waiting if self._allowed_slot(slot)}
        return step

    def _nonce(self, exchange: str) -> str:
        """The same for the same question: a server put back to an older state asks it again."""
        text = f"{self.charter.run}/{self.state.round}/{exchange}".encode()
        return hashlib.blake2b(text, key=self.identity, digest_size=16).hexdigest()

    def _allowed_slot(self, slot: int) -> bool:
        return slot in self.devices and not self.devices[slot].revoked

    def _reception(
        self,
        number: int,
        exchange: Exchange,
        place: Place,
        invited: Index,
        opened: OpenExchange,
        broadcast: bytes,
        casting: Casting,
    ) -> Reception:
        pattern = Pattern.of(self.charter, exchange, self.state, casting)
        shapes = {name: array.shape for name, array in opened.received.arrays.items()}
        facts = RoundFacts(self.state.round, exchange.name, len(self.devices), len(invited), 0, shapes)
        exchange.transport.server_session(facts, SeededKeys(0))  # refuses what it cannot carry
        shuffles = shuffled_by(exchange)
        if shuffles is not None or self._writes_letters(number):
            people = {slot: device.identity for slot, device in self.devices.items() if not device.revoked}
            self._link().open(place, people, invited.tolist(), *sizes(pattern, shuffles))
        if carried_by_sum(exchange) is not None:
            layout = Layout.of(pattern.arrays, facts)
            sent = broadcast, self.state.protections[exchange.name]
            terms = terms_of(exchange, self.charter.run, facts, sent, layout)
            server = Server(terms, directory(self.devices, invited), invited.tolist())
            least = plan_for(len(invited), terms.rates).minimum
            return Summed(number, self.journal, opened, layout, terms, server, least)
        if shuffles is not None:
            return Shuffled(
                exchange,
                pattern,
                opened,
                self._opener,
                lambda: self._link().collect(place),
                lambda name, times: self._count(name, times),
                self.state.round,
            )
        return Plain(exchange, self.state, pattern, opened)

    def _link(self) -> ProxyLink:
        if self.proxy is None:
            raise TacitError(
                "the method needs a proxy", "start `tacit proxy` and give its address with --proxy"
            )
        return self.proxy

    def _count(self, name: str, times: int) -> None:
        if times:
            self.journal.count("server", name, times)

    def _writes_letters(self, number: int) -> bool:
        """Whether a later exchange of the round reads letters that this one's people write."""
        later = self._exchanges()[number + 1 :]
        return self._casting().peer is not None and any(exchange.reads_letters for exchange in later)

    # out

    def due(self) -> dict[int, bytes]:
        """What everybody still waited for should be sent now. Sending it again is always safe."""
        return {slot: self.message(slot) for slot in sorted(self.step.waiting)}

    def message(self, slot: int) -> bytes:
        """The invitation, or the present leg's message, for one person."""
        step = self.step
        sender = Sender(self.identity, self.devices, self._casting())
        wire = sender.message(step, slot, self.state.protections[step.exchange.name])
        self._framing += len(wire) - payload_bytes(step, slot)
        return wire

    def _letters_from(self, number: int, exchange: Exchange) -> list[str]:
        """Where a reader's letters lie: exchange and nonce of those that wrote them."""
        if not exchange.reads_letters:
            return []
        kept = self.journal.opened_steps()
        names = [exchange.name for exchange in self._exchanges()]
        earlier = [before for before in range(number) if self._writes_letters(before)]
        return [word for before in earlier for word in (names[before], kept[before].nonce)]

    # in

    def receive(self, slot: int, wire: bytes) -> Reason | None:
        """Take what a device sent; ``None`` if it counts, else the name under which it was refused."""
        try:
            self._received(slot, wire)
        except Refused as error:
            self.journal.count("server", error.reason.value)
            return error.reason
        return None

    def _received(self, slot: int, wire: bytes) -> None:
        step = self.step
        device = self.devices.get(slot)
        if device is None:
            raise Refused(Reason.STRANGER)
        if device.revoked:
            raise Refused(Reason.REVOKED)
        frame = unframed(wire, 1 << 31)
        if not frame.signed_by(device.identity) or frame.head.get("slot") != slot:
            raise Refused(Reason.UNSIGNED)
        place = Place.of(frame)
        if place.run != self.charter.run:
            raise Refused(Reason.FOREIGN_RUN)
        if (place.round, place.exchange, place.nonce) != (
            step.place.round,
            step.place.exchange,
            step.place.nonce,
        ):
            raise Refused(Reason.REPLAYED, "it belongs to another round")
        if frame.kind is Kind.REFUSAL:
            said = _no(frame)
            if said != No.NO_PROXY.value:  # which may be back in a moment: it is asked again
                step.waiting.discard(slot)
            if slot not in step.silent | step.answered:
                step.silent.add(slot)
                self.journal.count("device", said)
            return
        if frame.kind is not Kind.ANSWER:
            raise Refused(Reason.MALFORMED, "it is not an answer")
        if slot not in step.invited:
            raise Refused(Reason.UNINVITED)
        if frame.read("model", str) != digest(step.broadcast):
            raise Refused(Reason.FOREIGN_MODEL)
        if place.leg < step.place.leg or (place.leg == step.place.leg and slot in step.answered):
            raise Refused(Reason.DUPLICATE)
        if place.leg > step.place.leg or slot not in step.pending:
            raise Refused(Reason.OUT_OF_TURN)
        step.reception.take(slot, frame.parts)
        self._framing += len(wire) - sum(map(len, frame.parts))
        step.answered.add(slot)
        step.waiting.discard(slot)
        step.silent.discard(slot)

    # on

    def advance(self) -> None:
        """Nobody else will answer the present leg: go on to the next leg, exchange or round."""
        step = self.step
        people = step.reception.advance()
        if people is not None:
            step.next_leg(people)
            step.waiting = {slot for slot in people if self._allowed_slot(slot)}
            return
        self._closed(step)

    def _closed(self, step: Step) -> None:
        said = ""
        try:
            step.reception.finish()
            self._note_letters(step)
        except SumAborted as error:
            said = error.problem
        record = step.opened.close()
        if self.charter.seeded is not None:
            record = replace(record, claim=derivable(record.claim))
        self._records.append(record)
        self._tallies[step.exchange.into] = step.opened.tally
        last = step.number + 1 == len(self._exchanges())
        if said:
            self._abandoned(said)
        elif last:
            self._next_round()
        else:
            self.journal.close_step(step.number, record, step.opened.tally)
            self._step = None
        if isinstance(step.reception, Summed):
            self.journal.wipe()

    def _note_letters(self, step: Step) -> None:
        """Letters are counted by the proxy: bytes in when written, bytes out when read."""
        if self._writes_letters(step.number):
            batch = self._link().collect(step.place)
            step.opened.note(Traffic(letters_out=batch.letter_bytes), {})
        for exchange, nonce in _pairs(step.letters_from):
            place = replace(step.place, exchange=exchange, nonce=nonce, leg=0)
            step.opened.note(Traffic(letters_in=self._link().collect(place).read), {})

    def _next_round(self) -> None:
        whole = replace(self.method, exchanges=self._exchanges())
        state = server_side(whole, self.state, self._tallies, self._records, self._keys)
        self._move(state, "")

    def _abandoned(self, said: str) -> None:
        """A round whose sum failed adds nothing: the model stays, the round is over, what was sent counts."""
        if self.state.round == FIRST:
            raise TacitError(f"set-up failed: {said}", "start the federation anew with more people")
        self._move(replace(self.state, round=self.state.round + 1), said)

    def _move(self, state: ServerState, said: str) -> None:
        told = {
            "invited": max(record.facts.invited for record in self._records),
            "answered": max(record.facts.answered for record in self._records),
            "seconds": None,
            "framing": self._framing,
            "said": said,
        }
        names = [exchange.name for exchange in self._exchanges()]
        over = {kept.nonce: names[number] for number, kept in self.journal.opened_steps().items()}
        with self.journal.whole():
            self.journal.save_state(state, self._records)
            self.journal.keep_round(self.state.round, told)
            if self.proxy is not None:
                self.journal.keep_to_forget(self.state.round, over)
        self.state, self._records, self._tallies, self._step, self._framing = state, [], {}, None, 0
        self.clear_proxy()

    def clear_proxy(self) -> bool:
        """Have the proxy forget what is over; whether nothing is left that it must still be told."""
        try:
            for nonce, round, exchange in self.journal.to_forget() if self.proxy is not None else ():
                self._link().forget(Place(self.charter.run, round, exchange, nonce))
                self.journal.forgotten(nonce)  # only once the proxy said so
        except (ProxyLost, Refused):
            return False
        return True

    def took(self, round: int, seconds: float) -> None:
        """Note how long a round took, for the operator."""
        self.journal.keep_seconds(round, seconds)

    def model(self) -> bytes:
        """The model as it is now, for devices to keep."""
        arrays = codec.encode_broadcast(self.state.shared, max(0, self.state.round))
        head = {"run": self.charter.run, "round": self.state.round, "final": self.finished}
        return framed(Kind.MODEL, head, [arrays], self.identity)


def _needed(journal: Journal, name: str) -> bytes:
    value = journal.fact(name)
    if value is None:
        raise TacitError(f"the journal holds no {name}", "put a back-up of the server's folder back")
    return value


def _no(frame: Frame) -> str:
    name = frame.head.get("no")
    return name if isinstance(name, str) and name in {no.value for no in No} else No.UNABLE.value


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))
