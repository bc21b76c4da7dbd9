"""A run once more with a fair coin for each of some people: in as they are, or left out of every round.

What left out means depends on who adds the noise, see ``left_out``. Canaries stay, with a random direction of
full length in place of their own update. Everything else is the run itself, through the same code, and what
the accountant says of it is taken from its own records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Observer
from tacit.account.events import Event, NonPrivate
from tacit.audit.canaries import Canaries, Noted
from tacit.audit.evidence import Skipped
from tacit.audit.left_out import left_out
from tacit.audit.one_run import Curve, Flags
from tacit.audit.other_client import OtherClient
from tacit.federation.federation import taken
from tacit.ledger.privacy import Guarantee, PrivacyLedger
from tacit.rng import Keys, SeededKeys, normals
from tacit.round import Method, broadcast_of
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import World, new_world, one_round, set_up
from tacit.types import Array, Floats, Index, Rows

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
    sent = broadcast_of(exchange, world.server)
    if any(array.shape != shared[name].shape for name, array in sent.arrays.items()):
        return Skipped("devices are sent a part of the model, chosen during the run")
    received, mine = exchange.local.prepared(sent), taken(world.private, users)
    cohort = exchange.protections.on_cohort(world.federation.cohort(users), world.keys, 0)
    work = exchange.local.run(received, mine, cohort, None, world.keys)
    if not work.update:
        return Skipped("nothing leaves a device")
    others = [name for name in work.update if name not in shared]
    if others:
        return Skipped(f"devices send {others[0]!r}, which is no array of the shared model")
    for name, array in work.update.items():
        if isinstance(array, Rows) and whole and not exchange.protections.dense:
            return Skipped("a device names the items it sends rows for: a canary would name them all")
        dense = isinstance(array, np.ndarray)
        if dense and (array.shape[1:] != shared[name].shape or not np.issubdtype(array.dtype, np.floating)):
            return Skipped("what a device sends is no direction of the shared model")
        if isinstance(array, Rows) and array.cells:
            return Skipped("what a device sends is no direction of the shared model")
    return {name: shared[name].shape for name in work.update}


def _world(plan: Plan, keys: Keys | None = None) -> World:
    assert isinstance(plan.method, Method)
    federation = federation_of(plan.dataset, plan.split.train)
    return new_world(plan.method, federation, keys or SeededKeys(plan.seed), None, plan.delta)


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
) -> Retrained | Skipped:
    """Train with the coins' leavers silent; score everybody from what is released.

    With ``canaries`` the score is how far the protected totals point along a canary's own direction. Without,
    it is what another client makes of each step of the released model.
    """
    world, others = _world(plan), SeededKeys(plan.seed + 1)
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    people, there = chosen(world, numbers, 0.5 if canaries else 1.0)
    if there.all() or not there.any():
        side = "out" if there.all() else "in"
        return Skipped(f"a coin for each of {len(people)} people left nobody {side}: nobody to compare with")
    scores = np.zeros(len(people))
    gone = frozenset(people[~there].tolist())
    method = _with_canaries(world, people, others, shapes, scores) if canaries else world.method
    attacker = None if canaries else OtherClient(_world(plan, others), people, shapes)
    ledger = PrivacyLedger(plan.delta, method.mode)
    rounds = min(rounds, method.rounds)
    listener.stage("retraining", rounds)
    world.method = replace(world.method, setup=tuple(left_out(one, gone) for one in method.setup))
    for record in set_up(world):
        ledger.add(record.claim)
    world.method = replace(method, exchanges=tuple(left_out(one, gone) for one in method.exchanges))
    while world.server.round < rounds:
        before = dict(world.server.shared)
        told = None if attacker is None else attacker.updates(world.server)
        for record in one_round(world):
            ledger.add(record.claim)
        if attacker is not None and told is not None:
            scores += attacker.explained(told, before, world.server.shared)
        listener.step(world.server.round, {})
    return Retrained(people, there, rounds, ledger.guarantees(), curve_of(ledger, plan.delta), scores)


def _with_canaries(
    world: World, people: Index, keys: Keys, shapes: Mapping[str, tuple[int, ...]], scores: Floats
) -> Method:
    """The method with directions of their own in place of these people's updates; what shows is added up."""
    (exchange,) = world.method.exchanges
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    directions = normals(keys.users(people, "audit/directions"), numbers)
    directions = (directions / np.linalg.norm(directions, axis=1, keepdims=True)).astype(np.float32)
    place = np.full(len(world.federation), -1, dtype=np.int32)
    place[people] = np.arange(len(people))
    loud = exchange.protections.bounds()[-1] is not None

    def look(totals: Mapping[str, Mapping[str, Array]]) -> None:
        total = totals[exchange.into]
        flat = np.concatenate([np.ravel(total[name]).astype(np.float32) for name in shapes])
        scores[:] += directions @ flat

    changed = replace(exchange, local=Canaries(exchange.local, place, directions, shapes, loud))
    return replace(world.method, exchanges=(changed,), server=Noted(world.method.server, look))


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
