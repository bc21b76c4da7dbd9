"""Every way to train a cohort computes the same sum, so their times can be compared."""

import pytest
import torch

from tacit.bench.neural_cohort import (
    CATALOGUE,
    accelerated,
    mapped,
    one_by_one,
    problem,
    raw_samples,
    run,
    side_by_side,
)
from tacit.errors import TacitError


@pytest.mark.parametrize("way", [one_by_one, mapped, raw_samples])
def test_every_way_sends_the_same_sum(way):
    given = problem(3, 3, (6, 5), sets=40, embedding=3)
    ours, theirs = side_by_side(given), way(given)
    assert set(ours) == set(theirs)
    for name, tensor in ours.items():
        scale = tensor.abs().max().item()
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-3, atol=1e-3 * scale + 1e-6)


def test_the_problem_has_ml_1m_s_shape():
    given = problem(2, 1, (4,))
    assert given.net.designs.shape == (301, 36)
    assert len(given.net.encoding.groups) == CATALOGUE
    assert given.weights.sum(axis=1).tolist() == [830.0, 830.0]
    assert [len(labels) for _, labels in given.samples] == [830, 830]
    sizes = sum(array.size for array in problem(1, 1, (64, 32, 16, 8), raw=False).shared.values())
    assert 80_000 < sizes < 100_000


def test_the_report_has_every_ratio():
    found = run(clients=2, epochs=1, repeats=1, tiny=True)
    wanted = {
        f"{size}-{way}" for size in ("small", "large") for way in ("counts-loop", "raw-samples", "vmap")
    }
    assert wanted == set(found["ratios"])
    assert set(accelerated(2, 1, 1, "cpu")) == {"small-2-clients-gpu", "large-2-clients-gpu"}
    with pytest.raises(TacitError, match="1 or more"):
        run(clients=0)
