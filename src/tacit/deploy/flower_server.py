"""The server over Flower: the coordinator's frames as messages of a run in which we are the ServerApp."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from tacit.deploy.certificates import Certified
from tacit.deploy.channel import Pace, Unwatched, drive
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.flower_engine import SuperLink, let_in
from tacit.deploy.flower_engine import shut_out as shut_node_out
from tacit.deploy.flower_run import Run
from tacit.deploy.identity import fingerprint
from tacit.deploy.journal import Journal
from tacit.deploy.proxy_calls import ProxyLink
from tacit.deploy.proxy_http import reached
from tacit.errors import TacitError

HELLO, MODEL = -1, -2  # where a frame is for a device, not for one of its people
POLL = 0.1
LOOK = 2.0  # seconds between two looks at who is there
RESTARTS = 5  # of the engine, without a round between them


@dataclass
class FlowerChannel:
    """Frames by slot, over nodes: a node may host many people and gets one message for all of them."""

    run: Run
    coordinator: Coordinator
    pace: Pace
    where: dict[int, int] = field(default_factory=dict)
    greeted: dict[int, float] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    met: set[int] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    _looked: float = field(default=-LOOK, init=False)
    _gone: Set[int] = field(default=frozenset(), init=False)

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
        self.shut_out()
        self.greet()
        by_node: dict[int, dict[int, bytes]] = {}
        for slot, wire in due.items():
            if slot in self.where:
                by_node.setdefault(self.where[slot], {})[slot] = wire
        self.run.push(by_node, self.pace.deadline)

    def shut_out(self) -> None:
        """The engine, too, knows a revoked device no more."""
        gone = {device.slot for device in self.coordinator.devices.values() if device.revoked}
        if gone & self.where.keys():
            _admit(self.run.superlink, self.coordinator)
        for node in {self.where[slot] for slot in gone & self.where.keys()}:
            shut_node_out(self.run.superlink, node)
        self.where = {slot: node for slot, node in self.where.items() if slot not in gone}

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

    def away(self) -> Set[int]:
        """Whose nodes were here and are gone, or did not come within a deadline of the engine's start.

        The engine counts a node as gone when it says so, or is not heard of for a minute.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked, here = now, set(self.run.nodes())
            self.met |= here
            late = now - self.began >= self.pace.deadline
            missed = {node for node in self.where.values() if late or node in self.met} - here
            self._gone = {slot for slot, node in self.where.items() if node in missed}
        return self._gone

    def _card(self, node: int, wire: bytes) -> None:
        for slot in self.coordinator.enrol(wire, str(node)):
            self.where[slot] = node

    def tell_model(self) -> None:
        """Send everybody the model, who does not take it within the deadline goes without."""
        self.coordinator.notice()
        self.shut_out()
        wire, nodes = self.coordinator.model(), set(self.where.values())
        self.run.push({node: {MODEL: wire} for node in nodes}, self.pace.deadline)
        end = time.monotonic() + min(self.pace.deadline, 20.0)
        while not nodes <= self.kept and time.monotonic() < end:
            self.arrived(0.2)


@dataclass(frozen=True)
class Listening:
    """Where the server listens and whom it trusts; ``trusted`` vouches for the proxy, too."""

    folder: Path
    host: str
    port: int
    certified: Certified
    pace: Pace = field(default_factory=Pace)
    trusted: Path | None = None


def serve(
    listening: Listening,
    watcher: Unwatched | None = None,
    ready: Callable[[str], None] | None = None,
) -> bool:
    """Run a federation to its end, however often the engine must be started; ``False`` if stopped."""
    watcher = watcher or Unwatched()
    journal = Journal.opened(listening.folder)
    try:
        with journal.serving():
            return _served_on(journal, listening, watcher, ready or (lambda address: None))  # noqa: ARG005
    except sqlite3.Error as error:
        raise TacitError(
            f"{journal.path} cannot be written ({error})",
            "free some space or mend the disk, then start again: it goes on where it was",
        ) from error
    finally:
        journal.close()


