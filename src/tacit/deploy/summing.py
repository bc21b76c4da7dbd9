"""A device's part in secure sums: one client of the protocol per person and exchange, leg by leg.

It lives in memory alone. What was spent is written down before the first message leaves, so a restart is a
drop-out, and a round is never summed twice: two sums of one round could be subtracted.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tacit.deploy.charter import digest
from tacit.deploy.question import Declined, Question
from tacit.deploy.receptions import carried_by_sum, terms_of
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import Frame, Kind, No, Place, framed
from tacit.errors import TacitError
from tacit.round import Outgoing
from tacit.transport.secure_sum.client import Client
from tacit.transport.secure_sum.layout import Layout
from tacit.transport.secure_sum.plan import plan_for
from tacit.transport.secure_sum.terms import Terms

_SMALL_LEGS = 5 * 16  # what the legs say beside the masked vector, roughly


@dataclass
class SumPart:
    """One person's part in one sum, and the answer given in each leg."""

    question: Question
    client: Client
    terms: Terms
    told: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def begun(cls, question: Question, done: Outgoing, newest: int) -> "SumPart":
        """The protocol's client for what this person has to add; ``newest`` is the last round so summed."""
        carrier = carried_by_sum(question.exchange)
        assert carrier is not None
        assert carrier.steps is not None
        facts, arrays = question.facts, done.messages.arrays
        layout = Layout.of(arrays, facts)
        sent = question.broadcast, question.states
        terms = terms_of(question.exchange, question.place.run, facts, sent, layout)
        vector = layout.vector(arrays, 0, terms.ring)
        person = question.keys.identity
        client = Client(terms, question.slot, person, question.people, vector, last_round=newest + 1)
        if plan_for(terms.invited, terms.rates).honest < carrier.steps.honest:
            raise Declined(No.SUM_ABORTED)  # noise in shares counts on more honest people than need answer
        return cls(question, client, terms)

    @property
    def nbytes(self) -> int:
        """What this person will send in all legs, roughly: the device's ledger is written beforehand."""
        return _SMALL_LEGS + self.terms.nbytes

    def first(self) -> bytes:
        """The answer to the invitation."""
        return self._told(0, self.client.start())

    def leg(self, place: Place, parts: tuple[bytes, ...]) -> bytes:
        """The answer in a later leg; the same question is answered with the same bytes."""
        if replace(self.question.place, leg=place.leg) != place or len(parts) != 1:
            raise Declined(No.OUT_OF_TURN)
        if place.leg in self.told:
            return self.told[place.leg]
        if place.leg != len(self.told):
            raise Declined(No.OUT_OF_TURN)
        return self._told(place.leg, self.client.receive(parts[0]))

    def _told(self, leg: int, message: bytes) -> bytes:
        question = self.question
        place, model = replace(question.place, leg=leg), digest(question.broadcast)
        head = {**place.head(), "slot": question.slot, "model": model}
        self.told[leg] = framed(Kind.ANSWER, head, [message], question.keys.identity)
        return self.told[leg]


@dataclass
class Sums:
    """The sums under way on a device."""

    store: DeviceStore
    under_way: dict[tuple[str, str], SumPart] = field(default_factory=dict)

    def repeated(self, question: Question) -> bytes | None:
        """The answer given before to the same question; ``None`` if the sum is to be begun."""
        place, person = question.place, question.person
        part = self.under_way.get((person, place.exchange))
        if part is not None and part.question.place == place and 0 in part.told:
            return part.told[0]
        try:
            before = self.store.answered(person, place.run, place.round, place.exchange)
        except TacitError as error:
            raise Declined(No.ANSWERED_BEFORE) from error
        if before is not None:
            raise Declined(No.ANSWERED_BEFORE)
        self._pin(place.run, question.people)
        return None

    def begin(self, part: SumPart) -> bytes:
        """Take part in a sum that is written down as spent."""
        self.under_way[part.question.person, part.question.place.exchange] = part
        return part.first()

    def leg(self, frame: Frame, person: str) -> bytes:
        """The answer to a later leg."""
        place = Place.of(frame)
        part = self.under_way.get((person, place.exchange))
        if part is None:
            raise Declined(No.OUT_OF_TURN)
        return part.leg(place, frame.parts)

    def _pin(self, run: str, people: Mapping[int, bytes]) -> None:
        """The first list of everybody's keys stays: nobody is added or replaced in this run any more."""
        shown = hashlib.sha256(b"".join(people[slot] for slot in sorted(people))).digest()
        kept = self.store.note(run, "directory")
        if kept is None:
            self.store.keep_note(run, "directory", shown)
        elif kept != shown:
            raise Declined(No.FOREIGN_SERVER)
