"""A device's part: a frame in, a frame out. The client code is the simulation's, on a cohort of one.

Nothing leaves before it is written down: private state, ledger line and answer are one transaction, and the
same question is answered with the same bytes. What goes wrong is told by a name, never by an error's text.
"""

import errno
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.account.claim import Claim
from tacit.deploy.arriving import empty_inbox, over_network
from tacit.deploy.cards import PersonKeys, written_card
from tacit.deploy.charter import Charter, charter_in, digest
from tacit.deploy.cohort import Owner, federation_held
from tacit.deploy.identity import Identity
from tacit.deploy.joining import Joining
from tacit.deploy.limits import Ask, Sent, refusal
from tacit.deploy.proxy_calls import ProxyLost, ProxyPost
from tacit.deploy.receptions import carried_by_sum, shuffled_by, terms_of
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import Frame, Kind, No, Place, Refused, framed, unframed
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.local.work import Broadcast, Inbox
from tacit.rng import Keys
from tacit.round import Exchange, Outgoing, ServerState, claim_of, client_side
from tacit.transport.secure_sum.client import Client
from tacit.transport.secure_sum.layout import Layout
from tacit.transport.secure_sum.plan import plan_for
from tacit.transport.secure_sum.terms import SumAborted, Terms
from tacit.transport.secure_sum.wire import Roster
from tacit.transport.shuffle_proxy import Envelope, Opener, report_nbytes, sealed
from tacit.types import Array, Cohort, RoundFacts, Rows

MOST = 1 << 31


class Declined(Exception):
    """The device does not answer; the name says why and nothing else."""

    def __init__(self, no: No) -> None:
        super().__init__(no.value)
        self.no = no


@dataclass(frozen=True)
class Question:
    """An invitation, as far as it could be checked without looking at anybody's data."""

    place: Place
    slot: int
    person: str
    keys: PersonKeys
    exchange: Exchange
    broadcast: bytes
    states: tuple[Any, ...]
    to: bytes
    people: Mapping[int, bytes]
    head: Mapping[str, Any]
    nbytes: int

    @property
    def round(self) -> int:
        """The round asked about."""
        return self.place.round

    @property
    def facts(self) -> RoundFacts:
        """What the server says of who was asked."""
        arrays = arrays_in(self.broadcast)
        shapes = {name: array.shape for name, array in arrays.items()}
        counts = int(self.head["population"]), int(self.head["invited"])
        return RoundFacts(self.round, self.exchange.name, *counts, counts[1], shapes)


@dataclass
class _Sum:
    """One person's part in a secure sum: it lives in memory alone, so a restart is a drop-out."""

    place: Place
    client: Client
    model: str
    terms: Terms
    least: int
    honest: int
    told: dict[int, bytes] = field(default_factory=dict)

    def refuse_small(self, roster: bytes) -> None:
        """A crowd as invited, and as many honest people as noise in shares counts on, or no answer."""
        plan = Roster.read(roster, self.terms).plan
        if plan.clients < self.least or plan.honest < self.honest:
            raise Declined(No.SUM_ABORTED)


