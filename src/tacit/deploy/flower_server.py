"""The server over Flower: the coordinator's frames as messages of a run in which we are the ServerApp."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tacit.deploy.certificates import Certified
from tacit.deploy.channel import Pace, Unwatched, drive
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.flower_engine import Run, SuperLink, let_in
from tacit.deploy.identity import fingerprint
from tacit.deploy.journal import Journal
from tacit.deploy.proxy_calls import ProxyLink
from tacit.deploy.proxy_http import reached
from tacit.errors import TacitError

HELLO, MODEL = -1, -2  # where a frame is for a device, not for one of its people
POLL = 0.1


@dataclass
class FlowerChannel:
    """Frames by slot, over nodes: a node may host many people and gets one message for all of them."""

    run: Run
    coordinator: Coordinator
    pace: Pace
    where: dict[int, int] = field(default_factory=dict)
    greeted: dict[int, float] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        known = self.coordinator.devices.values()
        self.where = {device.slot: int(device.node) for device in known if device.node}

    def greet(self) -> None:
        """Ask every node that is there who it is; again after a while, if it did not say."""
        now, known = time.monotonic(), set(self.where.values())
        hello = self.coordinator.hello()
        for node in self.run.nodes():
            if node in known or now - self.greeted.get(node, -1e9) < self.pace.again:
                continue
            self.greeted[node] = now
            self.run.push({node: {HELLO: hello}}, self.pace.again)

    def send(self, due: Mapping[int, bytes]) -> None:
        """One message per node."""
        self.greet()
        by_node: dict[int, dict[int, bytes]] = {}
        for slot, wire in due.items():
            if slot in self.where:
                by_node.setdefault(self.where[slot], {})[slot] = wire
        self.run.push(by_node, self.pace.deadline)

    def arrived(self, wait: float) -> Iterable[tuple[int, bytes]]:
        """What has come; waits a little if nothing has."""
        end = time.monotonic() + wait
        while True:
            come = []
            for node, slot, wire in self.run.pull():
                if slot == HELLO:
                    self._card(node, wire)
                elif slot == MODEL:
                    self.kept.add(node)
                elif self.where.get(slot) == node:
                    come.append((slot, wire))
            if come or time.monotonic() >= end:
                return come
            time.sleep(POLL)

    def _card(self, node: int, wire: bytes) -> None:
        for slot in self.coordinator.enrol(wire, str(node)):
            self.where[slot] = node

    def tell_model(self) -> None:
        """Send everybody the model; who does not take it within the deadline asks for it another time."""
        wire, nodes = self.coordinator.model(), set(self.where.values())
        self.run.push({node: {MODEL: wire} for node in nodes}, self.pace.deadline)
        end = time.monotonic() + min(self.pace.deadline, 20.0)
        while not nodes <= self.kept and time.monotonic() < end:
            self.arrived(0.2)


@dataclass(frozen=True)
class Listening:
    """Where the server listens and whom it trusts."""

    folder: Path
    host: str
    port: int
    certified: Certified
    pace: Pace = field(default_factory=Pace)


def serve(
    listening: Listening,
    watcher: Unwatched | None = None,
    ready: Callable[[str], None] | None = None,
) -> bool:
    """Run a federation to its end, however often the engine must be started; ``False`` if stopped."""
    watcher = watcher or Unwatched()
    journal = Journal.opened(listening.folder)
    try:
        coordinator = Coordinator(journal, _proxy(journal, listening))
        while True:
            superlink = _started(listening)
            try:
                superlink.ready()
                if ready is not None:
                    ready(superlink.address)
                return _served(superlink, coordinator, listening, watcher)
            except _lost():
                watcher.warn("the engine was lost; it is started again")
                coordinator = Coordinator(journal, coordinator.proxy)
            finally:
                superlink.stop()
    finally:
        journal.close()


def _lost() -> tuple[type[BaseException], ...]:
    import httpx  # comes with Flower

    return (httpx.HTTPError, ConnectionError)


def _started(listening: Listening) -> SuperLink:
    own = listening.certified
    return SuperLink.started(
        listening.folder / "engine", own.certificate, own.key, own.authority, listening.host, listening.port
    )


def _served(superlink: SuperLink, coordinator: Coordinator, listening: Listening, watcher: Unwatched) -> bool:
    admitted: set[str] = set()
    _admit(superlink, coordinator, admitted)
    run = Run.begun(superlink)
    finished = False
    try:
        channel = FlowerChannel(run, coordinator, listening.pace)
        while not coordinator.complete and not coordinator.finished:
            if watcher.stopping():
                return False
            _admit(superlink, coordinator, admitted)
            channel.greet()
            channel.arrived(0.2)
            watcher.enrolled(len(coordinator.devices), coordinator.charter.about.people)
        finished = drive(coordinator, channel, listening.pace, watcher)
        if finished:
            channel.tell_model()
    finally:
        run.finish(completed=finished)
    return finished


def _admit(superlink: SuperLink, coordinator: Coordinator, admitted: set[str]) -> None:
    """Register the public keys on the operator's list with the engine."""
    for text in json.loads(coordinator.journal.fact("public keys") or b"[]"):
        if fingerprint(text) not in admitted:
            admitted.add(fingerprint(text))
            let_in(superlink, text)


def _proxy(journal: Journal, listening: Listening) -> ProxyLink | None:
    bare = Coordinator(journal)
    charter = bare.charter
    if not charter.proxy:
        return None
    send = reached(charter.proxy_address, listening.certified.authority)
    return ProxyLink(send, bare.identity, charter.proxy)


def admitted(journal: Journal, public_texts: Iterable[str]) -> None:
    """Put devices' public keys on the operator's list: they may connect and enrol."""
    listed = dict.fromkeys(json.loads(journal.fact("public keys") or b"[]"))
    for text in public_texts:
        if len(text.split()) < 2:
            raise TacitError(
                f"{text[:40]!r} is not a public key", "give what `tacit device DIR --status` shows"
            )
        listed[" ".join(text.split()[:2])] = None
    with journal.whole():
        journal.keep("public keys", json.dumps(list(listed)).encode())
        journal.keep("allowed", json.dumps(sorted(map(fingerprint, listed))).encode())


def shut_out(journal: Journal, print_: str) -> None:
    """Take a device's key off the list: its people's answers count no more, and it is told nothing more."""
    listed = [
        text for text in json.loads(journal.fact("public keys") or b"[]") if fingerprint(text) != print_
    ]
    gone = sorted({*json.loads(journal.fact("revoked") or b"[]"), print_})
    with journal.whole():
        journal.keep("public keys", json.dumps(listed).encode())
        journal.keep("allowed", json.dumps(sorted(map(fingerprint, listed))).encode())
        journal.keep("revoked", json.dumps(gone).encode())
        for device in journal.devices().values():
            if device.owner == print_:
                journal.revoke(device.slot)
