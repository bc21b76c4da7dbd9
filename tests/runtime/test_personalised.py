"""What is folded in for a moment leaves the world as it is, and copies nothing else."""

import numpy as np
import pytest

from tacit.config.experiment import Experiment, resolved
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.run import federation_of, personalised
from tacit.runtime.simulate import new_world, one_round

ASKED = {"method": "dp-fedncf-dgc", "data": "demo:users=60,items=40,mean=10"}
SMALL = {"factors": 3, "tower": "8-6-4", "rounds": 2, "epochs": 1}


@pytest.mark.parametrize("split", ["by-user", "leave-one-out"])
def test_arrays_that_folding_in_does_not_write_are_not_copied(split):
    _, plan = resolved(Experiment.from_mapping({**ASKED, "split": split, "settings": SMALL}))
    assert isinstance(plan.method, Method)
    world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(1))
    one_round(world)
    before = {name: array.copy() for name, array in world.private.items()}
    few = plan.split.test_users[:3]
    found = personalised(world, plan, few)
    for name, array in world.private.items():
        assert np.array_equal(array, before[name]), name
        written = split == "by-user" and name in {"gmf_user", "mlp_user"}
        assert (found[name] is array) != written, name
    changed = np.flatnonzero((found["gmf_user"] != world.private["gmf_user"]).any(axis=1))
    assert changed.tolist() == (few.tolist() if split == "by-user" else [])