def _served_on(
    journal: Journal, listening: Listening, watcher: Unwatched, ready: Callable[[str], None]
) -> bool:
    proxy, lost = _proxy(journal, listening), 0
    while True:
        coordinator = Coordinator(journal, proxy)
        before = coordinator.state.round
        superlink = _started(listening)
        try:
            superlink.ready()
            _admit(superlink, coordinator)
            superlink.open_gate()
            ready(superlink.public)
            return _served(superlink, coordinator, listening, watcher)
        except _lost() as error:
            lost = 0 if coordinator.state.round > before else lost + 1
            if lost > RESTARTS:
                raise TacitError(
                    f"the engine was lost {lost} times without a round between ({error})",
                    f"see {superlink.log}; the federation goes on where it was",
                ) from error
            watcher.warn("the engine was lost; it is started again")
        finally:
            superlink.stop()


def _lost() -> tuple[type[BaseException], ...]:
    import httpx  # comes with Flower

    return (httpx.HTTPError, ConnectionError)


def _started(listening: Listening) -> SuperLink:
    own = listening.certified
    return SuperLink.started(
        listening.folder / "engine", own.certificate, own.key, listening.host, listening.port
    )


def _served(
    superlink: SuperLink,
    coordinator: Coordinator,
    listening: Listening,
    watcher: Unwatched,
) -> bool:
    run = Run.begun(superlink)
    finished = False
    try:
        channel = FlowerChannel(run, coordinator, listening.pace)
        while not coordinator.complete and not coordinator.finished:
            if watcher.stopping():
                return False
            _admit(superlink, coordinator)
            channel.greet()
            channel.arrived(0.2)
            watcher.enrolled(len(coordinator.devices), coordinator.charter.about.people)
        finished = drive(coordinator, channel, listening.pace, watcher)
        if finished:
            channel.tell_model()
    finally:
        run.finish(completed=finished)
    return finished


def _admit(superlink: SuperLink, coordinator: Coordinator) -> None:
    """The keys on the operator's list, as it is now, are those that the engine and its gate know."""
    let_in(superlink, json.loads(coordinator.journal.fact("public keys") or b"[]"))


def _proxy(journal: Journal, listening: Listening) -> ProxyLink | None:
    bare = Coordinator(journal)
    charter = bare.charter
    if not charter.proxy:
        return None
    send = reached(charter.proxy_address, listening.trusted or listening.certified.authority)
    return ProxyLink(send, bare.identity, charter.proxy)


def admitted(journal: Journal, public_texts: Iterable[str]) -> None:
    """Put devices' public keys on the operator's list: they may connect and enrol."""
    listed = dict.fromkeys(json.loads(journal.fact("public keys") or b"[]"))
    gone = json.loads(journal.fact("revoked") or b"[]")
    for text in public_texts:
        refuse_no_key(text)
        if fingerprint(text) in gone:
            raise TacitError(
                f"the key {fingerprint(text)} was revoked, and that is for good",
                "let its owner make a new device folder",
            )
        listed[" ".join(text.split()[:2])] = None
    with journal.whole():
        journal.keep("public keys", json.dumps(list(listed)).encode())
        journal.keep("allowed", json.dumps(sorted(map(fingerprint, listed))).encode())


def refuse_no_key(text: str) -> None:
    """One clear line for what is not a public key of the kind devices have."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TacitError(f"{text[:40]!r} is not a device's key", "give what `tacit device DIR --key` prints")


def shut_out(journal: Journal, print_: str) -> int:
    """Take a device's key off the list for good; how many of its people had enrolled.

    Their answers count no more, and they are told nothing more.
    """
    listed = json.loads(journal.fact("public keys") or b"[]")
    theirs = [device.slot for device in journal.devices().values() if device.owner == print_]
    kept = [text for text in listed if fingerprint(text) != print_]
    before = json.loads(journal.fact("revoked") or b"[]")
    if not theirs and len(kept) == len(listed) and print_ not in before:
        raise TacitError(f"no device here has the key {print_!r}", "see `tacit device DIR --status`")
    with journal.whole():
        journal.keep("public keys", json.dumps(kept).encode())
        journal.keep("allowed", json.dumps(sorted(map(fingerprint, kept))).encode())
        journal.keep("revoked", json.dumps(sorted({*before, print_})).encode())
        for slot in theirs:
            journal.revoke(slot)
    return len(theirs)
