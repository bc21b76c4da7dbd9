"""The null-model audit replays what was drawn, from wherever it was drawn."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment, resolved
from tacit.data import load
from tacit.evaluate.null_model import FALSE_ALARM
from tacit.local.logistic_factors import LogisticFactors
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.negatives import audited
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import new_world, set_up
from tacit.types import Cohort

DATA = "demo:users=300,items=120,mean=20"


@dataclass(frozen=True, kw_only=True)
class Peeking(LogisticFactors):
    """Draws its negatives among what was met neither in training nor in the test."""

    everything: Cohort

    def negatives(self, received, cohort, keys):
        del cohort
        return super().negatives(received, self.everything, keys)


@pytest.mark.parametrize(
    "settings", [{"pool": "received"}, {"pool": "received", "redraw": "round"}, {"pool": "catalogue"}]
)
def test_a_sampler_that_avoids_the_test_is_found_and_a_clean_one_is_not(settings):
    asked = {"method": "priv-fedmf-sub", "data": DATA, "settings": {"rounds": 20, **settings}}
    _, plan = resolved(Experiment.from_mapping(asked))
    assert isinstance(plan.method, Method)
    world = new_world(plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(1))
    set_up(world)
    clean = audited(world, plan.split)
    assert clean.p_value > FALSE_ALARM
    train, *rest = world.method.exchanges
    local = train.local
    assert isinstance(local, LogisticFactors)
    everything = federation_of(plan.dataset, load(DATA).interactions).cohort(world.federation.people)
    told = {name: getattr(local, name) for name in local.__dataclass_fields__}
    leaky = replace(train, local=Peeking(**told, everything=everything))
    world.method = replace(world.method, exchanges=(leaky, *rest))
    found = audited(world, plan.split)
    assert found.p_value < FALSE_ALARM
    # held-out items are popular, and so is a sub-model: the counter's chances are those within it
    assert (found.users < 300) == (settings["pool"] == "received")
    assert np.isclose(found.chance, clean.chance)
