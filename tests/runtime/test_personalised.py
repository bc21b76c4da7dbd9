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


@pytest.mark.parametrize("adapt", ["all", "user"])
@pytest.mark.parametrize("ids", [0, 4])
def test_a_device_whose_own_steps_diverge_keeps_what_it_was_sent(adapt, ids):
    """Steps of 1e30 leave nothing finite; what was sent still ranks, as if nobody had adapted."""
    asked = {"method": "privrec", "data": "demo:users=40,items=30,mean=10", "split": "by-user"}
    found = {}
    for way, rate in ((adapt, 1e30), ("none", 0.3)):
        settings = {"rounds": 1, "clients": 5, "ids": ids, "adapt": way, "tune_rate": rate}
        _, plan = resolved(Experiment.from_mapping({**asked, "settings": settings}))
        assert isinstance(plan.method, Method)
        world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(1))
        one_round(world)
        scorer = world.method.model.scorer(world.server.shared, personalised(world, plan))
        found[way] = scorer.scores(plan.split.test_users)
    assert np.isfinite(found[adapt]).all()
    np.testing.assert_allclose(found[adapt], found["none"], rtol=1e-5, atol=1e-6)
