"""A whole deployment on one machine, for trying out: nothing is left behind."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.config.experiment import Experiment, method_of, resolved
from tacit.data.interactions import Dataset
from tacit.deploy.accuracy import Accuracy
from tacit.deploy.certificates import Authority, Certified
from tacit.deploy.channel import Pace, Unwatched
from tacit.deploy.children import Children
from tacit.deploy.cohort import profile_of
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.flower_engine import free_port, needed
from tacit.deploy.flower_server import Listening, admitted, serve
from tacit.deploy.footprint import footprint, started_by
from tacit.deploy.founding import announced, founded
from tacit.deploy.history import History
from tacit.deploy.identity import Identity
from tacit.deploy.journal import Journal
from tacit.deploy.proxy import ProxyService
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import public_identity
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.round import Method
from tacit.runtime.run import federation_of

LOOPBACK = "127.0.0.1"
_PREFIX, _LOCK = "tacit-up-", "in.use"
_GATEWAY = (
    "import sys, threading, signal; from pathlib import Path; from tacit.deploy.flower_device import many;"
    "stop = threading.Event(); signal.signal(signal.SIGTERM, lambda *_: stop.set());"
    "seed = None if sys.argv[3] == 'none' else int(sys.argv[3]);"
    "wrong = many([Path(p) for p in sys.argv[4:]], sys.argv[1], Path(sys.argv[2]), seeded=seed, stop=stop);"
    "print(*wrong, sep=chr(10))"
)


@dataclass(frozen=True)
class Trial:
    """What to try: an experiment, how many devices, and how they run.

    ``processes`` gives every device a process of its own; otherwise their nodes share one. ``seeded`` makes
    everything repeatable and equal to a simulation, and the claims empty.
    """

    experiment: Experiment
    devices: int
    processes: bool = False
    seeded: bool = False
    keep: Path | None = None
    accuracy: Accuracy | None = None
    pace: Pace = field(default_factory=lambda: Pace(deadline=60.0, again=20.0, wait=0.3))


@dataclass(frozen=True)
class Grounds:
    """The folders, keys and ports of a trial."""

    folder: Path
    certified: Certified
    port: int
    proxy_port: int
    proxy: bool

    @property
    def server(self) -> str:
        """Where devices find the server."""
        return f"https://{LOOPBACK}:{self.port}"

    @property
    def devices(self) -> list[Path]:
        """The devices' folders."""
        return sorted((self.folder / "devices").iterdir())


def tried(trial: Trial, watcher: Unwatched, data_dir: Path | None = None) -> dict[str, Any] | None:
    """Run a trial to its end; ``None`` if it was stopped. No process and no file is left in any case.

    After a kill -9 no process is left, and the files go when the next trial starts.
    """
    needed()
    with _place(trial) as folder:
        return _tried_in(folder, trial, watcher, data_dir)


@contextmanager
def _place(trial: Trial) -> Generator[Path]:
    """Where everything lies while a trial runs."""
    import fcntl

    if trial.keep is not None:
        yield trial.keep
        return
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):  # by somebody who was killed
        with suppress(OSError), (left / _LOCK).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _LOCK).open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tried_in(folder: Path, trial: Trial, watcher: Unwatched, data_dir: Path | None) -> dict[str, Any] | None:
    grounds = prepared(trial, folder, data_dir)
    with Children() as children:
        _begin(children, grounds, trial)
        listening = Listening(folder / "server", LOOPBACK, grounds.port, grounds.certified, trial.pace)
        here: list[bool] = []

        def ready(_: str) -> None:
            if not here:  # started again, the engine finds its devices where they were
                here.append(True)
                _begin_devices(children, grounds, trial)

        measured = _Measured(watcher, children, proxy=grounds.proxy)
        finished = serve(listening, measured, ready)
    if not finished:
        return None
    from tacit.deploy.operator_view import seen  # with its accounting

    return {**seen(folder / "server"), "processes": measured.told}


class _Measured(Unwatched):
    """Passes on how the rounds go, and looks what the processes use after each."""

    def __init__(self, watcher: Unwatched, children: Children, *, proxy: bool) -> None:
        self._watcher = watcher
        self._children = children
        self._proxy = proxy
        self.told: dict[str, Any] = {}
        self.enrolled, self.warn, self.stopping = watcher.enrolled, watcher.warn, watcher.stopping

    def round(self, coordinator: Coordinator, seconds: float) -> None:
        """While all of them are still there."""
        self._watcher.round(coordinator, seconds)
        ours = [child.pid for child in self._children.started]
        engine = [number for number in started_by(os.getpid()) if number not in ours]
        groups = {"server": [os.getpid()], "engine": engine}
        groups |= {"proxy": ours[:1] if self._proxy else [], "devices": ours[int(self._proxy) :]}
        self.told = {what: footprint(numbers) for what, numbers in groups.items()}


