"""kill -9 at every phase: of the server, the proxy, any device. Scripted: each phase once, all in one run.

A kill is a process that is gone between two writes: what it had in memory is dropped, a new one starts on its
folder. The federation must end with the model, the ledger and the bytes it has without any kill.
"""

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.channel import InMemory, Unwatched, drive
from tacit.deploy.journal import Journal
from tacit.deploy.proxy_calls import ProxyLost
from tacit.deploy.wire import Kind, unframed
from tacit.testing.deployment import FAST, deployed

CASES = {
    "fedrec": Experiment("fedrec", rounds=2, settings={"sums": "grid"}),
    "fedrec++": Experiment("fedrec++", rounds=2, settings={"denoisers": 2, "sums": "grid"}),
    "fmf-ldp": Experiment("fmf-ldp", rounds=2, settings={"k": 4, "n_min": 5}),
    "fedmmf": Experiment("fedmmf", rounds=2),
}
WRITES = (
    *("open", "close_step", "save_state", "keep_leg", "keep_advance", "keep_casting"),
    *("keep_round", "keep_to_forget", "forgotten"),
)


class Killed(BaseException):
    """The process is gone."""


def ended(whole):
    """What a federation leaves: model, ledger, refusals."""
    shared = {name: array.copy() for name, array in whole.coordinator.state.shared.items()}
    return shared, [record.to_json() for record in whole.journal.records()]


def watched(whole):
    """Sealed reports and letters as they pass on their way to the proxy."""
    passed, to_proxy = [], whole.to_proxy

    def watch(wire):
        frame = unframed(wire, 1 << 30)
        if frame.kind is Kind.POST:
            passed.extend(part for part in frame.parts if part)
        return to_proxy(wire)

    whole.to_proxy = watch
    return passed


def assert_proxy_forgot(whole, passed):
    """Nothing of anybody's is left in the proxy's file, nor in the log beside it."""
    if whole.proxy is None:
        return
    assert passed
    files = [file.read_bytes() for file in (whole.folder / "proxy").iterdir()]
    assert not any(part[:40] in content for part in passed for content in files)
    for table in ("exchanges", "senders", "reports", "letters"):
        assert whole.proxy._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    assert whole.journal.to_forget() == []


def assert_same(found, expected):
    assert found[1] == expected[1]
    for name, array in expected[0].items():
        np.testing.assert_array_equal(found[0][name], array)


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    """The same federations with nobody killed."""

    def run(name):
        whole = deployed(tmp_path_factory.mktemp("unharmed"), CASES[name], users=8)
        assert whole.run()
        return ended(whole)

    return {name: run(name) for name in CASES}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", CASES)
def test_a_server_killed_around_every_write_ends_the_same(name, when, unharmed, tmp_path, monkeypatch):
    whole = deployed(tmp_path, CASES[name], users=8)
    seen = set()

    def around(method):
        real = getattr(Journal, method)

        def write(self, *args, **kwargs):
            step = whole.coordinator._step
            key = (
                method,
                whole.coordinator.state.round,
                step and (step.number, step.place.leg),
                args[:1] if method == "open" else 0,
            )
            fresh = key not in seen
            seen.add(key)
            if fresh and when == "before":
                raise Killed
            done = real(self, *args, **kwargs)
            if fresh:
                raise Killed
            return done

        return write

    for method in WRITES:
        monkeypatch.setattr(Journal, method, around(method))
    passed, kills = watched(whole), 0
    while True:
        try:
            if kills:
                whole.restart_server()
            assert whole.run()
            break
        except Killed:
            kills += 1
    assert kills >= 4
    assert_same(ended(whole), unharmed[name])
    assert_proxy_forgot(whole, passed)


FOUNDED = """
import itertools, os, pathlib, sys
from tacit.deploy.journal import Journal
from tacit.deploy.proxy import ProxyService

which, place = sys.argv[1], pathlib.Path(sys.argv[2])
kind, given = {"server": (Journal, {"charter": b"c"}), "proxy": (ProxyService, bytes(32))}[which]

def founding(folder, moment):
    '''In a process of its own, which is killed at its so many-th call; its exit status.'''
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    calls = itertools.count(1)
    def killed(frame, event, argument):
        if event.endswith("call") and "tacit" in frame.f_code.co_filename and next(calls) == moment:
            os.kill(os.getpid(), 9)
    sys.setprofile(killed)
    kind.created(folder, given)
    os._exit(0)

for moment in itertools.count(1):
    folder = place / str(moment)
    status = founding(folder, moment)
    if not (folder / f"{which}.sqlite").exists():
        assert founding(folder, 0) == 0
    kind.opened(folder).close()
    assert not list(folder.glob("*.part")) and not list(folder.glob(".*"))
    if status == 0:
        print(moment)
        break
"""


@pytest.mark.parametrize("which", ["server", "proxy"])
def test_a_folder_killed_while_it_is_founded_is_opened_or_founded_again(which, tmp_path):
    """Real processes, each killed one call later, until one gets through."""
    run = [sys.executable, "-c", FOUNDED, which, str(tmp_path)]
    told = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert told.stderr == ""
    assert int(told.stdout) > 20


