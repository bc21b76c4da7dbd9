"""A method from another package runs like a built-in one, and keeps the same promises."""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tacit.cli.main import main
from tacit.config import catalogue
from tacit.local.work import Broadcast
from tacit.rng import SeededKeys
from tacit.testing.contracts import check_method
from tacit.testing.tiny import tiny_federation

HERE = Path(__file__).parents[2] / "examples" / "outside-method"
TINY = "demo:users=80,items=60,mean=15"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What installing the package leaves behind, from its own pyproject: a module and its announcement."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    announced = site / f"tacit_fedbpr-{project['version']}.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    points = "\n".join(
        f"{name} = {target}" for name, target in project["entry-points"]["tacit.methods"].items()
    )
    (announced / "entry_points.txt").write_text(f"[tacit.methods]\n{points}\n")
    (site / "tacit_fedbpr.py").write_text((HERE / "src" / "tacit_fedbpr.py").read_text())
    return site


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("tacit_fedbpr", HERE / "src" / "tacit_fedbpr.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules["tacit_fedbpr"] = found
    spec.loader.exec_module(found)
    yield found
    del sys.modules["tacit_fedbpr"]


@pytest.fixture
def tacit(monkeypatch, capsys, tmp_path):
    """The command line in this process, with a folder of installed packages in front of the others."""

    def call(site, *words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(site)
        catalogue.methods.cache_clear()
        status = main([*map(str, words)])
        return status, *capsys.readouterr()

    yield call
    catalogue.methods.cache_clear()
    sys.modules.pop("tacit_fedbpr", None)


def test_it_is_listed_run_and_used_like_a_built_in_one(tacit, site):
    _, listed, _ = tacit(site, "methods", "--json")
    assert "ranking from implicit feedback" in json.loads(listed)["federated"]["fedbpr"]
    run = ("run", "fedbpr", "--data", TINY, "--rounds", "3", "--set", "noise=2.0", "--out", "run", "--json")
    status, printed, told = tacit(site, *run)
    assert status == 0, told
    result = json.loads(printed)
    claims = {line["observer"]: line["epsilon"] for line in result["privacy"]}
    assert claims["server"] is None
    assert 1 < claims["release"] < 50
    assert (
        result["traffic"]["up_bytes_per_client_round"] > 4 * 60 * 16 / 2
    )  # half of the clients, whole tables
    _, chosen, _ = tacit(site, "recommend", "run", "--user", "7", "--k", "3", "--json")
    assert len(json.loads(chosen)["items"]) == 3
    status, _, told = tacit(site, "run", "fedbpr", "--set", "noice=2")
    assert (status, "did you mean 'noise'" in told) == (2, True)


def test_a_package_that_cannot_be_loaded_harms_nobody_else(tacit, tmp_path):
    announced = tmp_path / "broken-0.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0\n")
    (announced / "entry_points.txt").write_text("[tacit.methods]\nbroken = no_such_module:method\n")
    _, listed, _ = tacit(tmp_path, "methods", "--json")
    assert "fedrec++" in json.loads(listed)["federated"]
    status, _, told = tacit(tmp_path, "run", "broken")
    assert (status, "no_such_module" in told, len(told.splitlines())) == (2, True, 1)


def test_it_keeps_the_contracts_of_every_method(module):
    check_method(module.fedbpr(), tiny_federation(14, 20, seed=1))


def test_its_step_is_the_gradient_of_what_it_says(module):
    """One epoch moves everything along the derivative of sum ln sigmoid - reg/2 |.|^2, taken numerically."""
    generator = np.random.default_rng(0)
    items, vector = generator.normal(size=(6, 3)), generator.normal(size=3)
    met, unmet = np.array([0, 2, 4]), np.array([1, 1, 5])

    def gain(vector, items):
        return -np.log1p(np.exp(-(items[met] - items[unmet]) @ vector)).sum()

    work = module.RankedPairs(epochs=1, rate=1e-3, reg=0.0)
    after_vector, after_items = work.trained(vector, items.copy(), met, unmet)
    for place in range(3):
        shift = np.eye(3)[place] * 1e-5
        slope = (gain(vector + shift, items) - gain(vector - shift, items)) / 2e-5
        assert (after_vector[place] - vector[place]) / 1e-3 == pytest.approx(slope, abs=2e-3)
    for place in np.ndindex(items.shape):
        shift = np.zeros_like(items)
        shift[place] = 1e-5
        slope = (gain(vector, items + shift) - gain(vector, items - shift)) / 2e-5
        assert (after_items[place] - items[place]) / 1e-3 == pytest.approx(slope, abs=1e-6)


def test_what_it_draws_is_never_met_and_the_same_for_any_grouping(module):
    federation = tiny_federation(9, 12, seed=2)

    whole = federation.cohort(federation.people)
    work = module.RankedPairs(1, 0.1, 0.0)
    drawn = work.negatives(Broadcast(4, {}), whole, SeededKeys(1))
    for client in range(len(whole)):
        one = federation.cohort(federation.people[client : client + 1])
        alone = work.negatives(Broadcast(4, {}), one, SeededKeys(1))
        mine = slice(drawn.starts[client], drawn.starts[client] + drawn.lengths[client])
        assert drawn.ids[mine].tolist() == alone.ids.tolist()
        assert not set(alone.ids.tolist()) & set(one.items.tolist())
