"""A device over Flower: its node lives in its own process and answers with what :mod:`participation` says."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tacit.deploy.flower_node import Node, Place
from tacit.deploy.identity import Identity
from tacit.deploy.joining import Joining
from tacit.deploy.participation import Participant
from tacit.deploy.proxy_http import host_and_port, reached
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import Frame, Kind, No, Refused, key_told, unframed
from tacit.errors import TacitError

POLL = 0.5


def joined(
    joining: Joining,
    stopping: Callable[[], bool],
    *,
    seeded: int | None = None,
    poll: float = POLL,
    heard: Callable[[str], None] | None = None,
) -> None:
    """Take part until the run is over, or until told to stop."""
    with DeviceStore.opened(joining.folder, joining.key_file) as store, store.taking_part():
        if not store.people():
            raise TacitError(f"{joining.folder} holds nobody's history", "import one with --import FILE")
        if not joining.serve and len(store.people()) != 1:
            raise TacitError(
                f"{joining.folder} hosts {len(store.people())} people",
                "add --serve to take part for all of them",
            )
        if joining.charter:
            key_told(joining.charter, "--charter", "give what `tacit server DIR --key` prints")
        participant = Participant(
            store,
            proxy=lambda address: reached(address, joining.ca),
            server=joining.charter.lower(),
            seeded=seeded,
        )
        taking = _Taking(participant, joining.rounds, stopping, heard)
        address = address_of(joining.server)
        known = store.kept(f"node/{address}")
        node = Node(
            Place(address, joining.ca, Identity.of(store).key()),
            heard or (lambda line: None),  # noqa: ARG005
            taking.over,
            None if known is None else int(known),
            lambda number: store.keep(f"node/{address}", str(number).encode()),
            poll,
        )
        node.run(taking.answers)


class _Taking:
    """Counts answered rounds, and notices the end of the run."""

    def __init__(
        self,
        participant: Participant,
        rounds: int,
        stopping: Callable[[], bool],
        heard: Callable[[str], None] | None,
    ) -> None:
        self._participant = participant
        self._rounds = rounds
        self._stopping = stopping
        self._heard = heard
        self._answered: set[tuple[str, int]] = set()
        self._final = 0.0

    def answers(self, wires: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """The answers to a message's frames."""
        return {slot: self._one(wire) for slot, wire in wires.items()}

    def _one(self, wire: bytes) -> bytes:
        answer = self._participant.answer(wire)
        try:
            asked, told = unframed(wire, len(wire)), unframed(answer, len(answer))
        except Refused:
            return answer
        if told.kind is Kind.ANSWER and asked.read("round", int) >= 0:
            self._answered.add((asked.read("run", str), asked.read("round", int)))
        if asked.kind is Kind.MODEL and asked.head.get("final"):
            self._final = time.monotonic()
        if told.head.get("no") == No.FOREIGN_SERVER.value and asked.kind is Kind.HELLO:
            raise TacitError("the server's key is not the one this device was told", "check --charter")
        if self._heard is not None:
            self._heard(_said(asked, told))
        return answer

    def over(self) -> bool:
        """Told to stop, enough rounds, or the run is over."""
        enough = 0 < self._rounds <= len(self._answered)
        return self._stopping() or enough or self._final > 0


def _said(asked: Frame, told: Frame) -> str:
    """One line about what was asked and how it was answered."""
    where = f"round {asked.head['round']}" if "round" in asked.head else f"run {asked.head.get('run')}"
    if told.kind is Kind.REFUSAL:
        return f"{where}: declined ({told.head.get('no')})"
    if told.kind is Kind.CARD:
        people = f"{len(told.parts)} here" if told.parts else "nobody here has anything of its catalogue"
        return f"{where}: joined, {people}"
    if told.kind is Kind.KEPT:
        return f"{where}: the model is kept here" + (
            ", and it is the last" if asked.head.get("final") else ""
        )
    return f"{where}: answered"


def address_of(server: str) -> str:
    """``host:port`` from what a person writes.

    Example:
        >>> address_of("https://recommender.example:9443"), address_of("127.0.0.1:9443")
        ('recommender.example:9443', '127.0.0.1:9443')
    """
    host, port = host_and_port(server if "//" in server else f"https://{server}", "a server")
    return f"[{host}]:{port or 9443}" if ":" in host else f"{host}:{port or 9443}"


def many(
    folders: list[Path], server: str, ca: Path, *, seeded: int | None, stop: threading.Event
) -> list[str]:
    """Many devices as nodes of one process, each with its own folder and key; what went wrong, by device."""
    wrong: list[str] = []

    def one(folder: Path) -> None:
        try:
            joined(
                Joining(folder, None, server, ca, serve=True, quiet=True),
                stop.is_set,
                seeded=seeded,
                poll=POLL + 0.02 * len(folders),
            )
        except TacitError as error:
            wrong.append(f"{folder.name}: {error}")

    threads = [threading.Thread(target=one, args=(folder,), daemon=True) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    return wrong


def shown(joining: Joining) -> int:
    """Take part in the foreground: Ctrl-C stops after the answer under way; the exit status."""
    import json
    import os
    import signal
    import sys

    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    heard = None if joining.quiet else lambda line: print(line, file=sys.stderr)  # noqa: T201
    seed = os.environ.get("TACIT_SEEDED")
    try:
        joined(joining, stop.is_set, seeded=None if seed is None else int(seed), heard=heard)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    with DeviceStore.opened(joining.folder, joining.key_file) as store:
        answers = len(store.sent())
    if joining.as_json:
        print(json.dumps({"folder": str(joining.folder), "answers": answers}))  # noqa: T201
    return 130 if stop.is_set() else 0