class Participant:
    """Everybody hosted in one device's folder, answering one server.

    ``proxy`` makes the way to the proxy at an address; ``server`` is the server's public key where the
    person was told it, else the first one heard is kept. ``seeded`` allows a seeded run, whose noise others
    can derive: for tests. ``clock`` tells the time (unix seconds) for the person's own limits.
    """

    def __init__(
        self,
        store: DeviceStore,
        *,
        proxy: Callable[[str], Callable[[bytes], bytes]] | None = None,
        server: str = "",
        seeded: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self._proxy = proxy
        self._server = server
        self._seeded = seeded
        self._clock = clock
        self._charters: dict[str, Charter] = {}
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._turn = threading.Lock()

    def answer(self, wire: bytes) -> bytes:
        """The answer to anything a server may send; never an error's text."""
        with self._turn:
            try:
                frame = unframed(wire, MOST)
            except Refused:
                return self._no(No.UNREADABLE, {}, None)
            head = {
                name: frame.head.get(name) for name in ("run", "round", "exchange", "nonce", "leg", "slot")
            }
            keys = None
            try:
                if frame.kind is Kind.HELLO:
                    return self._card(frame)
                charter = self._charter(frame)
                if frame.kind is Kind.MODEL:
                    return self._model(frame, charter)
                person, keys = self._person(frame, charter)
                if frame.kind is Kind.INVITATION:
                    return self._invited(self._question(frame, charter, person, keys, len(wire)), charter)
                if frame.kind is Kind.LEG:
                    return self._leg(frame, person, keys)
                raise Declined(No.UNREADABLE)
            except Declined as error:
                return self._no(error.no, head, keys)
            except Exception as error:
                return self._no(_named(error), head, keys)

    def _no(self, no: No, head: Mapping[str, Any], keys: PersonKeys | None) -> bytes:
        signer = keys.identity if keys is not None else bytes(32)
        return framed(Kind.REFUSAL, {**head, "no": no.value}, [], signer)

    # joining

    def _card(self, frame: Frame) -> bytes:
        charter = charter_in(frame)
        if not frame.signed_by(charter.server) or (self._server and charter.server.hex() != self._server):
            raise Declined(No.FOREIGN_SERVER)
        if (
            charter.run in self.store.runs()
            and Charter.of(self.store.run(charter.run)).server != charter.server
        ):
            raise Declined(No.FOREIGN_SERVER)
        if charter.seeded is not None and charter.seeded != self._seeded:
            raise Declined(No.SEEDED)
        charter.method  # noqa: B018 - refused here if it cannot be built
        self.store.keep_run(charter.announced)
        self._charters[charter.run] = charter
        secret, people = self.store.secret(), []
        for person in self.store.people():
            held = self._held(charter, person)
            if len(held.people):
                people.append((PersonKeys.of(secret, charter.run, person), self._wish(person)))
        return written_card(charter.run, Identity.of(self.store), people)

    def _wish(self, person: str) -> int:
        kept = self.store.kept(f"wish/{person}")
        return int(kept) if kept is not None else -1

    def _charter(self, frame: Frame) -> Charter:
        run = frame.read("run", str)
        if run not in self._charters:
            if run not in self.store.runs():
                raise Declined(No.FOREIGN_RUN)
            self._charters[run] = Charter.of(self.store.run(run))
        charter = self._charters[run]
        if not frame.signed_by(charter.server):
            raise Declined(No.FOREIGN_SERVER)
        return charter

    def _person(self, frame: Frame, charter: Charter) -> tuple[str, PersonKeys]:
        asked, secret = frame.read("person", str), self.store.secret()
        for person in self.store.people():
            keys = PersonKeys.of(secret, charter.run, person)
            if keys.public.hex() == asked:
                return person, keys
        raise Declined(No.NOBODY)

    def _model(self, frame: Frame, charter: Charter) -> bytes:
        self.store.keep_model(charter.run, frame.read("round", int), arrays_in(frame.parts[0]))
        return framed(Kind.KEPT, {"run": charter.run}, [], bytes(32))

    def _held(self, charter: Charter, person: str) -> Federation:
        owner = Owner(self.store.history(person), self.store.profile(person))
        return federation_held(charter.about, [owner])

    # taking part

    def _question(
        self, frame: Frame, charter: Charter, person: str, keys: PersonKeys, nbytes: int
    ) -> Question:
        place = Place.of(frame)
        exchange = charter.exchanges.get(place.exchange)
        if exchange is None or len(frame.parts) != 4:
            raise Declined(No.UNREADABLE)
        broadcast, states, to, people = frame.parts
        if digest(broadcast) != frame.read("model", str):
            raise Declined(No.FOREIGN_MODEL)
        listed = {
            int.from_bytes(people[at : at + 4], "little"): people[at + 4 : at + 36]
            for at in range(0, len(people), 36)
        }
        return Question(
            place,
            frame.read("slot", int),
            person,
            keys,
            exchange,
            broadcast,
            tuple(json.loads(states)),
            to,
            listed,
            frame.head,
            nbytes,
        )

    def _invited(self, question: Question, charter: Charter) -> bytes:
        place, person = question.place, question.person
        if carried_by_sum(question.exchange) is not None:
            return self._sum_begun(question, charter)
        try:
            kept = self.store.answered(person, place.run, place.round, place.exchange)
        except TacitError as error:
            raise Declined(No.ANSWERED_BEFORE) from error
        if kept is None:
            self._may(question, charter)
            kept = self._answered_anew(question, charter)
        answer, post = _both(kept)
        known = unframed(answer, MOST)
        if known.read("model", str) != digest(question.broadcast) or Place.of(known) != place:
            raise Declined(No.ANSWERED_BEFORE)
        if post:
            self._post(charter).post(post)
        return answer

    def _may(self, question: Question, charter: Charter) -> None:
        """The person's own limits, from the device's own ledger."""
        if self.store.paused:
            raise Declined(No.PAUSED)
        ask = Ask(
            question.person,
            question.place.run,
            question.round,
            question.place.exchange,
            self._claim(question, charter).to_json(),
            int(self._clock()),
            question.nbytes,
            0,
            charter.about.delta,
        )
        if refusal(self.store.limits(), self.store.sent(question.person), ask) is not None:
            raise Declined(No.LIMIT)

    def _claim(self, question: Question, charter: Charter) -> Claim:
        """What the exchange is worth, worked out here; of a shuffle only the proxy's least crowd counts."""
        facts, exchange = question.facts, question.exchange
        shuffles = shuffled_by(exchange)
        if shuffles is not None:
            facts = replace(facts, answered=shuffles.n_min)
        state = ServerState(question.round, {}, {}, {exchange.name: question.states})
        claim = claim_of(exchange, state, facts)
        if charter.seeded is None:
            return claim
        from tacit.deploy.claims import derivable

        return derivable(claim)

    def _worked(self, question: Question, charter: Charter) -> Outgoing:
        exchange, place = over_network(question.exchange), question.place
        cohort = self._cohort(question, charter)
        arrays = arrays_in(question.broadcast)
        received = exchange.local.prepared(Broadcast(place.round, arrays))
        keys: Keys = charter.keys(self.store.secret() + question.keys.public)
        private = self._private(question, charter, cohort, keys)
        inbox = self._inbox(question, charter, arrays) if exchange.reads_letters else None
        return client_side(exchange, question.states, received, private, cohort, inbox, keys)

    def _cohort(self, question: Question, charter: Charter) -> Cohort:
        held = self._held(charter, question.person)
        if not len(held.people):
            raise Declined(No.NO_HISTORY)
        cohort = held.cohort(np.zeros(1, dtype=np.int32))
        extras: dict[str, Array] = dict(cohort.extras)
        if question.head.get("cast"):
            extras["peer"] = np.array([int(question.head.get("peer", -1))], dtype=np.int32)
        return replace(cohort, users=np.array([question.slot], dtype=np.int32), extras=extras)

    def _private(
        self, question: Question, charter: Charter, cohort: Cohort, keys: Keys
    ) -> Mapping[str, Array]:
        first = charter.method.model.private(cohort.users, keys)
        return {**first, **self.store.private(question.person, question.place.run)}

    def _answered_anew(self, question: Question, charter: Charter) -> bytes:
        done = self._worked(question, charter)
        place, exchange = question.place, question.exchange
        arrays = done.messages.arrays
        shuffles = shuffled_by(exchange)
        payload = codec.encode(arrays, max(0, place.round)) if arrays and shuffles is None else b""
        reports = self._sealed_reports(arrays, charter, place) if shuffles is not None else b""
        readers, letters = self._sealed_letters(done, question)
        head = {**place.head(), "slot": question.slot}
        answer = framed(
            Kind.ANSWER, {**head, "model": digest(question.broadcast)}, [payload], question.keys.identity
        )
        post = b""
        if reports or letters:
            post = framed(
                Kind.POST, {**head, "readers": readers}, [reports, *letters], question.keys.identity
            )
        both = len(answer).to_bytes(8, "little") + answer + post
        up = len(payload) + len(reports) + sum(map(len, letters))
        self._commit(question, charter, done, both, up)
        return both

    def _commit(self, question: Question, charter: Charter, done: Outgoing, answer: bytes, up: int) -> None:
        place = question.place
        line = Sent(
            question.person,
            place.run,
            place.round,
            place.exchange,
            "proxy" if shuffled_by(question.exchange) is not None else "server",
            up,
            question.nbytes,
            self._claim(question, charter).to_json(),
            int(self._clock()),
        )
        self.store.commit(
            run=place.run, private={question.person: dict(done.private)}, sent=[line], answer=answer
        )

    # through the proxy

    def _post(self, charter: Charter) -> ProxyPost:
        if self._proxy is None:
            raise Declined(No.NO_PROXY)
        return ProxyPost(self._proxy(charter.proxy_address), charter.proxy)

    def _sealed_reports(self, arrays: Any, charter: Charter, place: Place) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # loads on first use

        reports = arrays["reports"][0]
        words = reports.reshape(len(reports), -1).astype("<u4")
        server = X25519PublicKey.from_public_bytes(charter.opener)
        envelope = Envelope(place.exchange, place.round)
        wires = [sealed(row.tobytes(), server, envelope) for row in words]
        assert all(len(wire) == report_nbytes(words.shape[1]) for wire in wires)
        return b"".join(wires)

    def _sealed_letters(self, done: Outgoing, question: Question) -> tuple[list[int], list[bytes]]:
        if done.letters is None or int(done.letters.to[0]) < 0:
            return [], []
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # loads on first use

        letter = codec.encode({"rows": done.letters.rows}, max(0, question.round))
        reader = X25519PublicKey.from_public_bytes(question.to)
        return [int(done.letters.to[0])], [sealed(letter, reader, _letter(question.place))]

    def _inbox(self, question: Question, charter: Charter, received: Mapping[str, Array]) -> Inbox:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # loads on first use

        words = question.head.get("letters_from", [])
        places = [
            replace(question.place, exchange=exchange, nonce=nonce, leg=0)
            for exchange, nonce in zip(words[::2], words[1::2], strict=True)
        ]
        key, found = X25519PrivateKey.from_private_bytes(question.keys.letters), []
        for place in places:
            wires = self._post(charter).letters(place, question.slot, question.keys.identity)
            found += Opener(key, _letter(place)).opened(wires)
        nothing = empty_inbox(question.exchange, received)
        return _gathered([_rows(letter, nothing) for letter in found], nothing)

    # secure sums

    def _sum_begun(self, question: Question, charter: Charter) -> bytes:
        place, person = question.place, question.person
        under_way = self._sums.get((person, place.exchange))
        if under_way is not None and under_way.place == place and 0 in under_way.told:
            return under_way.told[0]
        try:
            before = self.store.answered(person, place.run, place.round, place.exchange)
        except TacitError as error:
            raise Declined(No.ANSWERED_BEFORE) from error
        if before is not None:
            raise Declined(No.ANSWERED_BEFORE)  # two sums of one round could be subtracted
        self._may(question, charter)
        self._pin(place.run, question.people)
        done = self._worked(question, charter)
        carrier = carried_by_sum(question.exchange)
        assert carrier is not None
        assert carrier.steps is not None
        least = plan_for(question.facts.invited, carrier.rates).minimum
        layout = Layout.of(done.messages.arrays, question.facts)
        terms = terms_of(question.exchange, place.run, question.facts, question.broadcast, layout)
        vector = layout.vector(done.messages.arrays, 0, terms.ring)
        client = Client(terms, question.slot, question.keys.identity, question.people, vector)
        # From here on this round is spent: a crash before the sum is over leaves it unanswered.
        self._commit(question, charter, done, b"", 5 * 16 + terms.nbytes)
        begun = _Sum(place, client, digest(question.broadcast), terms, least, carrier.steps.honest)
        self._sums[person, place.exchange] = begun
        return self._leg_told(begun, 0, question.slot, question.keys, client.start())

    def _pin(self, run: str, people: Mapping[int, bytes]) -> None:
        """Whoever was met once keeps their key: a server cannot pass somebody else off as them later."""
        kept = json.loads(self.store.note(run, "people") or b"{}")
        met = {str(slot): identity.hex() for slot, identity in people.items()}
        if any(kept.get(slot, identity) != identity for slot, identity in met.items()):
            raise Declined(No.FOREIGN_SERVER)
        if not met.keys() <= kept.keys():
            self.store.keep_note(run, "people", json.dumps({**kept, **met}).encode())

    def _leg(self, frame: Frame, person: str, keys: PersonKeys) -> bytes:
        place = Place.of(frame)
        under_way = self._sums.get((person, place.exchange))
        if under_way is None or replace(under_way.place, leg=place.leg) != place or len(frame.parts) != 1:
            raise Declined(No.OUT_OF_TURN)
        if place.leg in under_way.told:
            return under_way.told[place.leg]
        if place.leg != len(under_way.told):
            raise Declined(No.OUT_OF_TURN)
        if place.leg == 1:
            under_way.refuse_small(frame.parts[0])
        message = under_way.client.receive(frame.parts[0])
        return self._leg_told(under_way, place.leg, frame.read("slot", int), keys, message)

    def _leg_told(self, begun: _Sum, leg: int, slot: int, keys: PersonKeys, message: bytes) -> bytes:
        place = replace(begun.place, leg=leg)
        head = {**place.head(), "slot": slot, "model": begun.model}
        begun.told[leg] = framed(Kind.ANSWER, head, [message], keys.identity)
        return begun.told[leg]


def arrays_in(broadcast: bytes) -> dict[str, Array]:
    """The whole arrays of a message that is the same for everybody."""
    found = codec.decode_broadcast(broadcast).arrays
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}


