"""A device as it is after taking part: made by the simulation's own client code, for tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit import codec
from tacit.config.experiment import Experiment, resolved
from tacit.data import Dataset, Interactions, load
from tacit.deploy.about import RunAbout
from tacit.deploy.importing import owners_of
from tacit.deploy.limits import Sent
from tacit.deploy.store import DeviceStore
from tacit.ledger.record import ExchangeRecord
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import World, new_world, one_round, private_of, set_up, surroundings

DATA = "demo:users=60,items=50,mean=15"


class Simulated(NamedTuple):
    """A finished simulation, and what a server would say of it."""

    world: World
    about: RunAbout
    records: Sequence[ExchangeRecord]
    data: Dataset
    train: Interactions


def simulated(method: str = "fedrec", rounds: int = 6, **settings: Any) -> Simulated:
    """Train on a tiny data set."""
    experiment, plan = resolved(Experiment(method, data=DATA, rounds=rounds, settings=settings))
    assert isinstance(plan.method, Method)
    data, federation = load(DATA), federation_of(load(DATA), plan.split.train)
    world = new_world(plan.method, federation, SeededKeys(1), None, plan.delta)
    records = [*set_up(world)]
    for _ in range(rounds):
        records += one_round(world)
    around = surroundings(federation, plan.delta)
    about = RunAbout(
        f"{method}-2026",
        experiment.to_mapping(),
        tuple(str(raw) for raw in data.item_ids.values.tolist()),
        around.people,
        "https://films.example",
        data.scale,
        around.items,
        around.about_people,
    )
    return Simulated(world, about, records, data, plan.split.train)


def device_of(folder: Path, told: Simulated, user: int, key_file: Path | None = None) -> DeviceStore:
    """The store of one simulated user as taking part in every round would have left it."""
    store = DeviceStore.created(folder, key_file)
    person = str(told.data.user_ids.raw(user))
    owner = owners_of(told.data.keeping(told.train))[person]
    store.add_history(person, owner.history)
    store.set_profile(person, owner.profile)
    store.keep_run(told.about)
    private = private_of(told.world, np.array([user], dtype=np.int32))
    down = codec.broadcast_nbytes(told.world.server.shared)
    for place, record in enumerate(told.records):
        facts, up = record.facts, record.traffic.up // max(1, record.facts.answered)
        claim, when = record.claim.to_json(), 1_790_000_000 + 600 * place
        line = Sent(person, told.about.run, facts.round, facts.exchange, "server", up, down, claim, when)
        store.commit(run=told.about.run, private={person: private}, sent=[line], answer=bytes([place]) * 64)
    store.keep_model(told.about.run, told.world.server.round, told.world.server.shared)
    return store
