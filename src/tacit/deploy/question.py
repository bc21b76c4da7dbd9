"""An invitation as a device reads it, and the name under which it may be declined."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit import codec
from tacit.deploy.cards import PersonKeys
from tacit.deploy.charter import Charter, digest
from tacit.deploy.receptions import carried_by_sum
from tacit.deploy.wire import KEY_BYTES, Frame, No, Place
from tacit.round import Exchange
from tacit.types import Array, RoundFacts


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


def question_in(frame: Frame, charter: Charter, person: str, keys: PersonKeys, nbytes: int) -> Question:
    """The question in a frame of so many bytes; declined where it is none, or not one of this federation's.

    Whatever the charter says, the device believes that and not the question: which rounds and exchanges there
    are, how many people, hence which slots.
    """
    place = Place.of(frame)
    if place.leg or len(frame.parts) != 4:
        raise Declined(No.UNREADABLE)
    exchange = next((one for one in charter.asked(place.round) if one.name == place.exchange), None)
    slot, invited, people = (frame.read(name, int) for name in ("slot", "invited", "population"))
    most = charter.about.people
    if exchange is None or people != most or not (0 <= slot < most and 1 <= invited <= most):
        raise Declined(No.CHARTER)
    broadcast, states, to, listed = frame.parts
    if digest(broadcast) != frame.read("model", str):
        raise Declined(No.FOREIGN_MODEL)
    directory = _directory(listed, most) if carried_by_sum(exchange) is not None else {}
    if directory and directory[slot] != keys.public:
        raise Declined(No.CHARTER)
    told = tuple(json.loads(states))
    return Question(place, slot, person, keys, exchange, broadcast, told, to, directory, frame.head, nbytes)


def _directory(listed: bytes, people: int) -> Mapping[int, bytes]:
    """Everybody's public identity: as many as the charter counts, nobody twice."""
    found = {at: listed[at * KEY_BYTES : (at + 1) * KEY_BYTES] for at in range(people)}
    if len(listed) != people * KEY_BYTES or len(set(found.values())) != people:
        raise Declined(No.CHARTER)
    return found


def arrays_in(broadcast: bytes) -> dict[str, Array]:
    """The whole arrays of a message that is the same for everybody."""
    found = codec.decode_broadcast(broadcast).arrays
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}
