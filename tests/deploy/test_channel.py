"""Who is waited for, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.channel import InMemory, Pace, Unwatched, drive
from tacit.testing.deployment import deployed

FEDREC = Experiment("fedrec", rounds=3, settings={"sums": "grid"})
PATIENT = Pace(deadline=100.0, again=20.0, wait=0.0, grace=5.0)


@dataclass
class Gone(InMemory):
    """Some devices are gone from a round on; the channel knows it."""

    coordinator: Any = None
    people: frozenset = frozenset()
    back: float = 1e9
    clock: Any = None
    since: int = 1

    def gone(self):
        started = self.coordinator.state.round >= self.since
        return self.people if started and self.clock.now < self.back else frozenset()

    def send(self, due):
        super().send({slot: wire for slot, wire in due.items() if slot not in self.gone()})

    def away(self):
        return self.gone()


@dataclass
class Clock:
    """A second passes whenever it is looked at."""

    now: float = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@dataclass
class Watch(Unwatched):
    """Remembers what it hears, and stops when told."""

    lines: list = field(default_factory=list)
    seconds: list = field(default_factory=list)
    stop: Callable[[], bool] = bool

    def warn(self, line):
        self.lines.append(line)

    def round(self, coordinator, seconds):
        del coordinator
        self.seconds.append(seconds)

    def stopping(self):
        return self.stop()


def gone(whole, people, clock, **given):
    return Gone(whole.devices, coordinator=whole.coordinator, people=frozenset(people), clock=clock, **given)


def driven(tmp_path, people, **given):
    whole = deployed(tmp_path, FEDREC, users=10)
    clock, watch = Clock(), Watch()
    channel = Gone(
        whole.devices, coordinator=whole.coordinator, people=frozenset(people), clock=clock, **given
    )
    assert drive(whole.coordinator, channel, PATIENT, watch, clock)
    return whole, watch


def test_a_third_that_is_known_to_be_gone_is_given_a_moment_and_not_the_whole_deadline(tmp_path):
    whole, watch = driven(tmp_path, {1, 4, 7})
    assert [record.facts.answered for record in whole.journal.records()] == [10, 7, 7]
    assert all(PATIENT.grace <= seconds < 3 * PATIENT.grace for seconds in watch.seconds[1:])
    assert watch.lines == []


def test_somebody_who_is_not_known_to_be_gone_has_the_whole_deadline(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=10)
    clock, watch = Clock(), Watch()
    lossy = InMemory(whole.devices, coming=lambda slot, wire: None if slot == 3 else wire)
    assert drive(whole.coordinator, lossy, PATIENT, watch, clock)
    assert all(PATIENT.deadline <= seconds < 1.2 * PATIENT.deadline for seconds in watch.seconds)


def test_no_round_is_spent_while_nobody_is_there(tmp_path):
    whole, watch = driven(tmp_path, set(range(10)), back=5000.0)
    assert [record.facts.answered for record in whole.journal.records()] == [10, 10, 10]
    assert watch.lines == ["nobody's device is there; waiting for one"]
    assert watch.seconds[1] > 1000


@pytest.mark.parametrize("after", [1, 7, 30])
def test_told_to_stop_it_stops_in_the_middle_of_waiting_and_goes_on_later(tmp_path, after):
    whole = deployed(tmp_path, FEDREC, users=10)
    clock, asked = Clock(), iter(range(10**6))
    watch = Watch(stop=lambda: next(asked) >= after)
    channel = Gone(
        whole.devices, coordinator=whole.coordinator, people=frozenset(range(10)), clock=clock, since=0
    )
    assert not drive(whole.coordinator, channel, PATIENT, watch, clock)
    assert whole.coordinator.state.round == 0
    whole.restart_server()
    assert whole.run()
    assert [record.facts.answered for record in whole.journal.records()] == [10, 10, 10]
