"""A written graph gives the scores that Tacit gives, for everybody; what has no graph says why."""

import json

import numpy as np
import pytest

from tacit import Recommender
from tacit.cli.main import main
from tacit.config.exporting import device_rows, exported_onnx
from tacit.config.serving import opened
from tacit.errors import TacitError

TINY = "demo:users=40,items=30,mean=10"
CASES = {
    "fedmf": {},
    "fcf": {},
    "fmf-ldp": {"n_min": 2},
    "dp-fedmf": {},
    "priv-fedmf-sub": {"unselected": "last"},
    "priv-fedmf-sub ": {"unselected": "frequency"},
    "fedncf": {"tower": "8-6-4-2", "factors": 3, "epochs": 1},
    "priv-fedncf-sub-compress": {"tower": "8-6-4-2", "factors": 3, "epochs": 1},
    "ldp-spectral": {},
    "fedmmf": {},
    "privrec": {"adapt": "user", "clients": 0.5},
    "privrec ": {"adapt": "none", "clients": 0.5},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small run of each kind of model."""

    def run(name):
        folder = tmp_path_factory.mktemp("runs") / "run"
        rounds = 0 if name.startswith("ldp-") else 2
        Recommender(name.strip(), rounds=rounds, **CASES.get(name, {})).fit(TINY).save(folder)
        return folder

    return run


@pytest.mark.parametrize("name", CASES)
def test_the_graph_scores_like_the_model(name, trained, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    folder = trained(name)
    served = opened(folder, None)
    done = exported_onnx(served, folder, tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    people = served.known.people
    (theirs,) = session.run(["scores"], device_rows(served, people, list(done.inputs)))
    np.testing.assert_allclose(theirs, served.scorer.scores(people), rtol=1e-4, atol=1e-5)
    (alone,) = session.run(["scores"], device_rows(served, people[3:4], list(done.inputs)))
    np.testing.assert_allclose(alone[0], theirs[3], rtol=1e-5, atol=1e-6)
    properties = {entry.key: entry.value for entry in onnx.load(done.path).metadata_props}
    assert json.loads(properties["item_ids"]) == served.plan.dataset.item_ids.values.tolist()
    assert json.loads(properties["privacy"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dplcf", "not a fixed row"),
        ("privrec", "whole network"),
        ("local-lr", "nothing of this model"),
        ("pop", ""),
    ],
)
def test_what_has_no_graph_says_why(name, says, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    settings = {"rounds": 1, "clients": 0.5, "adapt": "all"} if name == "privrec" else {}
    folder = Recommender(name, **settings).fit(TINY).save(tmp_path / "run")
    with pytest.raises(TacitError, match=says or "baseline"):
        exported_onnx(opened(folder, None), folder, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_the_command_tells_how_far_off_it_is(trained, tmp_path, capsys):
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    folder = trained("fedmf")
    assert main(["export", str(folder), "--onnx", str(tmp_path / "m.onnx"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["inputs"] == {"user": 20}
    assert told["items"] == 30
    assert told["difference"] < 1e-5
    assert main(["export", str(folder)]) == 2
    assert "add --onnx FILE" in capsys.readouterr().err


def test_the_arrays_are_one_file_that_says_what_it_is(trained, tmp_path, capsys):
    safetensors = pytest.importorskip("safetensors")
    folder = trained("fedmf")
    assert main(["export", str(folder), "--safetensors", str(tmp_path / "m.safetensors"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["arrays"] == {"items": [30, 20]}
    served = opened(folder, None)
    with safetensors.safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("items"), served.shared["items"])
        about = json.loads(file.metadata()["tacit"])
    assert json.loads(about["item_ids"]) == served.plan.dataset.item_ids.values.tolist()
    assert json.loads(about["privacy"])[0]["epsilon"] is None
    pop = Recommender("pop").fit(TINY).save(tmp_path / "pop")
    assert main(["export", str(pop), "--safetensors", str(tmp_path / "p.safetensors")]) == 2
    assert "keeps no model" in capsys.readouterr().err
    assert not (tmp_path / "p.safetensors").exists()
