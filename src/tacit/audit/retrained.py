"""A run once more with a fair coin for each of some people: in as they are, or left out of every round.

What left out means depends on who adds the noise, see ``left_out``. Canaries stay, with a random direction of
full length in place of their own update. Everything else is the run itself, through the same code, and what
the accountant says of it is taken from its own records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Observer
from tacit.account.events import Event, NonPrivate
from tacit.audit.canaries import Canaries, Noted
from tacit.audit.evidence import Skipped
from tacit.audit.left_out import left_out
from tacit.audit.one_run import Curve, Flags
from tacit.kernels.rows import materialise
from tacit.ledger.privacy import Guarantee, PrivacyLedger
from tacit.local.work import Broadcast
from tacit.rng import SeededKeys, normals
from tacit.round import Method
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import World, new_world, one_round, set_up
from tacit.types import Array, Arrays, Floats, Index, RankOne, Rows

MOST_PEOPLE = 1000
MOST_NUMBERS = 1 << 25
DELTAS = (1e-3, 0.05)


@dataclass
class Retrained:
    """The coins, what was released, and what the run's own records claim."""

    people: Index
    there: Flags
    rounds: int
    guarantees: tuple[Guarantee, ...]
    curve: Curve
    scores: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def claimed(self) -> Guarantee | None:
        """The smallest epsilon claimed for anybody who sees the totals."""
        seen = [
            line
            for line in self.guarantees
            if line.observer in {Observer.RELEASE, Observer.SERVER} and line.epsilon is not None
        ]
        return min(seen, key=lambda line: line.epsilon or 0.0, default=None)


def shape_of_updates(plan: Plan, *, whole: bool = False) -> dict[str, tuple[int, ...]] | Skipped:
    """The shared arrays that a device answers with, or why its answers are no direction of the model.

    With ``whole`` an answer made of some rows will not do, unless protections write tables out.
    """
    world = _world(plan)
    if len(world.method.exchanges) != 1:
        return Skipped("a round of several exchanges: no single update says who was there")
    exchange, shared = world.method.exchanges[0], world.server.shared
    users = world.federation.people[:1]
    sent = _broadcast(world)
    parts = [name for name, array in sent.arrays.items() if array.shape != shared[name].shape]
    if parts:
        return Skipped(f"devices work on a part of {parts[0]!r} that changes from round to round")
    received, mine = exchange.local.prepared(sent), _taken(world, users)
    cohort = exchange.protections.on_cohort(world.federation.cohort(users), world.keys, 0)
    work = exchange.local.run(received, mine, cohort, None, world.keys)
    if not work.update or not set(work.update) <= set(shared):
        return Skipped("what a device sends is no direction of the shared model")
    for name, array in work.update.items():
        if isinstance(array, Rows) and whole and not exchange.protections.dense:
            return Skipped("a device names the items it sends rows for: a canary would name them all")
        dense = isinstance(array, np.ndarray)
        if dense and (array.shape[1:] != shared[name].shape or not np.issubdtype(array.dtype, np.floating)):
            return Skipped("what a device sends is no direction of the shared model")
        if isinstance(array, Rows) and array.cells:
            return Skipped("what a device sends is no direction of the shared model")
    return {name: shared[name].shape for name in work.update}


def _world(plan: Plan) -> World:
    assert isinstance(plan.method, Method)
    federation = federation_of(plan.dataset, plan.split.train)
    return new_world(plan.method, federation, SeededKeys(plan.seed), None, plan.delta)


def _broadcast(world: World) -> Broadcast:
    from tacit.round import broadcast_of

    return broadcast_of(world.method.exchanges[0], world.server)


def _taken(world: World, users: Index) -> dict[str, Array]:
    return {name: array[users] for name, array in world.private.items()}


