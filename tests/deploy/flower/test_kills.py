"""kill -9 of real processes in the middle of rounds, each started again: all ends as if nothing had been."""

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.children import Children
from tacit.deploy.journal import Journal
from tacit.deploy.up import Trial, federation_tried, prepared
from tacit.federation.sampling import Sampling
from tacit.rng import SeededKeys
from tacit.runtime.simulate import new_world, one_round, set_up

PEOPLE, SEED, ROUNDS = 6, 7, 8
MOST_SECONDS = 500
PACE = ("--deadline", "240")  # nobody is given up on: the model is the one over everybody


class Federation:
    """Its processes by name; each can be killed and started again with the same command."""

    def __init__(self, children, grounds):
        self._children = children
        self._grounds = grounds
        self.running = {}
        folder = grounds.folder
        tacit = [sys.executable, "-m", "tacit"]
        vouched = ["--certificates", str(folder / "certificates")]
        server = [*tacit, "server", str(folder / "server"), "--port", str(grounds.port), *vouched, *PACE]
        proxy = [*tacit, "proxy", str(folder / "proxy"), "--port", str(grounds.proxy_port), *vouched]
        joining = ["--server", grounds.server, "--ca", str(grounds.certified.authority)]
        self.commands = {"server": server, "proxy": proxy}
        self.commands |= {at.name: [*tacit, "device", str(at), *joining] for at in grounds.devices}

    def start(self, name):
        log = self._grounds.folder / "logs" / f"{name}.log"
        settings = {"TACIT_SEEDED": str(SEED), "OMP_NUM_THREADS": "1"}
        self.running[name] = self._children.start(self.commands[name], log, settings)

    def kill(self, name):
        os.kill(self.running[name].pid, signal.SIGKILL)
        self.running[name].wait()

    def freeze(self, name):
        """It holds still where it is, and may then be killed there."""
        os.kill(self.running[name].pid, signal.SIGSTOP)

    def asked(self, which, question):
        """What stands in the server's or the proxy's file now."""
        file = self._grounds.folder / which / f"{which}.sqlite"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as db:
            return db.execute(question).fetchall()

    def until(self, which, question, end):
        """Wait for the moment at which something stands there."""
        while not (found := self.asked(which, question)):
            assert time.monotonic() < end
            assert self.running["server"].poll() is None
            time.sleep(0.002)
        return found

    @property
    def round(self):
        journal = Journal.opened(self._grounds.folder / "server")
        try:
            return journal.state().round if journal.state() is not None else 0
        finally:
            journal.close()


@dataclass(frozen=True)
class Only(Sampling):
    """Asks those who will answer: what a simulation over the survivors looks like."""

    people: tuple[int, ...]

    def draw(self, people, round, keys):
        del people, round, keys
        return np.array(self.people, dtype=np.int32)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the engine's own packages
def test_every_process_killed_in_the_middle_and_started_again_ends_as_if_nothing_had_been(tmp_path):
    settings = {"denoisers": 2, "rho": 1.0, "sums": "grid"}
    data = "demo:users=40,items=40,mean=12"
    experiment = Experiment("fedrec++", data=data, rounds=ROUNDS, seed=SEED, settings=settings)
    trial = Trial(experiment, PEOPLE, processes=True, seeded=True, keep=tmp_path)
    grounds, end = prepared(trial, tmp_path), time.monotonic() + MOST_SECONDS
    with Children() as children:
        whole = Federation(children, grounds)
        for name in whole.commands:
            whole.start(name)
        victims = ["server", "proxy", "device0000", "server", "device0003"]
        for number, victim in enumerate(victims, 1):
            while whole.round < number:
                assert time.monotonic() < end
                time.sleep(0.1)
            time.sleep(0.15 * (number % 5))  # at another phase each time
            whole.kill(victim)
            whole.start(victim)
        assert whole.running["server"].wait(max(1.0, end - time.monotonic())) == 0
    journal = Journal.opened(tmp_path / "server")
    found, records, told = journal.state().shared, journal.records(), journal.rounds()
    journal.close()
    assert len(told) == ROUNDS
    assert [row["answered"] for row in told] == [row["invited"] for row in told]
    complete, method, federation = federation_tried(replace(trial, keep=None))
    world = new_world(method, federation, SeededKeys(SEED), delta=float(complete.delta))
    ledger = [line for _ in range(ROUNDS) for line in one_round(world)]
    for array, expected in world.server.shared.items():
        np.testing.assert_array_equal(found[array], expected)
    assert [record.facts.answered for record in records] == [line.facts.answered for line in ledger]
    assert [record.traffic.up for record in records] == [line.traffic.up for line in ledger]


def simulated(trial, rounds, lost=None):
    """The simulation's model where in each round these people worked and were not heard."""
    complete, method, federation = federation_tried(replace(trial, keep=None))
    world = new_world(method, federation, SeededKeys(SEED), delta=float(complete.delta))
    set_up(world)
    for gone in [list(one) for one in lost or [()] * rounds]:
        everybody = deepcopy(world)
        one_round(everybody)
        if not gone:
            world = everybody
            continue
        heard = tuple(one for one in federation.people.tolist() if one not in gone)
        exchanges = tuple(replace(one, sampling=Only(heard)) for one in world.method.exchanges)
        whole, world.method = world.method, replace(world.method, exchanges=exchanges)
        one_round(world)
        world.method = whole
        for name, rows in world.private.items():  # what a device learned it keeps, heard or not
            rows[gone] = everybody.private[name][gone]
    return world.server.shared


