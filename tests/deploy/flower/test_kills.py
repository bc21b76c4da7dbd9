"""kill -9 of real processes in the middle of rounds, each started again: all ends as if nothing had been."""

import os
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.children import Children
from tacit.deploy.journal import Journal
from tacit.deploy.up import Trial, federation_tried, prepared
from tacit.rng import SeededKeys
from tacit.runtime.simulate import new_world, one_round

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

    @property
    def round(self):
        journal = Journal.opened(self._grounds.folder / "server")
        try:
            return journal.state().round if journal.state() is not None else 0
        finally:
            journal.close()


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