def prepared(trial: Trial, folder: Path, data_dir: Path | None = None) -> Grounds:
    """Everything but the processes: data, devices' folders, certificates, the server's journal."""
    complete, dataset, federation = _data(trial, data_dir)
    users = federation.people[: trial.devices].tolist()
    if len(users) < trial.devices:
        raise TacitError(
            f"{trial.devices} devices, and {len(users)} people in the data have a history",
            "ask for fewer devices or take larger data",
        )
    chosen = _only(federation, users)
    authority = Authority.made(folder / "certificates")
    certified = authority.vouched("server", [LOOPBACK, "localhost"])
    wants_proxy = needs_proxy(method_of(complete))
    grounds = Grounds(folder, certified, free_port(), free_port(), wants_proxy)
    identity, proxy = secrets.token_bytes(32), b""
    if wants_proxy:
        service = ProxyService.created(folder / "proxy", public_identity(identity))
        proxy = service.public
        service.close()
    journal = founded(
        folder / "server",
        announced(
            f"up-{secrets.token_hex(4)}",
            {
                **complete.to_mapping(),
                "data": Path(complete.data).name,
                "seed": complete.seed if trial.seeded else 0,
            },
            [str(raw) for raw in dataset.item_ids.values.tolist()],
            len(users),
            scale=dataset.scale,
            features=dataset.item_features,
            about_people=dataset.user_features,
        ),
        identity=identity,
        proxy=proxy,
        proxy_address=f"https://{LOOPBACK}:{grounds.proxy_port}" if wants_proxy else "",
        seeded=complete.seed if trial.seeded else None,
        accuracy=trial.accuracy,
    )
    try:
        _devices(folder, journal, dataset, chosen, users)
    finally:
        journal.close()
    return grounds


def _data(trial: Trial, data_dir: Path | None) -> tuple[Experiment, Dataset, Federation]:
    complete, plan = resolved(trial.experiment, data_dir)
    return complete, plan.dataset, federation_of(plan.dataset, plan.split.train)


def federation_tried(trial: Trial, data_dir: Path | None = None) -> tuple[Experiment, Method, Federation]:
    """What a simulation of the same trial is made of: experiment, method, the people on its devices."""
    complete, _, federation = _data(trial, data_dir)
    method = method_of(complete)
    if not isinstance(method, Method):
        raise TacitError(f"{complete.method} sees all data in one place", "run it with `tacit run`")
    return complete, method, _only(federation, federation.people[: trial.devices].tolist())


def _only(federation: Federation, users: list[int]) -> Federation:
    """The federation of these people alone, numbered anew."""
    cohort = federation.cohort(np.array(users, dtype=np.int32))
    return replace(federation, offsets=cohort.offsets, items=cohort.items, values=cohort.values)


def _devices(folder: Path, journal: Journal, dataset: Dataset, chosen: Federation, users: list[int]) -> None:
    keys = []
    raws = [str(raw) for raw in dataset.item_ids.values.tolist()]
    for number, user in enumerate(users):
        person = str(dataset.user_ids.raw(user))
        with DeviceStore.created(folder / "devices" / f"device{number:04d}") as store:
            cohort = chosen.cohort(np.array([number], dtype=np.int32))
            rows = zip(cohort.items.tolist(), cohort.values.tolist(), strict=True)
            store.add_history(person, History.of([(raws[item], value, None) for item, value in rows]))
            store.set_profile(person, profile_of(dataset.user_features, user))
            store.set_wish(person, number)
            keys.append(Identity.of(store).public_text)
    admitted(journal, keys)


def needs_proxy(method: object) -> bool:
    """Whether a method's reports or letters have to go through a proxy."""
    if not isinstance(method, Method):
        return False
    exchanges = (*method.setup, *method.exchanges)
    return any(e.reads_letters or e.transport.delivers.value == "shuffled" for e in exchanges)


def _begin(children: Children, grounds: Grounds, trial: Trial) -> None:
    if grounds.proxy:
        command = [sys.executable, "-m", "tacit", "proxy", str(grounds.folder / "proxy"), "--port"]
        command += [str(grounds.proxy_port), "--certificates", str(grounds.certified.certificate.parent)]
        children.start(command, grounds.folder / "logs" / "proxy.log", _environment(trial))


def _begin_devices(children: Children, grounds: Grounds, trial: Trial) -> None:
    logs, ca = grounds.folder / "logs", str(grounds.certified.authority)
    if trial.processes:
        for folder in grounds.devices:
            command = [sys.executable, "-m", "tacit", "device", str(folder), "--server", grounds.server]
            children.start([*command, "--ca", ca], logs / f"{folder.name}.log", _environment(trial))
        return
    seed = str(trial.experiment.seed) if trial.seeded else "none"
    command = [sys.executable, "-c", _GATEWAY, grounds.server, ca, seed, *map(str, grounds.devices)]
    children.start(command, logs / "devices.log", _environment(trial))


def _environment(trial: Trial) -> Mapping[str, str]:
    threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found = {name: os.environ.get(name, value) for name, value in threads.items()}
    return {**found, "TACIT_SEEDED": str(trial.experiment.seed)} if trial.seeded else found
