"""A federation twice: as a simulation, and as devices with stores of their own around a server's journal."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit.config.experiment import Experiment, method_of
from tacit.deploy.accuracy import Accuracy
from tacit.deploy.channel import Bend, InMemory, Pace, drive, gathered
from tacit.deploy.cohort import profile_of
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.founding import announced, founded
from tacit.deploy.history import History
from tacit.deploy.journal import Journal
from tacit.deploy.participation import Participant
from tacit.deploy.proxy import ProxyService
from tacit.deploy.proxy_calls import ProxyLink
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import public_identity
from tacit.federation.federation import Federation
from tacit.ledger.record import ExchangeRecord
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.simulate import World, new_world, one_round, set_up
from tacit.testing.tiny import tiny_federation

SEED = 7
SERVER = b"the server's own secret, 32 byte"
FAST = Pace(deadline=20.0, again=0.05, wait=0.0)


@dataclass
class Deployment:
    """Everything a deployed federation consists of, in one process; parts may be stopped and started anew."""

    folder: Path
    federation: Federation
    journal: Journal
    proxy: ProxyService | None
    coordinator: Coordinator = field(init=False)
    devices: dict[int, Participant] = field(default_factory=dict)
    stores: dict[int, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(self.journal, self.link())

    def run(self, pace: Pace = FAST, **bent: Bend) -> bool:
        """All rounds; frames may be lost or bent on the way."""
        return drive(self.coordinator, InMemory(self.devices, **bent), pace)

    def restart_server(self) -> None:
        """A new server process on the same folder."""
        self.journal.close()
        self.journal = Journal.opened(self.folder / "server")
        self.coordinator = Coordinator(self.journal, self.link())

    def restart_proxy(self) -> None:
        """A new proxy process on the same folder."""
        assert self.proxy is not None
        self.proxy.close()
        self.proxy = ProxyService.opened(self.folder / "proxy")

    def restart_device(self, slot: int) -> None:
        """A new device process on the same folder."""
        self.devices[slot].store.close()
        self.devices[slot] = participant(self.stores[slot], self)

    def to_proxy(self, wire: bytes) -> bytes:
        """A frame to the proxy and its answer."""
        assert self.proxy is not None
        return self.proxy.received(wire)

    def link(self) -> ProxyLink | None:
        """The server's way to the proxy."""
        if self.proxy is None:
            return None
        return ProxyLink(lambda wire: self.to_proxy(wire), SERVER, self.proxy.public)


def participant(folder: Path, deployment: Deployment, seeded: int | None = SEED) -> Participant:
    """A device process on its folder."""
    return Participant(
        DeviceStore.opened(folder),
        proxy=lambda _: lambda wire: deployment.to_proxy(wire),
        seeded=seeded,
        clock=lambda: 1e9,
    )


def deployed(
    folder: Path,
    experiment: Experiment,
    users: int = 12,
    items: int = 15,
    seeded: int | None = SEED,
    accuracy: Accuracy | None = None,
) -> Deployment:
    """A federation of devices that have enrolled; no round has begun."""
    federation = tiny_federation(users, items, 3)
    about = announced(
        "run",
        experiment.to_mapping(),
        [f"i{item}" for item in range(items)],
        users,
        scale=federation.scale,
        features=federation.item_features,
        about_people=federation.user_features,
    )
    proxy = None
    if _needs_proxy(method_of(experiment)):
        proxy = ProxyService.created(folder / "proxy", public_identity(SERVER))
    journal = founded(
        folder / "server",
        about,
        identity=SERVER,
        proxy=proxy.public if proxy else b"",
        proxy_address="memory" if proxy else "",
        seeded=seeded,
        accuracy=accuracy,
    )
    whole = Deployment(folder, federation, journal, proxy)
    whole.stores = {user: stored(folder / f"device{user}", federation, user) for user in range(users)}
    people = [participant(mine, whole, seeded) for mine in whole.stores.values()]
    whole.devices = gathered(whole.coordinator, people)
    return whole


def stored(folder: Path, federation: Federation, user: int) -> Path:
    """One person's device with their history and profile."""
    with DeviceStore.created(folder) as store:
        cohort = federation.cohort(np.array([user], dtype=np.int32))
        rows = zip(cohort.items.tolist(), cohort.values.tolist(), strict=True)
        store.add_history(f"u{user}", History.of([(f"i{item}", value, None) for item, value in rows]))
        store.set_profile(f"u{user}", profile_of(federation.user_features, user))
        store.set_wish(f"u{user}", user)
    return folder


def _needs_proxy(method: object) -> bool:
    assert isinstance(method, Method)
    exchanges = (*method.setup, *method.exchanges)
    return any(e.reads_letters or e.transport.delivers.value == "shuffled" for e in exchanges)


def simulated(
    experiment: Experiment, federation: Federation, delta: float = 1e-6
) -> tuple[World, list[ExchangeRecord]]:
    """The simulation's world after all rounds, and its ledger."""
    method = method_of(experiment)
    assert isinstance(method, Method)
    world = new_world(method, federation, SeededKeys(SEED), delta=delta)
    records = set_up(world)
    for _ in range(world.method.rounds):
        records += one_round(world)
    return world, records