def chosen(world: World, numbers: int, share: float) -> tuple[Index, Flags]:
    """Some people, and a fair coin for each."""
    most = min(MOST_PEOPLE, int(share * len(world.federation.people)), max(10, MOST_NUMBERS // numbers))
    people = world.keys.generator("audit/coins").permutation(world.federation.people)[:most]
    there = world.keys.generator("audit/there").random(len(people)) < 0.5
    return people.astype(np.int32), there


def retrained(
    plan: Plan,
    rounds: int,
    listener: Listener,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    canaries: bool,
) -> Retrained:
    """Train with the coins' leavers silent; score everybody from what is released.

    With ``canaries`` the score is how far the protected totals point along a canary's own direction. Without,
    it is how much of each step of the public model a person's own update explains, beside everybody else's
    (a ridge regression of the step on the updates they would have sent).
    """
    world = _world(plan)
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    people, there = chosen(world, numbers, 0.5 if canaries else 1.0)
    rounds = min(rounds, world.method.rounds)
    scores = np.zeros(len(people))
    exchange = world.method.exchanges[0]
    gone = frozenset(people[~there].tolist())
    changed = exchange
    server = world.method.server
    if canaries:
        directions = normals(SeededKeys(plan.seed + 1).users(people, "audit/directions"), numbers)
        directions = (directions / np.linalg.norm(directions, axis=1, keepdims=True)).astype(np.float32)
        place = np.full(len(world.federation), -1, dtype=np.int32)
        place[people] = np.arange(len(people))
        loud = exchange.protections.bounds()[-1] is not None
        changed = replace(changed, local=Canaries(exchange.local, place, directions, shapes, loud))

        def look(totals: Mapping[str, Mapping[str, Array]]) -> None:
            total = totals[exchange.into]
            flat = np.concatenate([np.ravel(total[name]).astype(np.float32) for name in shapes])
            scores[:] += directions @ flat

        server = Noted(server, look)
    setup = tuple(left_out(one, gone) for one in world.method.setup)
    exchanges = (left_out(changed, gone),)
    world.method = replace(world.method, setup=setup, exchanges=exchanges, server=server)
    attacker = None if canaries else _Observed(plan, people, shapes)
    ledger = PrivacyLedger(plan.delta, world.method.mode)
    listener.stage("retraining", rounds)
    for record in set_up(world):
        ledger.add(record.claim)
    while world.server.round < rounds:
        before = dict(world.server.shared)
        told = None if attacker is None else attacker.updates(world)
        for record in one_round(world):
            ledger.add(record.claim)
        if attacker is not None and told is not None:
            scores += attacker.explained(told, before, world.server.shared)
        listener.step(world.server.round, {})
    return Retrained(people, there, rounds, ledger.guarantees(), curve_of(ledger, plan.delta), scores)


class _Observed:
    """Another client: it has every public model, knows some people's histories, and asks who took part.

    Private state is guessed as theirs would have become had they answered every time, with keys of its own.
    """

    def __init__(self, plan: Plan, people: Index, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._twin = _world(plan)
        self._people, self._shapes = people, shapes
        self._keys = SeededKeys(plan.seed + 1)
        self._sign = 0.0

    def updates(self, world: World) -> Floats:
        """What each would send for the model as it stands, one row of numbers per person."""
        exchange = self._twin.method.exchanges[0]
        received = exchange.local.prepared(_broadcast(world))
        size = sum(int(np.prod(shape)) for shape in self._shapes.values())
        told = np.zeros((len(self._people), size), dtype=np.float32)
        order = np.argsort(self._people)
        for part in np.array_split(order, max(1, len(order) // 64)):
            users = self._people[part]
            work = exchange.local.run(
                received, _taken(self._twin, users), self._twin.federation.cohort(users), None, self._keys
            )
            for name, array in work.private.items():
                self._twin.private[name][users] = array
            told[part] = flattened(work.update, self._shapes)
        return told

    def explained(self, told: Floats, before: Mapping[str, Array], after: Mapping[str, Array]) -> Floats:
        """The weight of each person's update in the model's step, in units of their spread."""
        step = np.concatenate(
            [np.ravel(after[name] - before[name]).astype(np.float32) for name in self._shapes]
        )
        lengths = np.linalg.norm(told, axis=1)
        usable = lengths > 0
        found = np.zeros(len(told))
        if usable.sum() < 2 or not np.isfinite(step).all():
            return found
        own = told[usable] / lengths[usable, np.newaxis]
        alike = (own @ own.T).astype(np.float64)
        seen = (own @ step).astype(np.float64)
        ridge = 1e-2 * np.eye(len(alike))
        weights = np.linalg.solve(alike + ridge, seen)
        # The server steps along updates or against them (gradients): which, the first step shows for all.
        self._sign = self._sign or float(np.sign(seen.sum()) or 1.0)
        spread = float(weights.std())
        found[usable] = self._sign * weights / spread if spread > 0 else 0.0
        return found


def flattened(update: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> Floats:
    """Everybody's update as one row of numbers each; rows that were not sent are zero."""
    parts = []
    for name, shape in shapes.items():
        array = update[name]
        if isinstance(array, np.ndarray):
            parts.append(array.reshape(len(array), -1).astype(np.float32))
            continue
        values: Any = materialise(array) if isinstance(array.values, RankOne) else array.values
        whole = np.zeros((array.clients, *shape), dtype=np.float32)
        for client in range(array.clients):
            span = slice(int(array.starts[client]), int(array.starts[client] + array.lengths[client]))
            whole[client, array.ids[span]] = values[span]
        parts.append(whole.reshape(array.clients, -1))
    return np.concatenate(parts, axis=1)


def curve_of(ledger: PrivacyLedger, delta: float) -> Curve:
    """What the accountant allows whoever is given the model, at several deltas (none: nothing proved)."""
    events: list[Event] = []
    adjacency = Adjacency.ADD_REMOVE
    for claim, times in ledger.claims:
        event = claim.event(Observer.RELEASE)
        if isinstance(event, NonPrivate):
            return Curve(())
        events += [event] * times
        adjacency = claim.adjacency
    found = []
    for at in dict.fromkeys((delta, *DELTAS)):
        value = epsilon(events, at, adjacency).value
        if np.isfinite(value):
            found.append((value, at))
    return Curve(tuple(found))
