"""What one observer saw of a replayed run, and nothing else of it.

A recording looks where a transport hands deliveries to the server and where clients read their letters.
Single messages are encoded and decoded as they would cross a wire, so that nothing of a simulation's own
layout (rated rows before fillers, rows known by their factors) reaches an attack. Of a secure sum only the
sum is kept; shuffled reports have no sender, and no attack here reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.audit.reconstruction import Gradient, Upload
from tacit.errors import TacitError
from tacit.kernels.packed import unpacked
from tacit.kernels.rows import add_rows_grid, add_values_grid
from tacit.local.own_bits import OwnBits
from tacit.local.presence import MetBits
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


@dataclass(frozen=True)
class Values:
    """What an upload says of some items: a row of numbers for each, from one table of the model."""

    items: Index
    rows: Floats


@dataclass(frozen=True)
class Answers:
    """Randomised answers about some items, one bit each."""

    items: Index
    bits: Array


@dataclass
class Transcript:
    """What was seen: by person where the server knows the sender, by round where it sees sums.

    ``uploads`` are rows whose form is known, ``values`` the newest upload's where it is not. ``anything``
    says whether anything was handed over at all.
    """

    uploads: dict[int, list[Dated]] = field(default_factory=dict)
    values: dict[int, list[Values]] = field(default_factory=dict)
    supports: dict[int, list[Index]] = field(default_factory=dict)
    answers: dict[int, list[Answers]] = field(default_factory=dict)
    sums: list[Summed] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    anything: bool = False


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

    Each person's last two uploads are kept with their rows (the last one, where the form of rows is not
    known); of earlier ones, which items they named.
    """

    def __init__(self, people: Index, catalogue: int, letter_rounds: frozenset[int]) -> None:
        self._people = frozenset(people.tolist())
        self._catalogue = catalogue
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
        self._seen.anything |= bool(delivery.arrays)
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
        sent = broadcast_of(exchange, state).arrays
        for client, user in enumerate(delivery.users.tolist()):
            if user not in self._people or not delivery.arrays:
                continue
            arrays = unpacked(_as_decoded(delivery.arrays, max(0, state.round), client))
            answers = _answers(exchange, arrays, sent, self._catalogue)
            if answers is not None:
                self._seen.answers.setdefault(user, []).append(answers)
                continue
            tables = self._tables(exchange, state, arrays, sent)
            if tables:
                self._items(exchange, state, user, tables)

    def _tables(
        self, exchange: Exchange, state: ServerState, arrays: Arrays, sent: Mapping[str, Array]
    ) -> dict[str, Values]:
        """Every array with a row for each item that was sent out (or for some of them), as it was meant."""
        marked = state.shared.get("selected")
        height = self._catalogue if marked is None else int(np.count_nonzero(marked))
        places: dict[str, Index] = {}
        for name, found in arrays.items():
            if name not in sent or sent[name].shape[:1] != (height,):
                continue
            if isinstance(found, Rows) and found.counts is None:
                places[name] = found.ids
            elif isinstance(found, np.ndarray) and found.shape[1:] == sent[name].shape:
                places[name] = np.arange(height, dtype=np.int32)
        if not places:
            return {}
        plain: dict[str, Any] = {
            name: array.values if isinstance(array, Rows) else array[0] for name, array in arrays.items()
        }
        meant = _as_meant(exchange, state, plain)
        return {name: Values(ids, meant[name].reshape(len(ids), -1)) for name, ids in places.items()}

    def _items(self, exchange: Exchange, state: ServerState, user: int, tables: Mapping[str, Values]) -> None:
        touched = [one.items[np.any(one.rows != 0, axis=1)] for one in tables.values()]
        named = _in_catalogue(np.unique(np.concatenate(touched)), state)
        self._seen.supports.setdefault(user, []).append(named)
        if gradient_of(exchange) is None:
            told = [Values(_in_catalogue(one.items, state), one.rows) for one in tables.values()]
            self._numbers -= sum(one.rows.size for one in self._seen.values.pop(user, []))
            if self._fits(sum(one.rows.size for one in told)):
                self._seen.values[user] = told
            return
        table = _table(exchange, state)
        if table is None or "items" not in tables or len(table) != len(state.shared["items"]):
            return
        kept = self._seen.uploads.setdefault(user, [])
        if len(kept) == 2:
            self._numbers -= kept.pop(0).upload.rows.size
        items = tables["items"]
        if self._fits(items.rows.size):
            kept.append(Dated(state.round, Upload(items.items, items.rows, table)))

    def _fits(self, numbers: int) -> bool:
        """Whether so many more can be kept; if so, they count."""
        fits = self._numbers + numbers <= MOST_NUMBERS
        self._numbers += numbers if fits else 0
        return fits


def _answers(exchange: Exchange, arrays: Arrays, sent: Mapping[str, Array], catalogue: int) -> Answers | None:
    """One bit per item asked about, where that is what the exchange collects."""
    local, told = exchange.local, {name: _dense(array)[0] for name, array in arrays.items()}
    everything = np.arange(catalogue, dtype=np.int32)
    if isinstance(local, OwnBits):
        return Answers(everything, np.unpackbits(told["bits"], count=catalogue))
    if not isinstance(local, MetBits):
        return None
    items = sent.get(local.chosen, everything)
    if "reports" not in told:
        return Answers(items, told["bits"])
    octets = np.ascontiguousarray(told["reports"], dtype="<u4").view(np.uint8).ravel()
    return Answers(items, np.unpackbits(octets, count=len(items), bitorder="little"))


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
