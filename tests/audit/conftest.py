"""Uploads written down from the formula, and runs small enough to attack in a second."""

import numpy as np
import pytest

from tacit.audit.reconstruction import Upload
from tacit.audit.suite import observed
from tacit.config.experiment import Experiment, resolved
from tacit.runtime.listener import Listener


@pytest.fixture(scope="session")
def upload_of():
    """``gain (u.v - r) u + reg v`` for some items, in the type they would travel in."""

    def make(table, person, ids, ratings, reg=0.0, gain=1.0, kind="f8"):
        rows = gain * (table[ids] @ person - ratings)[:, None] * person + reg * table[ids]
        return Upload(np.asarray(ids, dtype="i4"), rows.astype(kind), table)

    return make


@pytest.fixture(scope="session")
def evidence_on():
    """What is seen of the first rounds of an experiment on a small synthetic data set."""

    def run(method, rounds=3, data="demo:users=80,items=120,mean=15", folder=None, **keys):
        experiment = Experiment.from_mapping({"method": method, "data": data, **keys})
        _, plan = resolved(experiment, folder)
        return observed(plan, rounds, Listener())

    return run
