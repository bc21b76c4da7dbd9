"""Who is there: devices' cards become slots. A slot is somebody's for the whole federation."""

import itertools
import json

from tacit.deploy.cards import Card, Person
from tacit.deploy.identity import fingerprint
from tacit.deploy.journal import Device, Journal
from tacit.deploy.wire import Reason, Refused


def enrolled(journal: Journal, card: Card, most: int, node: str = "") -> tuple[int, ...]:
    """Write everybody on a card into the journal, among at most so many people; their slots."""
    owner = fingerprint(card.device)
    _refuse_unwanted(journal, owner)
    known = {device.identity: device for device in journal.devices().values()}
    taken = {device.slot for device in known.values()}
    closed, slots = journal.casting() is not None, []
    for person in card.people:
        before = known.get(person.identity)
        if before is not None and before.revoked:
            raise Refused(Reason.REVOKED)
        if before is not None and (before.owner, before.letters) != (owner, person.letters):
            raise Refused(Reason.DUPLICATE, "somebody of that key is there, from elsewhere")
        if before is None and (closed or len(taken) >= most):
            raise Refused(Reason.LATE, "the federation is complete")
        slot = before.slot if before is not None else _free(person, taken, most)
        device = Device(slot, person.identity, person.letters, node, owner)
        journal.enrol(device)
        known[person.identity] = device
        taken.add(slot)
        slots.append(slot)
    return tuple(slots)


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
