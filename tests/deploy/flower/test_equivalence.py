"""Twelve people simulated, and as twelve processes over Flower with TLS: same model, ledger and bytes."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.channel import Unwatched
from tacit.deploy.claims import derivable
from tacit.deploy.journal import Journal
from tacit.deploy.up import Trial, federation_tried, tried
from tacit.rng import SeededKeys
from tacit.runtime.simulate import new_world, one_round, set_up

PEOPLE, SEED = 12, 7
DATA = "demo:users=40,items=40,mean=12"
CASES = {
    "fedrec": Experiment("fedrec", rounds=2, settings={"clients": 0.5}),
    "fedrec, whole numbers": Experiment("fedrec", rounds=2, settings={"sums": "grid"}),
    "fedrec++": Experiment("fedrec++", rounds=2, settings={"denoisers": 2, "rho": 1.0}),
    "fedrec++, whole numbers": Experiment("fedrec++", rounds=2, settings={"denoisers": 2, "sums": "grid"}),
    "fmf-ldp": Experiment("fmf-ldp", rounds=2, settings={"k": 8, "n_min": 10}),
    "privrec": Experiment("privrec", rounds=2, settings={"clients": 6}),
    "fedmmf": Experiment("fedmmf", rounds=2, settings={"rate": 0.01}),
}
EXACT = {"fedrec, whole numbers", "fedrec++, whole numbers", "fmf-ldp", "fedmmf"}
UNSEEN = {"rows_out", "rows_in"}  # rows of sealed letters: nobody between two devices can count them


def simulated(trial):
    """The simulation's model and ledger."""
    complete, method, federation = federation_tried(trial)
    world = new_world(method, federation, SeededKeys(SEED), delta=float(complete.delta))
    ledger = set_up(world)
    for _ in range(world.method.rounds):
        ledger += one_round(world)
    return world.server.shared, ledger


def lines(records, ledger):
    """Both ledgers as plain data, without what stays on devices."""
    expected = [{**line.to_json(), "claim": derivable(line.claim).to_json()} for line in ledger]
    found = [record.to_json() for record in records]
    for line in [*expected, *found]:
        line["diagnostics"] = None
        line["traffic"] = {name: value for name, value in line["traffic"].items() if name not in UNSEEN}
    return found, expected


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the engine's own packages
@pytest.mark.parametrize("name", CASES)
def test_twelve_processes_make_the_model_ledger_and_bytes_of_the_simulation(name, tmp_path):
    experiment = replace(CASES[name], data=DATA, seed=SEED)
    trial = Trial(experiment, PEOPLE, processes=True, seeded=True, keep=tmp_path / "kept")
    view = tried(trial, Unwatched())
    assert view["refusals"] == {}
    assert view["rounds"]["done"] == 2
    journal = Journal.opened(tmp_path / "kept" / "server")
    found, records = journal.state().shared, journal.records()
    journal.close()
    shared, ledger = simulated(trial)
    assert set(found) == set(shared)
    for array, expected in shared.items():
        assert found[array].dtype == expected.dtype
        if name in EXACT:
            np.testing.assert_array_equal(found[array], expected)
        else:
            np.testing.assert_allclose(found[array], expected, rtol=2e-5, atol=1e-6)
    told, wanted = lines(records, ledger)
    assert told == wanted
    assert sum(record.traffic.up for record in records) > 0
