"""Driving a coordinator: send what is due, hand over what arrives, go on when nobody is waited for."""

import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from tacit.deploy.coordinator import Coordinator
from tacit.deploy.participation import Participant
from tacit.deploy.proxy_calls import ProxyLost

Bend = Callable[[int, bytes], bytes | None]


class Channel(Protocol):
    """Carries frames to devices and back; what is lost is simply not there."""

    def send(self, due: Mapping[int, bytes]) -> None:
        """Send a frame to each of these people's devices."""
        ...

    def arrived(self, wait: float) -> Iterable[tuple[int, bytes]]:
        """What has come since the last call; waits at most so many seconds for something."""
        ...

    def away(self) -> Set[int]:
        """Whose devices are known to be gone: they are not waited for."""
        ...


@dataclass(frozen=True)
class Pace:
    """How long things may take, in seconds: an answer, and until a question is asked again.

    Who is known to be gone is given ``grace`` to come back.
    """

    deadline: float = 60.0
    again: float = 15.0
    grace: float = 5.0
    wait: float = 0.5


class Unwatched:
    """Hears how the rounds go, and shows nothing; a display overrides what it wants."""

    def enrolled(self, here: int, expected: int) -> None:
        """So many of so many people are there."""

    def warn(self, line: str) -> None:
        """Something the operator should know."""

    def round(self, coordinator: Coordinator, seconds: float) -> None:
        """A round is over."""

    def stopping(self) -> bool:
        """Whether to stop after this step."""
        return False


def drive(
    coordinator: Coordinator,
    channel: Channel,
    pace: Pace | None = None,
    watcher: Unwatched | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Run the federation to its end; ``False`` if it was asked to stop before.

    Deadlines are told by a clock that never jumps; the wall clock is not looked at. While nobody's device is
    there, no round is closed.
    """
    pace, watcher = pace or Pace(), watcher or Unwatched()
    while not coordinator.finished:
        began, before = clock(), coordinator.state.round
        while not coordinator.finished and coordinator.state.round == before:
            if watcher.stopping():
                return False
            try:
                if not _leg(coordinator, channel, pace, watcher, clock):
                    return False
                coordinator.advance()
            except ProxyLost:
                time.sleep(min(pace.wait, 1.0))
        watcher.round(coordinator, clock() - began)
        coordinator.took(before, clock() - began)
    _clear_proxy(coordinator, pace, watcher, clock)
    return True


def _clear_proxy(
    coordinator: Coordinator, pace: Pace, watcher: Unwatched, clock: Callable[[], float]
) -> None:
    """Have the proxy forget the last rounds; one that is away is waited for as long as a device."""
    end = clock() + pace.deadline
    while not coordinator.clear_proxy():
        if watcher.stopping() or clock() >= end:
            watcher.warn(
                "the proxy was not reached and still holds sealed messages of rounds that are over; "
                "start the server again once it is back"
            )
            return
        time.sleep(min(pace.wait, 1.0))


def _leg(
    coordinator: Coordinator, channel: Channel, pace: Pace, watcher: Unwatched, clock: Callable[[], float]
) -> bool:
    """Ask and take answers until a leg can be closed; ``False`` if told to stop before."""
    due, told = coordinator.due(), False
    began = asked = clock()
    while coordinator.waiting:
        if watcher.stopping():
            return False
        coordinator.notice()
        if due:
            channel.send(due)
        for slot, wire in channel.arrived(pace.wait):
            coordinator.receive(slot, wire)
        now = clock()
        gone = channel.away() if now - began >= pace.grace else frozenset[int]()
        if coordinator.reachable <= gone:
            if not told:
                watcher.warn("nobody's device is there; waiting for one")
            began, told = now, True
        elif now - began >= pace.deadline or coordinator.waiting <= gone:
            break
        due = {}
        if now - asked >= pace.again:
            asked, due = now, coordinator.due()
    return True


@dataclass
class InMemory:
    """Devices in this process. A test may lose or bend frames on the way with ``going`` and ``coming``.

    Example:
        ``InMemory({0: participant}, coordinator)`` enrols nobody: hand each device's card over with
        :func:`gathered` first.
    """

    devices: dict[int, Participant]
    going: Bend = field(default=lambda slot, wire: wire)  # noqa: ARG005
    coming: Bend = field(default=lambda slot, wire: wire)  # noqa: ARG005
    _come: list[tuple[int, bytes]] = field(default_factory=list, init=False)

    def send(self, due: Mapping[int, bytes]) -> None:
        """Answered at once."""
        for slot, wire in due.items():
            sent = self.going(slot, wire)
            if sent is None or slot not in self.devices:
                continue
            back = self.coming(slot, self.devices[slot].answer(sent))
            if back is not None:
                self._come.append((slot, back))

    def arrived(self, wait: float) -> Iterable[tuple[int, bytes]]:
        """Everything there is."""
        del wait
        come, self._come = self._come, []
        return come

    def away(self) -> Set[int]:
        """Nobody: who does not answer may yet."""
        return frozenset()


def gathered(coordinator: Coordinator, participants: Iterable[Participant]) -> dict[int, Participant]:
    """Enrol these devices; who answers for which slot."""
    found: dict[int, Participant] = {}
    for participant in participants:
        for slot in coordinator.enrol(participant.answer(coordinator.hello())):
            found[slot] = participant
    return found
