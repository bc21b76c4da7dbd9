"""A whole federation in one process: chunks of clients through the same code a device runs.

A chunk's rows are made, protected, counted and summed before the next chunk's exist in full, so memory
grows with a chunk, never with clients times items. Threads compute chunks ahead; the server takes them
in order, so the result does not depend on how many there are.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data.interactions import Features
from tacit.federation.federation import Casting, Federation, put_back, taken
from tacit.ledger.record import ExchangeRecord, Traffic
from tacit.rng import Keys
from tacit.round import (
    Exchange,
    Method,
    Onlooker,
    OpenExchange,
    Outgoing,
    ServerState,
    Surroundings,
    client_side,
    first_state,
    server_side,
)
from tacit.runtime.post import PostOffice
from tacit.types import Array, Index


@dataclass(frozen=True)
class Execution:
    """What changes only speed and memory, never a number."""

    threads: int = 1
    device: str = "cpu"
    pairs_per_chunk: int = 1 << 18
    entries_per_chunk: int = 1 << 22


@dataclass
class World:
    """A simulated federation: everybody's data and private state, and the server's."""

    method: Method
    federation: Federation
    keys: Keys
    casting: Casting
    private: dict[str, Array]
    server: ServerState
    execution: Execution = Execution()
    onlooker: Onlooker | None = None


def new_world(
    method: Method,
    federation: Federation,
    keys: Keys,
    execution: Execution | None = None,
    delta: float = 1e-6,
) -> World:
    """A federation before its first round, with the method as it runs there."""
    execution = execution or Execution()
    method = method.settled(surroundings(federation, delta, execution.device))
    everybody = np.arange(len(federation), dtype=np.int32)
    return World(
        method=method,
        federation=federation,
        keys=keys,
        casting=method.casting(federation.people, keys),
        private=method.model.private(everybody, keys),
        server=first_state(method, federation.catalogue, keys),
        execution=execution,
    )


def surroundings(federation: Federation, delta: float, device: str = "cpu") -> Surroundings:
    """What is public about a federation; of people's own features only names and labels are."""
    theirs = federation.user_features
    return Surroundings(
        people=len(federation.people),
        catalogue=federation.catalogue,
        items=federation.item_features,
        about_people=Features(
            categories=dict.fromkeys(theirs.categories, _NOBODY),
            flags=dict.fromkeys(theirs.flags, _NOBODY.astype(np.uint8)),
            numbers=dict.fromkeys(theirs.numbers, _NOBODY.astype(np.float32)),
            labels=theirs.labels,
        ),
        delta=delta,
        device=device,
    )


_NOBODY = np.zeros(0, dtype=np.int32)


def set_up(world: World) -> list[ExchangeRecord]:
    """The exchanges before the first round; they count as round ``-1`` in the ledgers."""
    if not world.method.setup:
        return []
    before = replace(world.server, round=-1)
    records, tallies = _exchanges(world, world.method.setup, before)
    partial = replace(world.method, exchanges=world.method.setup)
    world.server = replace(server_side(partial, before, tallies, records, world.keys), round=0)
    return records


def one_round(world: World) -> list[ExchangeRecord]:
    """One round of the method; the world moves on."""
    records, tallies = collected(world)
    step(world, records, tallies)
    return records


def collected(world: World) -> tuple[list[ExchangeRecord], dict[str, Any]]:
    """What a round's exchanges brought; from here on the server has seen it, whatever comes of it."""
    return _exchanges(world, world.method.exchanges, world.server)


def step(world: World, records: list[ExchangeRecord], tallies: dict[str, Any]) -> None:
    """The server's step on it; refused where it would break the model, which then stays as it was."""
    world.server = server_side(world.method, world.server, tallies, records, world.keys)


def _exchanges(
    world: World, exchanges: tuple[Exchange, ...], state: ServerState
) -> tuple[list[ExchangeRecord], dict[str, Any]]:
    tallies: dict[str, Any] = {}
    post = PostOffice()
    records = []
    for exchange in exchanges:
        opened = _run(world, exchange, state, tallies.get(exchange.into), post)
        tallies[exchange.into] = opened.tally
        records.append(opened.close())
    return records, tallies


def _run(world: World, exchange: Exchange, state: ServerState, tally: Any, post: PostOffice) -> OpenExchange:
    people = world.casting.parts[exchange.part]
    asked = exchange.sampling.draw(people, state.round, world.keys)
    opened = OpenExchange(
        exchange,
        state,
        invited=len(asked),
        population=len(people),
        keys=world.keys,
        tally=tally,
        onlooker=world.onlooker,
    )
    received = exchange.local.prepared(opened.received)
    states = state.protections[exchange.name]
    if exchange.reads_letters:
        post.sort()

    def work(users: Index) -> tuple[Index, Traffic, Outgoing]:
        cohort = world.federation.cohort(users)
        if world.casting.peer is not None:
            cohort = replace(cohort, extras={**cohort.extras, "peer": world.casting.peer[users]})
        inbox, read = post.read(users) if exchange.reads_letters else (None, Traffic())
        if world.onlooker is not None and inbox is not None:
            world.onlooker.read(exchange, state, users, inbox)
        mine = taken(world.private, users)
        return users, read, client_side(exchange, states, received, mine, cohort, inbox, world.keys)

    chunks = world.federation.chunks(asked, world.execution.pairs_per_chunk)
    if exchange.protections.dense or exchange.local.dense:
        each = max(1, sum(array.size for array in opened.received.arrays.values()))
        chunks = _cut(chunks, max(1, world.execution.entries_per_chunk // each))
    for users, read, done in _in_order(work, chunks, world.execution.threads):
        put_back(world.private, users, done.private)
        opened.receive(done.messages)
        written = Traffic() if done.letters is None else post.add(done.letters, done.letter_bytes)
        opened.note(read + written, done.diagnostics)
    return opened


def _cut(chunks: list[Index], most: int) -> list[Index]:
    """Chunks of at most so many clients: where each sends whole tables, few fit in the memory at once."""
    return [part[low : low + most] for part in chunks for low in range(0, len(part), most)]


def _in_order(work: Callable[[Index], Any], chunks: list[Index], threads: int) -> Iterator[Any]:
    """Results in the chunks' order, at most ``threads`` of them under way."""
    if threads <= 1 or len(chunks) <= 1:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Any]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(work, chunk))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def private_of(world: World, users: Index) -> Mapping[str, Array]:
    """The private arrays of some people (a simulation may look; a server may not)."""
    return taken(world.private, users)
