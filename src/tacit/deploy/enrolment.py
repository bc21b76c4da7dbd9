"""Who is there: devices' cards become slots. A slot is somebody's for the whole federation."""

import itertools
import json

from tacit.deploy.cards import Card, Person
from tacit.deploy.identity import fingerprint
from tacit.deploy.journal import Device, Journal
from tacit.deploy.wire import Reason, Refused


def enrolled(journal: Journal, card: Card, most: int, node: str = "") -> tuple[int, ...]:
    """Write a card's people into the journal, among at most so many; their slots.

    A card is taken in one piece: what is wrong with one person leaves the others out as well. Where there
    is no room for all its new people, none of them is let in, and that is counted; who is in already stays.
    """
    owner, slots = fingerprint(card.device), list[int]()
    with journal.whole():
        _refuse_unwanted(journal, owner)
        known = {device.identity: device for device in journal.devices().values()}
        taken = {device.slot for device in known.values()}
        fresh = {person.identity for person in card.people} - known.keys()
        if fresh and (no := _no_room(journal, len(fresh), most - len(taken))) is not None:
            journal.count("server", no.value)
            fresh.clear()
        for person in card.people:
            before = known.get(person.identity)
            if before is None and person.identity not in fresh:
                continue
            if before is not None:
                _refuse_other(before, owner, person)
            slot = before.slot if before is not None else _free(person, taken, most)
            known[person.identity] = Device(slot, person.identity, person.letters, node, owner)
            journal.enrol(known[person.identity])
            taken.add(slot)
            slots.append(slot)
    return tuple(slots)


def _no_room(journal: Journal, fresh: int, room: int) -> Reason | None:
    """Why so many new people cannot all be let in, if they cannot."""
    if journal.casting() is not None or room <= 0:
        return Reason.LATE
    return Reason.TOO_MANY if fresh > room else None


def _refuse_other(before: Device, owner: str, person: Person) -> None:
    if before.revoked:
        raise Refused(Reason.REVOKED)
    if (before.owner, before.letters) != (owner, person.letters):
        raise Refused(Reason.DUPLICATE, "somebody of that key is there, from elsewhere")


def _refuse_unwanted(journal: Journal, owner: str) -> None:
    allowed = journal.fact("allowed")
    if owner in json.loads(journal.fact("revoked") or b"[]"):
        raise Refused(Reason.REVOKED)
    if allowed is not None and owner not in json.loads(allowed):
        raise Refused(Reason.STRANGER)


def _free(person: Person, taken: set[int], most: int) -> int:
    """The number a person wishes for, or else the first that nobody has."""
    if 0 <= person.wish < most and person.wish not in taken:
        return person.wish
    return next(number for number in itertools.count() if number not in taken)
