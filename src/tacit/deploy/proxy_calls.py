"""What the server and the devices say to the proxy; ``send`` carries a frame there and its answer back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tacit.deploy.receptions import Batch
from tacit.deploy.wire import Frame, Kind, Place, Reason, Refused, framed, unframed

Send = Callable[[bytes], bytes]


class ProxyLost(Exception):
    """The proxy cannot be reached now; every call may be made again."""


def _asked(send: Send, wire: bytes, expected: Kind, proxy: bytes) -> Frame:
    frame = unframed(send(wire), 1 << 31)
    if not frame.signed_by(proxy):
        raise Refused(Reason.UNSIGNED, "the answer is not the proxy's")
    if frame.kind is Kind.REFUSAL:
        name = frame.head.get("no")
        known = {reason.value: reason for reason in Reason}
        raise Refused(known.get(str(name), Reason.MALFORMED), f"by the proxy ({name})")
    if frame.kind is not expected:
        raise Refused(Reason.OUT_OF_TURN, "the proxy answered something else")
    return frame


@dataclass(frozen=True)
class ProxyLink:
    """The server's side. Each call may be repeated: the proxy answers the same."""

    send: Send
    identity: bytes
    proxy: bytes

    def open(
        self,
        place: Place,
        people: Mapping[int, bytes],
        invited: Sequence[int],
        size: int,
        each: int,
        crowd: int,
        most: int,
    ) -> None:
        """An exchange begins: who writes and reads, how long a report is, how many stand behind a batch.

        A device's message has at most ``most`` bytes.
        """
        head = {
            **place.head(),
            "people": {str(slot): identity.hex() for slot, identity in people.items()},
            "invited": list(invited),
            "size": size,
            "each": each,
            "crowd": crowd,
            "most": most,
        }
        _asked(self.send, framed(Kind.OPEN, head, [], self.identity), Kind.KEPT, self.proxy)

    def collect(self, place: Place) -> Batch:
        """Nobody else will answer: the batch, and counts of letters."""
        found = _asked(
            self.send, framed(Kind.COLLECT, place.head(), [], self.identity), Kind.BATCH, self.proxy
        )
        size, raw = found.read("size", int), found.parts[0]
        reports = tuple(raw[at : at + size] for at in range(0, len(raw), size)) if size else ()
        return Batch(
            people=found.read("people", int),
            reports=reports,
            letters=found.read("letters", int),
            letter_bytes=found.read("letter_bytes", int),
            read=found.read("read", int),
            refused=found.read("refused", dict),
        )

    def forget(self, place: Place) -> None:
        """The round is over and journaled."""
        _asked(self.send, framed(Kind.FORGET, place.head(), [], self.identity), Kind.KEPT, self.proxy)


@dataclass(frozen=True)
class ProxyPost:
    """A device's side."""

    send: Send
    proxy: bytes

    def post(self, wire: bytes) -> None:
        """Hand in what was sealed."""
        _asked(self.send, wire, Kind.KEPT, self.proxy)

    def letters(self, place: Place, slot: int, identity: bytes) -> tuple[bytes, ...]:
        """The sealed letters for this person."""
        wire = framed(Kind.FETCH, {**place.head(), "slot": slot}, [], identity)
        return _asked(self.send, wire, Kind.LETTERS, self.proxy).parts
