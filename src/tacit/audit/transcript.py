"""What one observer saw of a replayed run, and nothing else of it.

A recording looks where a transport hands deliveries to the server and where clients read their letters.
Single messages are encoded and decoded as they would cross a wire, so that nothing of a simulation's own
layout (rated rows before fillers, rows known by their factors) reaches an attack. Of a secure sum only the
sum is kept; shuffled reports have no sender, and no attack here reads them.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.audit.reconstruction import Gradient, Upload
from tacit.errors import TacitError
from tacit.kernels.packed import unpacked
from tacit.kernels.rows import add_rows_grid, add_values_grid
from tacit.local.work import Inbox
from tacit.protect.pseudo_items import Fillers
from tacit.rng import Keyed, Keys
from tacit.round import Exchange, ServerState, broadcast_of
from tacit.transport.transport import Messages
from tacit.types import Array, Arrays, Delivers, Floats, Index, RankOne, RoundFacts, Rows

MOST_NUMBERS = 1 << 26
"""Numbers of uploads kept at most; supports are kept for everybody recorded."""


@dataclass(frozen=True)
class Dated:
    """An upload and the round it was sent in."""

    round: int
    upload: Upload


@dataclass(frozen=True)
class Letter:
    """A letter as its recipient finds it: no sender."""

    to: int
    round: int
    upload: Upload


@dataclass(frozen=True)
class Summed:
    """All that a secure sum shows: for each item the sum of rows, and how many people stand behind it."""

    round: int
    rows: Floats
    counts: Floats
    table: Floats


@dataclass
class Transcript:
    """What was seen: by person where the server knows the sender, by round where it sees sums."""

    uploads: dict[int, list[Dated]] = field(default_factory=dict)
    supports: dict[int, list[Index]] = field(default_factory=dict)
    bits: dict[int, list[Array]] = field(default_factory=dict)
    sums: list[Summed] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)


def gradient_of(exchange: Exchange) -> Gradient | None:
    """The public form of an exchange's rows, where it is that of a squared error's gradient."""
    form = exchange.local.row_form
    if form is None:
        return None
    mixed = any(isinstance(stage, Fillers) for stage in exchange.protections.stages)
    return Gradient(form.reg, form.gain, mixed)


@dataclass
class _OpenSum:
    """A sum that is being added up out of sight."""

    exchange: Exchange
    state: ServerState
    arrays: dict[str, Array] = field(default_factory=dict)


class Recording:
    """Listens to a simulation for some people; ``letter_rounds`` are those whose letters are kept.

    Each person's last two uploads are kept with their rows; of earlier ones, which items they named.
    """

    def __init__(self, people: Index, letter_rounds: frozenset[int]) -> None:
        self._people = frozenset(people.tolist())
        self._letter_rounds = letter_rounds
        self._seen = Transcript()
        self._open: dict[tuple[int, str], _OpenSum] = {}
        self._numbers = 0

    def transcript(self) -> Transcript:
        """What was seen so far, with the sums opened."""
        opened = [_opened(found) for found in self._open.values()]
        return replace(self._seen, sums=[found for found in opened if found is not None])

    def delivered(self, exchange: Exchange, state: ServerState, delivery: Messages) -> None:
        """What the transport hands to the server."""
        kind = exchange.transport.delivers
        if kind is Delivers.SUM:
            found = self._open.setdefault((state.round, exchange.name), _OpenSum(exchange, state))
            _add_up(found, delivery.arrays)
        elif kind is Delivers.REPORTS:
            self._report(exchange, state, delivery)

    def read(self, exchange: Exchange, state: ServerState, users: Index, inbox: Inbox) -> None:
        """The letters that some clients find in their inboxes."""
        if state.round not in self._letter_rounds:
            return
        table = _table(exchange, state)
        if table is None:
            return
        for place, user in enumerate(users.tolist()):
            for member in inbox.members[inbox.offsets[place] : inbox.offsets[place + 1]].tolist():
                rows = _as_decoded({"rows": inbox.rows}, 0, member)["rows"]
                assert isinstance(rows, Rows)
                meant = _as_meant(exchange, state, {"rows": rows.values})["rows"]
                self._seen.letters.append(Letter(user, state.round, Upload(rows.ids, meant, table)))

    def _report(self, exchange: Exchange, state: ServerState, delivery: Messages) -> None:
        table = _table(exchange, state)
        for client, user in enumerate(delivery.users.tolist()):
            if user not in self._people or not delivery.arrays:
                continue
            arrays = unpacked(_as_decoded(delivery.arrays, max(0, state.round), client))
            if "bits" in arrays:
                self._seen.bits.setdefault(user, []).append(_dense(arrays["bits"])[0])
            if "items" in arrays and table is not None:
                self._items(exchange, state, user, arrays, table)

    def _items(
        self, exchange: Exchange, state: ServerState, user: int, arrays: Arrays, table: Floats
    ) -> None:
        found = arrays["items"]
        if isinstance(found, Rows):
            if found.counts is not None:
                return
            ids, values = found.ids, found.values
        else:
            ids, values = np.arange(found.shape[1], dtype=np.int32), found[0]
        plain: dict[str, Any] = {name: _dense(array) for name, array in arrays.items() if name != "items"}
        meant = _as_meant(exchange, state, {**plain, "items": np.asarray(values)})["items"]
        meant = meant.reshape(len(ids), -1)
        touched = ids[np.any(meant != 0, axis=1)]
        self._seen.supports.setdefault(user, []).append(_in_catalogue(touched, state))
        if gradient_of(exchange) is None or len(table) != len(state.shared["items"]):
            return
        kept = self._seen.uploads.setdefault(user, [])
        if len(kept) == 2:
            self._numbers -= kept.pop(0).upload.rows.size
        if self._numbers + meant.size <= MOST_NUMBERS:
            self._numbers += meant.size
            kept.append(Dated(state.round, Upload(ids, meant, table)))


def _as_decoded(arrays: Arrays, round: int, client: int) -> dict[str, Array | Rows]:
    """One client's message through the codec, there and back."""
    return codec.decode(codec.encode(arrays, round, client)).arrays


