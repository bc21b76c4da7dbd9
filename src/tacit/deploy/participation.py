"""A device's part: a frame in, a frame out. The client code is the simulation's, on a cohort of one.

Nothing leaves before it is written down: private state, ledger line and answer are one transaction, and the
same question is answered with the same bytes. What goes wrong is told by a name, never by an error's text.
"""

import errno
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from tacit import codec
from tacit.account.claim import Claim
from tacit.deploy import accuracy
from tacit.deploy.arriving import over_network
from tacit.deploy.cards import PersonKeys, written_card
from tacit.deploy.charter import FIRST, Charter, charter_in, digest
from tacit.deploy.claims import derivable
from tacit.deploy.cohort import Owner, federation_held
from tacit.deploy.identity import Identity
from tacit.deploy.joining import Joining
from tacit.deploy.limits import Ask, Sent, refusal, too_many_runs
from tacit.deploy.posting import inbox_of, posted, refuse_small_crowd
from tacit.deploy.proxy_calls import ProxyLost, ProxyPost
from tacit.deploy.question import Declined, Question, arrays_in, question_in
from tacit.deploy.receptions import carried_by_sum, shuffled_by
from tacit.deploy.store import DeviceStore
from tacit.deploy.summing import SumPart, Sums
from tacit.deploy.wire import Frame, Kind, No, Place, Refused, framed, unframed
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.local.work import Broadcast
from tacit.rng import Keys
from tacit.round import Outgoing, ServerState, claim_of, client_side
from tacit.transport.secure_sum.terms import SumAborted
from tacit.types import Array, Cohort

MOST = 1 << 31