def test_masked_messages_are_overwritten_once_their_sum_is_over(tmp_path, monkeypatch):
    whole, kept, real = deployed(tmp_path, CASES["fedmmf"], users=8), [], Journal.keep_leg

    def keep_leg(self, step, leg, slot, message):
        kept.append(message)
        real(self, step, leg, slot, message)
        assert any(message in file.read_bytes() for file in (tmp_path / "server").glob("*.sqlite*"))

    monkeypatch.setattr(Journal, "keep_leg", keep_leg)
    assert whole.run()
    files = [file.read_bytes() for file in (tmp_path / "server").iterdir() if file.is_file()]
    assert len(kept) > 8
    assert not any(message[:40] in content for message in kept for content in files)


class Warned(Unwatched):
    """Keeps what the operator is told."""

    def __init__(self):
        self.lines = []

    def warn(self, line):
        self.lines.append(line)


@pytest.mark.parametrize("name", ["fedrec++", "fmf-ldp"])
def test_a_proxy_that_is_away_when_a_round_ends_forgets_it_when_it_is_back(name, unharmed, tmp_path):
    whole = deployed(tmp_path, CASES[name], users=8)
    passed, to_proxy, away = watched(whole), whole.to_proxy, [True]

    def often_away(wire):
        if unframed(wire, 1 << 30).kind is Kind.FORGET and away[0]:
            raise ProxyLost
        return to_proxy(wire)

    whole.to_proxy, warned = often_away, Warned()
    assert drive(whole.coordinator, InMemory(whole.devices), replace(FAST, deadline=0.2), warned)
    assert ["still holds sealed messages" in line for line in warned.lines] == [True]
    assert_same(ended(whole), unharmed[name])
    away[0] = False
    whole.restart_server()
    assert_proxy_forgot(whole, passed)


@pytest.mark.parametrize("name", ["fedrec", "fedrec++", "fmf-ldp"])
def test_devices_killed_before_and_after_they_write_answer_once_and_the_same(
    name, unharmed, tmp_path, monkeypatch
):
    whole = deployed(tmp_path, CASES[name], users=8)
    told, kills = {}, Counter()

    def coming(slot, wire):
        frame = unframed(wire, 1 << 30)
        key = (slot, frame.head["round"], frame.head["exchange"])
        assert told.setdefault(key, wire) == wire  # a repeat is the very same bytes
        kills[key] += 1
        if kills[key] == 1:  # written down, and the process dies before the answer is out
            whole.restart_device(slot)
            return None
        return wire

    assert whole.run(coming=coming)
    assert min(kills.values()) >= 2
    assert_same(ended(whole), unharmed[name])


def test_a_device_killed_in_the_middle_of_its_write_begins_anew(unharmed, tmp_path, monkeypatch):
    whole = deployed(tmp_path, CASES["fedrec"], users=8)
    dead = set()

    def going(slot, wire):
        if slot in dead:
            return wire
        dead.add(slot)
        store = whole.devices[slot].store
        store._vault.run("BEGIN IMMEDIATE")
        store._vault.run("DELETE FROM people")  # half of something, never committed
        whole.restart_device(slot)
        return None

    assert whole.run(going=going)
    assert_same(ended(whole), unharmed["fedrec"])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["fedrec++", "fmf-ldp"])
def test_a_proxy_killed_around_every_message_loses_and_doubles_nothing(name, when, unharmed, tmp_path):
    whole = deployed(tmp_path, CASES[name], users=8)
    seen = set()

    def to_proxy(wire):
        frame = unframed(wire, 1 << 30)
        key = (frame.kind, frame.head["round"], frame.head["exchange"], frame.head.get("slot"))
        fresh = key not in seen
        seen.add(key)
        if fresh and when == "after":
            whole.proxy.received(wire)
        if fresh:
            whole.restart_proxy()
            raise ProxyLost
        return whole.proxy.received(wire)

    whole.to_proxy = to_proxy
    passed = watched(whole)
    while True:
        try:
            whole.run()
            break
        except ProxyLost:  # while an exchange is opened: the server tries again
            continue
    assert len(seen) > 20
    assert_same(ended(whole), unharmed[name])
    assert_proxy_forgot(whole, passed)


def test_a_server_put_back_to_yesterday_ends_the_same(unharmed, tmp_path):
    import shutil

    whole = deployed(tmp_path, CASES["fedrec"], users=8)

    class AfterOne:
        def round(self, coordinator, seconds):
            pass

        def stopping(self):
            return whole.coordinator.state.round >= 1

    assert not drive(whole.coordinator, InMemory(whole.devices), FAST, AfterOne())
    whole.journal.close()
    shutil.copytree(tmp_path / "server", tmp_path / "yesterday")
    whole.journal = Journal.opened(tmp_path / "server")
    whole.restart_server()
    assert whole.run()
    whole.journal.close()
    shutil.rmtree(tmp_path / "server")
    shutil.copytree(tmp_path / "yesterday", tmp_path / "server")
    whole.journal = Journal.opened(tmp_path / "server")
    whole.restart_server()
    before = {slot: device.store.sent() for slot, device in whole.devices.items()}
    assert whole.run()
    assert_same(ended(whole), unharmed["fedrec"])
    assert {slot: device.store.sent() for slot, device in whole.devices.items()} == before