def _dense(array: Array | Rows) -> Array:
    return np.asarray(array.values) if isinstance(array, Rows) else array


def _table(exchange: Exchange, state: ServerState) -> Floats | None:
    """The item table that was sent out in this exchange."""
    items = broadcast_of(exchange, state).arrays.get("items")
    return None if items is None or items.ndim != 2 else items


def _in_catalogue(rows: Index, state: ServerState) -> Index:
    """The items that rows of a sub-model belong to."""
    marked = state.shared.get("selected")
    return rows if marked is None else np.flatnonzero(marked)[rows].astype(np.int32)


@dataclass(frozen=True)
class _NoCoins:
    """Keys for undoing what a protection did: whatever noise the server adds itself, it can leave out."""

    def users(self, users: Index, purpose: str, round: int | None = None) -> Keyed:
        """None."""
        raise _refused(purpose, users, round)

    def words(self, users: Index, purpose: str, round: int, width: int) -> Keyed:
        """None."""
        raise _refused(purpose, users, round, width)

    def kept_words(self, users: Index, purpose: str, width: int) -> Keyed:
        """None."""
        raise _refused(purpose, users, width)

    def generator(self, purpose: str, round: int | None = None) -> np.random.Generator:
        """None."""
        raise _refused(purpose, round)


def _refused(purpose: str, *asked: object) -> TacitError:
    return TacitError(f"an observer draws nothing ({purpose}, {asked})", "it only undoes what it can")


def _as_meant(exchange: Exchange, state: ServerState, arrays: dict[str, Any]) -> dict[str, Any]:
    """Steps back to numbers, rotations turned back: the server's half of each protection, last first."""
    keys: Keys = _NoCoins()
    facts = RoundFacts(state.round, exchange.name, 1, 1, 1)
    chain = exchange.protections
    stages = list(zip(chain.stages, state.protections[exchange.name], chain.bounds(), strict=False))
    for stage, own, bound in reversed(stages):
        try:
            arrays = dict(stage.on_server(arrays, bound, own, facts, keys)[0])
        except TacitError:
            continue
    return arrays


def _add_up(found: _OpenSum, arrays: Arrays) -> None:
    """Add a delivery to a sum, in whole numbers."""
    sizes = broadcast_of(found.exchange, found.state).arrays
    for name, array in unpacked(arrays).items():
        if not isinstance(array, Rows):
            part = array.sum(axis=0)
            found.arrays[name] = found.arrays[name] + part if name in found.arrays else part
            continue
        height, width = sizes[name].shape
        if name not in found.arrays:
            total = np.zeros((height, width), dtype=np.int64)
            found.arrays |= {name: total, f"{name}.count": np.zeros(height, dtype=np.int64)}
        total, counts = found.arrays[name], found.arrays[f"{name}.count"]
        if isinstance(array.values, RankOne):
            add_rows_grid(total, counts, array, bits=array.values.grid)
        else:
            add_values_grid(total, counts, array)


def _opened(found: _OpenSum) -> Summed | None:
    table = _table(found.exchange, found.state)
    whole = {"items", "items.count"} <= found.arrays.keys()
    if table is None or not whole or gradient_of(found.exchange) is None:
        return None
    meant = _as_meant(found.exchange, found.state, dict(found.arrays))
    return Summed(found.state.round, meant["items"], meant["items.count"], table)
