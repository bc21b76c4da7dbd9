"""What the server's end makes of answers: checked against what an honest one looks like, then added up.

Nothing here does input or output, and nothing keeps what a single device sent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tacit import codec
from tacit.account.claim import Claim
from tacit.deploy.charter import Charter
from tacit.deploy.wire import Reason, Refused
from tacit.errors import TacitError
from tacit.federation.federation import Casting
from tacit.kernels.packed import unpacked
from tacit.ledger.record import Traffic
from tacit.local.work import Inbox
from tacit.rng import Keys, SeededKeys
from tacit.round import Exchange, ServerState, broadcast_of, client_side
from tacit.transport.transport import Messages, ServerSession, Transport
from tacit.types import Array, Arrays, Cohort, Delivers, Long, RoundFacts, Rows


@dataclass(frozen=True)
class _Handed(ServerSession):
    counts: bool

    def carried(self, messages: Messages) -> Traffic:
        """What crossed for one sum is counted by who ran it."""
        return super().carried(messages) if self.counts else Traffic()

    def receive(self, messages: Messages) -> Iterable[Messages]:
        yield messages

    def close(self) -> Iterable[Messages]:
        return ()


@dataclass(frozen=True)
class Arrived(Transport):
    """What was carried over a network already: delivers and claims what ``inner`` does."""

    inner: Transport
    delivers: ClassVar[Delivers] = Delivers.REPORTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "delivers", self.inner.delivers)

    def server_session(self, facts: RoundFacts, keys: Keys) -> ServerSession:
        """What arrives is handed on."""
        del facts, keys
        return _Handed(self.delivers is not Delivers.SUM)

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """What the real way is worth."""
        return self.inner.event(claim, facts)


def over_network(exchange: Exchange) -> Exchange:
    """The exchange as both ends of a deployment run it: carrying happens between devices, not inside."""
    return replace(exchange, transport=Arrived(exchange.transport))


def sample_person(charter: Charter) -> Cohort:
    """Somebody made up, to see what an honest answer looks like."""
    few = min(4, len(charter.about.items))
    items = np.arange(few, dtype=np.int32)
    middle = 1.0 if charter.about.scale is None else (charter.about.scale.low + charter.about.scale.high) / 2
    told = charter.about.about_people
    about: dict[str, Array] = {
        f"about/{name}": np.zeros(1, dtype=column.dtype)
        if column.ndim == 1
        else np.zeros((1, len(told.labels.get(name, ())) or column.shape[1]), dtype=column.dtype)
        for kind in (told.categories, told.numbers, told.flags)
        for name, column in kind.items()
    }
    values = np.full(few, middle, dtype=np.float32)
    nobody = np.zeros(1, dtype=np.int32)
    return Cohort(nobody, np.array([0, few]), items, values, len(charter.about.items), extras=about)


@dataclass(frozen=True)
class Pattern:
    """What an honest answer looks like: names, kinds, types and shapes; rows may differ in number.

    ``heights`` are the heights of tables whose rows may be sent.
    """

    arrays: Arrays
    heights: Mapping[str, int]
    most: int

    @classmethod
    def of(cls, charter: Charter, exchange: Exchange, state: ServerState, casting: Casting) -> "Pattern":
        """By running the device's half on somebody made up, with keys that nobody uses."""
        keys, cohort = SeededKeys(0), sample_person(charter)
        received = exchange.local.prepared(broadcast_of(exchange, state))
        if casting.peer is not None:
            cohort = replace(cohort, extras={**cohort.extras, "peer": np.full(1, -1, dtype=np.int32)})
        private = charter.method.model.private(cohort.users, keys)
        inbox = empty_inbox(exchange, received.arrays) if exchange.reads_letters else None
        states = state.protections[exchange.name]
        done = client_side(over_network(exchange), states, received, private, cohort, inbox, keys)
        heights = {name: len(array) for name, array in state.shared.items() if array.ndim}
        heights |= {name: len(array) for name, array in received.arrays.items() if array.ndim}
        arrays = done.messages.arrays
        known = codec.decode(codec.encode(arrays, max(0, state.round))).arrays if arrays else {}
        whole = sum(array.nbytes for array in state.shared.values())
        return cls(known, heights, (1 << 20) + 4 * int(done.messages.nbytes.sum()) + 8 * whole)

    def fits(self, payload: bytes, round: int) -> dict[str, Array | Rows]:
        """The arrays of an answer; refused by name if no honest device could have sent them."""
        if len(payload) > self.most:
            raise Refused(Reason.OVERSIZED, f"{len(payload)} bytes where at most {self.most} are expected")
        if not payload and not self.arrays:
            return {}
        try:
            message = codec.decode(payload)
        except TacitError as error:
            raise Refused(Reason.DAMAGED, error.problem) from error
        if message.round != max(0, round):
            raise Refused(Reason.REPLAYED, f"an update of round {message.round}")
        if list(message.arrays) != list(self.arrays):
            raise Refused(Reason.WRONG_SHAPE, "other arrays than the method's")
        for name, array in message.arrays.items():
            self._like(name, array, self.arrays[name])
        return message.arrays

    def _like(self, name: str, array: Array | Rows, known: Array | Rows) -> None:
        if isinstance(array, Rows) != isinstance(known, Rows):
            raise Refused(Reason.WRONG_SHAPE, f"{name!r} is of another kind")
        values: Any = array.values if isinstance(array, Rows) else array
        honest: Any = known.values if isinstance(known, Rows) else known
        if values.dtype != honest.dtype or values.shape[1:] != honest.shape[1:]:
            raise Refused(Reason.WRONG_SHAPE, f"{name!r} is {values.dtype} {values.shape[1:]}")
        if isinstance(array, Rows) and isinstance(known, Rows):
            self._rows_fit(name, array, known)
        elif values.shape != honest.shape:
            raise Refused(Reason.WRONG_SHAPE, f"{name!r} is {values.shape}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise Refused(Reason.NOT_FINITE, f"{name!r} holds what is not a number")

    def _rows_fit(self, name: str, rows: Rows, known: Rows) -> None:
        height = self.heights.get(name)
        if rows.cells != known.cells or (rows.counts is None) != (known.counts is None):
            raise Refused(Reason.WRONG_SHAPE, f"{name!r} is packed otherwise")
        if height is None or not rows.total:
            return
        ids: Long = rows.ids.astype(np.int64)
        if ids.min() < 0 or ids.max() >= height * max(1, rows.cells) or (np.diff(ids) <= 0).any():
            raise Refused(Reason.WRONG_SHAPE, f"{name!r} names rows that are not there, or one twice")


def empty_inbox(exchange: Exchange, received: Mapping[str, Array]) -> Inbox:
    """No letters, about rows as wide (and as whole) as those of the table that was sent."""
    none = np.zeros(0, dtype=np.int64)
    table = next(
        (array for array in received.values() if array.ndim == 2), np.zeros((0, 1), dtype=np.float32)
    )
    whole = exchange.protections.steps() is not None
    values = np.zeros((0, table.shape[1]), dtype=np.int64 if whole else table.dtype)
    return Inbox(np.zeros(2, dtype=np.int64), none, Rows(none, none, none.astype(np.int32), values))


def as_messages(slot: int, arrays: Arrays, payload: bytes) -> Messages:
    """One device's answer as the round takes it."""
    users = np.array([slot], dtype=np.int32)
    inside = codec.parts(arrays, 1)
    return Messages(users, arrays, np.array([len(payload)], dtype=np.int64), inside)


def tried(exchange: Exchange, state: ServerState, arrays: Arrays) -> None:
    """Refuse what the aggregation cannot take, before it touches the sum."""
    aggregator = exchange.aggregator
    try:
        aggregator.add(aggregator.start(state.shared), unpacked(arrays))
    except (TacitError, ValueError, IndexError, KeyError, AssertionError, TypeError) as error:
        raise Refused(Reason.WRONG_SHAPE, "the aggregation cannot take it") from error
