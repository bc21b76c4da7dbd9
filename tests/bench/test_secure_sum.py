"""The benchmark of secure sums reports what the contract names; the full size keeps its bounds."""

import pytest

from tacit.bench.secure_sum import run
from tacit.errors import TacitError


def test_it_reports_seconds_and_ratios():
    found = run(clients=30, coordinates=2000, values=1, repeats=1)
    assert found["bench"] == "secure-sum"
    assert all(spent >= 0 for spent in found["seconds"].values())
    assert {"floor", "paillier", "paillier-packed"} <= set(found["ratios"])
    assert found["ratios"]["paillier"] > found["ratios"]["paillier-packed"] > 1
    assert found["bytes"]["up-per-client"] > found["bytes"]["vector"] == 8000
    assert any("scaled up" in note for note in found["notes"])


@pytest.mark.slow
def test_masks_stay_within_twice_the_floor_and_far_from_paillier():
    found = run()
    assert found["ratios"]["floor"] <= 2
    assert found["ratios"]["paillier"] >= 1000


def test_nothing_measured_is_refused():
    with pytest.raises(TacitError, match="at least one"):
        run(repeats=0)