OPEN = "SELECT nonce FROM senders JOIN exchanges USING (nonce) WHERE closed = 0"
SENDERS = f"{OPEN} GROUP BY nonce HAVING COUNT(*)"
MOMENTS = (  # where a round through the proxy is when somebody is killed, and who
    ("proxy", "SELECT nonce FROM exchanges WHERE closed = 0", ["proxy"]),
    ("proxy", f"{SENDERS} >= 1", ["proxy"]),
    ("proxy", f"{SENDERS} >= 2", ["server"]),
    ("proxy", f"{SENDERS} >= 4", ["server", "proxy"]),
    ("proxy", "SELECT nonce FROM exchanges WHERE closed = 1", ["proxy"]),
    ("server", "SELECT nonce FROM to_forget", ["proxy", "server"]),
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the engine's own packages
def test_the_proxy_and_the_server_killed_at_every_phase_of_shuffled_rounds_lose_and_double_nothing(tmp_path):
    data = "demo:users=40,items=40,mean=12"
    settings = {"k": 8, "n_min": 5}
    experiment = Experiment("fmf-ldp", data=data, rounds=ROUNDS, seed=SEED, settings=settings)
    trial = Trial(experiment, PEOPLE, processes=True, seeded=True, keep=tmp_path)
    grounds, end = prepared(trial, tmp_path), time.monotonic() + MOST_SECONDS
    with Children() as children:
        whole = Federation(children, grounds)
        for name in whole.commands:
            whole.start(name)
        before = set()
        for which, question, victims in MOMENTS:
            while not (found := set(whole.until(which, question, end)) - before):  # of another round
                assert time.monotonic() < end
            before |= found
            for victim in victims:
                whole.kill(victim)
            for victim in victims:
                whole.start(victim)
        assert whole.running["server"].wait(max(1.0, end - time.monotonic())) == 0
        left = [whole.asked("proxy", f"SELECT COUNT(*) FROM {table}") for table in ("exchanges", "reports")]
    assert left == [[(0,)], [(0,)]]
    journal = Journal.opened(tmp_path / "server")
    found, told = journal.state().shared, journal.rounds()
    assert journal.to_forget() == []
    journal.close()
    assert [row["answered"] for row in told] == [PEOPLE] * ROUNDS
    for array, expected in simulated(trial, ROUNDS).items():
        np.testing.assert_array_equal(found[array], expected)


IN_SUM = 12  # people
INPUTS = 2  # the leg in which masked updates are sent: whoever is lost before it adds nothing


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the engine's own packages
def test_devices_and_the_server_killed_within_secure_sums_leave_the_sum_of_the_survivors(tmp_path):
    data, rounds = "demo:users=40,items=40,mean=12", 4
    settings = {"rate": 0.01}
    experiment = Experiment(
        "fedmmf", data=data, rounds=rounds, seed=SEED, settings=settings, transport="secure-sum:0.3:0.05"
    )
    trial = Trial(experiment, IN_SUM, processes=True, seeded=True, keep=tmp_path)
    grounds, end = prepared(trial, tmp_path), time.monotonic() + MOST_SECONDS
    lost = [()] * rounds
    with Children() as children:
        whole = Federation(children, grounds)
        for name in whole.commands:
            if name != "proxy":
                whole.start(name)
        for number, (slot, legs) in enumerate(((3, 1), (5, 2), (7, 3))):
            device = f"device{slot:04d}"
            while whole.round < number:
                assert time.monotonic() < end
                time.sleep(0.01)
            whole.until("server", f"SELECT step FROM advanced GROUP BY step HAVING COUNT(*) >= {legs}", end)
            whole.freeze(device)
            leg = stalled(whole, slot, end)
            if leg <= INPUTS:
                lost[whole.round] = (slot,)
            for victim in (device, "server"):
                whole.kill(victim)
            for victim in ("server", device):
                whole.start(victim)
        assert whole.running["server"].wait(max(1.0, end - time.monotonic())) == 0
    journal = Journal.opened(tmp_path / "server")
    found, told = journal.state().shared, journal.rounds()
    journal.close()
    assert [row["said"] for row in told if row["round"] >= 0] == [""] * rounds
    assert [row["answered"] for row in told if row["round"] >= 0] == [IN_SUM - len(gone) for gone in lost]
    assert any(lost)
    plain = replace(experiment, transport="", protect=("grid:14:32",), settings={**settings, "plain": True})
    expected = simulated(replace(trial, experiment=plain), rounds, lost)
    np.testing.assert_allclose(found["items"], expected["items"], rtol=0, atol=1e-6)


def stalled(whole, slot, end):
    """The leg in which everybody waits for one person who holds still."""
    legs = "SELECT leg, slot FROM legs WHERE leg = (SELECT COUNT(*) FROM advanced)"
    since, before = time.monotonic(), None
    while time.monotonic() < end:
        found = whole.asked("server", legs)
        if found != before:
            since, before = time.monotonic(), found
        people = {one for _, one in found}
        if slot not in people and len(people) >= IN_SUM - 2 and time.monotonic() - since > 2.0:
            return found[0][0]
        time.sleep(0.02)
    raise AssertionError("nobody waits")
