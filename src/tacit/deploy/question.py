"""An invitation as a device reads it, and the name under which it may be declined."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit import codec
from tacit.deploy.cards import PersonKeys
from tacit.deploy.charter import Charter, digest
from tacit.deploy.wire import Frame, No, Place
from tacit.round import Exchange
from tacit.types import Array, RoundFacts

_LISTED = 4 + 32  # a slot and its public identity


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
    """The question in a frame of so many bytes; declined where it is none, or about another model."""
    place = Place.of(frame)
    exchange = charter.exchanges.get(place.exchange)
    if exchange is None or len(frame.parts) != 4:
        raise Declined(No.UNREADABLE)
    broadcast, states, to, people = frame.parts
    if digest(broadcast) != frame.read("model", str):
        raise Declined(No.FOREIGN_MODEL)
    listed = {
        int.from_bytes(people[at : at + 4], "little"): people[at + 4 : at + _LISTED]
        for at in range(0, len(people), _LISTED)
    }
    slot, told = frame.read("slot", int), tuple(json.loads(states))
    return Question(place, slot, person, keys, exchange, broadcast, told, to, listed, frame.head, nbytes)


def arrays_in(broadcast: bytes) -> dict[str, Array]:
    """The whole arrays of a message that is the same for everybody."""
    found = codec.decode_broadcast(broadcast).arrays
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}
