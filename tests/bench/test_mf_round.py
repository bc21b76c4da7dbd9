"""The bench measures ways that agree, and says what the contract asks for."""

import json

import numpy as np
import pytest

from tacit.bench.mf_round import KINDS, VARIANTS, fused, run, synthetic
from tacit.errors import TacitError


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_all_ways_compute_the_same_round(variant, kind):
    problem = synthetic(60, 90, 1500, 20, 1).first(50)
    meant = fused(problem, KINDS[kind])[:, :20]
    found = variant.total(problem, KINDS[kind])[:, :20]
    assert np.abs(meant).max() > 1
    np.testing.assert_allclose(found, meant, rtol=1e-4, atol=1e-4)


def test_the_log_has_the_shape_asked_for():
    problem = synthetic(200, 150, 4000, 4, 2)
    assert problem.offsets[-1] == len(problem.items) == 4000
    for user in range(200):
        held = problem.items[problem.offsets[user] : problem.offsets[user + 1]]
        assert len(held) >= 1
        assert (np.diff(held) > 0).all()
    popularity = np.sort(np.bincount(problem.items, minlength=150))
    assert popularity[-15:].sum() > 3 * popularity[:15].sum()


def test_the_answer_is_the_json_of_the_contract():
    found = json.loads(json.dumps(run(users=40, items=60, ratings=900, dim=20, repeats=1)))
    assert found["bench"] == "mf-round"
    for kind in ("average", "predicted"):
        seconds = found["seconds"]
        assert found["ratios"][f"floor-{kind}"] == pytest.approx(
            seconds[f"fused-{kind}"] / seconds[f"floor-{kind}"]
        )
        assert found["ratios"][f"torch-gather-{kind}"] == pytest.approx(
            seconds[f"torch-gather-{kind}"] / seconds[f"fused-{kind}"]
        )


def test_impossible_logs_are_refused():
    with pytest.raises(TacitError, match="at most half"):
        synthetic(10, 10, 90, 4, 0)
    with pytest.raises(TacitError, match="at least once"):
        run(repeats=0)