class Participant:
    """Everybody hosted in one device's folder, answering one server.

    ``proxy`` makes the way to the proxy at an address; ``server`` is the server's public key where the
    person was told it, else the first one heard is kept. ``seeded`` allows a seeded run, whose noise others
    can derive: for tests. ``clock`` tells the time (unix seconds) for the person's own limits. Who does not
    outlive a message (``lasting``) takes no part in what needs several.
    """

    def __init__(
        self,
        store: DeviceStore,
        *,
        proxy: Callable[[str], Callable[[bytes], bytes]] | None = None,
        server: str = "",
        seeded: int | None = None,
        clock: Callable[[], float] = time.time,
        lasting: bool = True,
    ) -> None:
        self.store = store
        self._lasting = lasting
        self._proxy = proxy
        self._server = server
        self._seeded = seeded
        self._clock = clock
        self._charters: dict[str, Charter] = {}
        self._sums = Sums(store)
        self._turn = Lock()

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
                if self.store.paused:
                    raise Declined(No.PAUSED)  # repeats and later legs too: nothing leaves
                if frame.kind is Kind.INVITATION:
                    return self._invited(question_in(frame, charter, person, keys, len(wire)), charter)
                if frame.kind is Kind.LEG:
                    return self._sums.leg(frame, person)
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
        sums = any(map(carried_by_sum, charter.exchanges.values()))  # refused here if it cannot be built
        if sums and not self._lasting:
            raise Declined(No.NOT_LASTING)
        secret, people = self.store.secret(), []
        limits, willing = self.store.limits(), []
        for person in self.store.people():
            if not too_many_runs(limits, self.store.sent(person), charter.run):
                willing.append(person)
        if self.store.people() and not willing:
            raise Declined(No.LIMIT)
        self.store.keep_run(charter.announced)
        self._charters[charter.run] = charter
        for person in willing:
            held = self._held(charter, person)
            if len(held.people):
                people.append((PersonKeys.of(secret, charter.run, person), self.store.wish(person)))
        return written_card(charter.run, Identity.of(self.store), people)

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
        history, left = self.store.history(person), self._left_out(charter, person)
        owner = Owner(history if left is None else history.without(left), self.store.profile(person))
        return federation_held(charter.about, [owner])

    def _left_out(self, charter: Charter, person: str) -> str | None:
        """The entry that this person's device trains on never, where accuracy is asked for."""
        if charter.accuracy is None:
            return None
        known = charter.about.positions()
        items = [item for item in self.store.history(person).items if item in known]
        return accuracy.held_out(self.store.secret(), f"{charter.run}/{person}", items)

    # taking part

    def _invited(self, question: Question, charter: Charter) -> bytes:
        place, person = question.place, question.person
        if carried_by_sum(question.exchange) is not None:
            return self._sums.repeated(question) or self._sum_begun(question, charter)
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

    def _may(self, question: Question, charter: Charter, up: int = 0) -> None:
        """The person's own limits, from the device's own ledger; one slot for the whole run."""
        refuse_small_crowd(question)
        if question.round <= self.store.lost_until(question.place.run):
            raise Declined(No.ANSWERED_BEFORE)
        ledger = self.store.sent(question.person)
        slots = {line.slot for line in ledger if line.run == question.place.run and line.slot >= 0}
        if slots - {question.slot}:
            raise Declined(No.CHARTER)  # what is drawn once and kept would be drawn anew for another slot
        ask = Ask(
            question.person,
            question.place.run,
            question.round,
            question.place.exchange,
            self._claim(question, charter).to_json(),
            int(self._clock()),
            question.nbytes,
            up,
            charter.about.delta,
        )
        if refusal(self.store.limits(), ledger, ask) is not None:
            raise Declined(No.LIMIT)

    def _claim(self, question: Question, charter: Charter) -> Claim:
        """What the exchange is worth, worked out here; who else answered is not taken on the server's word.

        Of a shuffle the proxy's least crowd counts, in a secure sum those whose keys it was made with, and
        elsewhere this device alone.
        """
        facts, exchange = question.facts, question.exchange
        shuffles = shuffled_by(exchange)
        if shuffles is not None:
            facts = replace(facts, answered=shuffles.n_min)
        elif carried_by_sum(exchange) is None:
            facts = replace(facts, answered=1)
        state = ServerState(question.round, {}, {}, {exchange.name: question.states})
        claim = claim_of(exchange, state, facts)
        return claim if charter.seeded is None else derivable(claim)

    def _worked(self, question: Question, charter: Charter) -> Outgoing:
        exchange, place = over_network(question.exchange), question.place
        cohort = self._cohort(question, charter)
        arrays = arrays_in(question.broadcast)
        received = exchange.local.prepared(Broadcast(place.round, arrays))
        keys: Keys = charter.keys(self.store.secret() + question.keys.public)
        private = self._private(question, charter, cohort, keys)
        inbox = inbox_of(question, self._post(charter), arrays) if exchange.reads_letters else None
        return client_side(exchange, question.states, received, private, cohort, inbox, keys)

    def _cohort(self, question: Question, charter: Charter) -> Cohort:
        held = self._held(charter, question.person)
        if not len(held.people):
            raise Declined(No.NO_HISTORY)
        cohort = held.cohort(np.zeros(1, dtype=np.int32))
        extras: dict[str, Array] = dict(cohort.extras)
        if question.place.exchange == accuracy.NAME:
            left = self._left_out(charter, question.person)
            place = -1 if left is None else charter.about.position(left)
            extras[accuracy.HELD] = np.array([place], dtype=np.int32)
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
        place, arrays = question.place, done.messages.arrays
        plain = arrays and shuffled_by(question.exchange) is None
        payload = codec.encode(arrays, max(0, place.round)) if plain else b""
        head = {**place.head(), "slot": question.slot, "model": digest(question.broadcast)}
        answer = framed(Kind.ANSWER, head, [payload], question.keys.identity)
        post = posted(done, question, charter)
        both = len(answer).to_bytes(8, "little") + answer + post.wire
        carried = shuffled_by(question.exchange) is not None
        to = "proxy" if carried else "server and proxy" if post.wire else "server"
        self._commit(question, charter, done, both, len(payload) + post.nbytes, to)
        return both

    def _commit(
        self, question: Question, charter: Charter, done: Outgoing, answer: bytes, up: int, to: str = "server"
    ) -> None:
        place = question.place
        if self.store.limits().bytes_per_day is not None:
            self._may(question, charter, up)  # now that its length is known
        line = Sent(
            question.person,
            place.run,
            place.round,
            place.exchange,
            to,
            up,
            question.nbytes,
            self._claim(question, charter).to_json(),
            int(self._clock()),
            slot=question.slot,
        )
        self.store.commit(
            run=place.run, private={question.person: dict(done.private)}, sent=[line], answer=answer
        )

    def _post(self, charter: Charter) -> ProxyPost:
        if self._proxy is None:
            raise Declined(No.NO_PROXY)
        return ProxyPost(self._proxy(charter.proxy_address), charter.proxy)

    def _sum_begun(self, question: Question, charter: Charter) -> bytes:
        self._may(question, charter)
        done = self._worked(question, charter)
        place = question.place
        summed = [
            line.round
            for line in self.store.sent(question.person, place.run)
            if line.exchange == place.exchange
        ]
        part = SumPart.begun(question, done, max(summed, default=FIRST - 1))
        # From here on this round is spent: a crash before the sum is over leaves it unanswered.
        self._commit(question, charter, done, b"", part.nbytes)
        return self._sums.begin(part)


def _both(kept: bytes) -> tuple[bytes, bytes]:
    """The answer to the server, and what goes to the proxy (nothing, mostly)."""
    length = int.from_bytes(kept[:8], "little")
    return kept[8 : 8 + length], kept[8 + length :]


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