def _letter(place: Place) -> Envelope:
    return Envelope(f"letter/{place.run}/{place.nonce}/{place.exchange}", place.round)


def _both(kept: bytes) -> tuple[bytes, bytes]:
    """The answer to the server, and what goes to the proxy (nothing, mostly)."""
    length = int.from_bytes(kept[:8], "little")
    return kept[8 : 8 + length], kept[8 + length :]


def _rows(letter: bytes, like: Inbox) -> Rows:
    """One letter's rows, if they look like rows of the table; an empty one otherwise."""
    try:
        rows = codec.decode(letter).arrays.get("rows")
    except TacitError:
        return like.rows
    wanted: Any = like.rows.values
    if not isinstance(rows, Rows) or rows.cells or rows.counts is not None:
        return like.rows
    values: Any = rows.values
    if values.dtype != wanted.dtype or values.shape[1:] != wanted.shape[1:]:
        return like.rows
    return rows if values.dtype.kind != "f" or np.isfinite(values).all() else like.rows


def _gathered(letters: list[Rows], nothing: Inbox) -> Inbox:
    whole = [rows for rows in letters if rows.clients]
    if not whole:
        return nothing
    lengths = np.array([rows.total for rows in whole], dtype=np.int64)
    values: list[Any] = [rows.values for rows in whole]
    rows = Rows(
        np.cumsum(lengths) - lengths,
        lengths,
        np.concatenate([rows.ids for rows in whole]),
        np.concatenate(values),
    )
    return Inbox(np.array([0, len(whole)]), np.arange(len(whole)), rows)


def _named(error: BaseException) -> No:
    if isinstance(error, ProxyLost):
        return No.NO_PROXY
    if isinstance(error, SumAborted):
        return No.SUM_ABORTED
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if full or (isinstance(error, TacitError) and error.problem.startswith("no space")):
        return No.DISK_FULL
    return No.UNABLE


def participate(joining: Joining) -> int:
    """Take part over the network as ``tacit device --server`` asks; the exit status."""
    from tacit.deploy.flower_device import shown  # the engine loads on first use

    return shown(joining)
