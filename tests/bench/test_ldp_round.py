"""The ways to compute an epoch agree, and the bench says what the contract asks for."""

import json

import numpy as np
import pytest

from tacit.bench.ldp_round import VARIANTS, Epoch, run
from tacit.errors import TacitError
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation


def epoch(people=600, items=30, reports=7):
    """More people than one chunk holds."""
    federation = tiny_federation(people, items, seed=1)
    table = np.random.default_rng(1).normal(0, 0.5, (items, 5)).astype(np.float32)
    keys, chunk = SeededKeys(1), np.arange(512, dtype=np.int32)
    words = keys.words(chunk, "entries", 0, reports), keys.words(chunk, "coins", 0, reports)
    return Epoch(federation.offsets, federation.items, table, reports, words)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_all_ways_count_the_same_bits(variant):
    meant = VARIANTS[0].run(epoch(), 600).reshape(-1)
    found = variant.run(epoch(), 600).reshape(-1)
    assert np.abs(meant).sum() > 100
    # Single and double precision may disagree about a coin within 1e-6 of its chance: two counts in 4,200.
    assert np.abs(found - meant).sum() <= 4


def test_the_answer_is_the_json_of_the_contract():
    sizes = {"users": 60, "items": 500, "trained": 30, "epochs": 2, "reports": 5, "repeats": 1}
    found = json.loads(json.dumps(run(**sizes)))
    assert found["bench"] == "ldp-round"
    seconds = found["seconds"]
    for name in ("numpy-full-gradient", "native-full-gradient"):
        assert found["ratios"][name] == pytest.approx(seconds[name] / seconds["lazy"])
    assert "train-2-epochs-30-people" in seconds


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(TacitError, match="measure at least once"):
        run(users=10, items=500, trained=20, repeats=1)
