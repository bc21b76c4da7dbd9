"""Every method runs on devices as it runs in the simulation, or says why it cannot at the start."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.config import catalogue
from tacit.config.experiment import Experiment
from tacit.deploy.claims import derivable
from tacit.errors import TacitError
from tacit.testing.deployment import deployed, simulated

FEW = {"clients": 6}
CROWD = {"n_min": 10}
SETTINGS = {
    "dp-privrec": FEW, "privrec": FEW, "nn-self": FEW, "fofl-self": FEW,
    "fmf-ldp": CROWD, "ldp-popularity": CROWD, "ldp-spectral": CROWD,
}  # fmt: skip
ONE_ROUND = {"dplcf", "ldp-popularity", "ldp-spectral", "local-lr", "local-fm", "local-nn"}


def experiment(name, **given):
    return Experiment(
        name, rounds=0 if name in ONE_ROUND else 2, settings={**SETTINGS.get(name, {}), **given}
    )


def built_in():
    return [name for name, maker in catalogue.methods().items() if maker.__module__.startswith("tacit.")]


@pytest.mark.parametrize("name", built_in())
def test_a_method_deploys_as_it_is_simulated(name, tmp_path):
    whole = deployed(tmp_path, experiment(name))
    assert whole.run()
    world, ledger = simulated(experiment(name), whole.federation)
    assert set(world.server.shared) == set(whole.coordinator.state.shared)
    for array, expected in world.server.shared.items():
        np.testing.assert_allclose(
            whole.coordinator.state.shared[array], expected, rtol=2e-5, atol=2e-6, err_msg=array
        )
    found = whole.journal.records()
    assert [record.facts for record in found] == [replace(line.facts, received={}) for line in ledger]
    assert [record.claim for record in found] == [derivable(line.claim) for line in ledger]
    assert [(one.traffic.up, one.traffic.down) for one in found] == [
        (one.traffic.up, one.traffic.down) for one in ledger
    ]
    assert whole.journal.refusals() == {}


def test_what_the_devices_kept_lets_them_recommend_alone(tmp_path):
    from tacit.deploy.local_view import LocalView

    whole = deployed(tmp_path, experiment("fedrec"))
    assert whole.run()
    wire = whole.coordinator.model()
    for slot, device in whole.devices.items():
        device.answer(wire)
        seen = set(whole.federation.cohort(np.array([slot], dtype=np.int32)).items.tolist())
        view = LocalView.of(device.store, f"u{slot}")
        assert view.trained
        assert len(view.top(3)) == 3
        assert not {line.item for line in view.top(3)} & {f"i{item}" for item in seen}


REFUSED = {
    "a central twin": (Experiment("fedrec", rounds=2, settings={"twin": "central"}), 12, "in one place"),
    "a crowd too small for the proxy": (experiment("fmf-ldp"), 6, "below 10 people"),
    "a crowd too small for a secure sum": (Experiment("fedmmf", rounds=2), 2, "no safe sum: 2 clients"),
    "more people asked than there are": (Experiment("privrec", rounds=2), 12, "give a whole number up to 12"),
    "no rounds to set": (Experiment("local-lr", rounds=3), 12, "no setting 'rounds'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_deployed_says_why_in_one_line_before_anything_is_written(name, tmp_path):
    wanted, people, why = REFUSED[name]
    with pytest.raises(TacitError) as told:
        deployed(tmp_path, wanted, users=people)
    assert why in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "server").exists()


def test_a_baseline_and_a_missing_proxy_are_refused_at_the_start(tmp_path):
    from tacit.deploy.founding import announced, founded
    from tacit.deploy.running import found

    with pytest.raises(TacitError, match="sees all data in one place; run it with `tacit run`"):
        found(tmp_path / "server", Experiment("ease"), 12, "", "")
    facts = announced("run", experiment("fmf-ldp").to_mapping(), ["a", "b"], 12)
    with pytest.raises(TacitError, match="sends shuffled reports, and there is no proxy to carry them"):
        founded(tmp_path / "server", facts)
    letters = announced("run", Experiment("fedrec++", rounds=2).to_mapping(), ["a", "b"], 12)
    with pytest.raises(TacitError, match="hands letters from people to people, and there is no proxy"):
        founded(tmp_path / "server", letters)
    assert not (tmp_path / "server").exists()


@pytest.mark.parametrize("name", ["fedrec", "fcf", "privrec"])
def test_a_local_twin_deploys_and_sends_nothing(name, tmp_path):
    whole = deployed(tmp_path, experiment(name, twin="local"))
    assert whole.run()
    assert sum(record.traffic.up for record in whole.journal.records()) == 0
