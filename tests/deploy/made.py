"""A device as it is after taking part: made by the simulation's own client code, for tests."""

from pathlib import Path

import numpy as np

from tacit import codec
from tacit.config.experiment import Experiment, resolved
from tacit.deploy.about import RunAbout
from tacit.deploy.importing import owners_of
from tacit.deploy.limits import Sent
from tacit.deploy.store import DeviceStore
from tacit.rng import SeededKeys
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, one_round, private_of, set_up, surroundings

DATA = "demo:users=60,items=50,mean=15"


def simulated(method="fedrec", rounds=6, **settings):
    """A finished simulation, and what a server would say of it."""
    experiment, plan = resolved(Experiment(method, data=DATA, rounds=rounds, settings=settings))
    from tacit.data import load

    data = load(DATA)
    federation = federation_of(data, plan.split.train)
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
    return world, about, records, data, plan


def device_of(folder: Path, simulation, user: int, key_file=None) -> DeviceStore:
    """The store of one simulated user as taking part would have left it."""
    world, about, records, data, plan = simulation
    store = DeviceStore.created(folder, key_file)
    person = str(data.user_ids.raw(user))
    owner = owners_of(data.keeping(plan.split.train))[person]
    store.add_history(person, owner.history)
    store.set_profile(person, owner.profile)
    store.keep_run(about)
    private = private_of(world, np.array([user], dtype=np.int32))
    down = codec.broadcast_nbytes(world.server.shared)
    for place, record in enumerate(records):
        facts, each = record.facts, max(1, record.facts.answered)
        store.commit(
            run=about.run,
            private={person: private},
            sent=[
                Sent(
                    person,
                    about.run,
                    facts.round,
                    facts.exchange,
                    "server",
                    record.traffic.up // each + 37 * (place % 3),
                    down,
                    record.claim.to_json(),
                    1_790_000_000 + 600 * place,
                )
            ],
            answer=bytes([place]) * 64,
        )
    store.keep_model(about.run, world.server.round, world.server.shared)
    return store
