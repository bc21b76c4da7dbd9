"""The same federation simulated and deployed: same model, same ledger, same bytes."""

from dataclasses import asdict

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.claims import derivable
from tacit.testing.deployment import deployed, simulated

CASES = {
    "fedrec": Experiment("fedrec", rounds=4, settings={"clients": 0.5}),
    "fedrec, whole numbers": Experiment("fedrec", rounds=3, settings={"sums": "grid"}),
    "fedrec++": Experiment("fedrec++", rounds=4, settings={"denoisers": 2, "rho": 1.0}),
    "fedrec++, whole numbers": Experiment("fedrec++", rounds=3, settings={"denoisers": 2, "sums": "grid"}),
    "fmf-ldp": Experiment("fmf-ldp", rounds=3, settings={"k": 8, "n_min": 10}),
    "privrec": Experiment("privrec", rounds=2, settings={"clients": 6}),
    "fedmmf": Experiment("fedmmf", rounds=3, settings={"rate": 0.01}),
    "fedmf, noise in shares": Experiment(
        "fedmf", rounds=2, transport="secure-sum:0.1:0.05", protect=("skellam:0.5:4:3.0",)
    ),
}
EXACT = {"fedrec, whole numbers", "fedrec++, whole numbers", "fmf-ldp", "fedmmf", "fedmf, noise in shares"}
UNSEEN = {"rows_out", "rows_in"}  # rows of sealed letters: nobody between two devices can count them


@pytest.mark.parametrize("name", CASES)
def test_devices_make_the_model_ledger_and_bytes_of_the_simulation(name, tmp_path):
    whole = deployed(tmp_path, CASES[name])
    assert whole.run()
    world, ledger = simulated(CASES[name], whole.federation)
    for array in world.server.shared:
        found, expected = whole.coordinator.state.shared[array], world.server.shared[array]
        assert found.dtype == expected.dtype
        if name in EXACT:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    records = whole.journal.records()
    assert len(records) == len(ledger)
    for record, line in zip(records, ledger, strict=True):
        told, expected = record.to_json(), line.to_json()
        expected["claim"] = derivable(line.claim).to_json()
        for one in (told, expected):
            one["diagnostics"] = None  # they stay on the devices
            one["traffic"] = {key: v for key, v in one["traffic"].items() if key not in UNSEEN}
        assert told == expected
    assert asdict(records[-1].traffic)["up"] > 0
    assert whole.journal.refusals() == {}
