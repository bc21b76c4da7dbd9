"""A card says what the run's files say, in a form that Hugging Face reads."""

import json

import pytest

from tacit import Recommender
from tacit.cli.main import main
from tacit.report.card import card

TINY = "demo:users=40,items=30,mean=10"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card") / "run"
    return Recommender("fedrec++", rounds=3, split="ratings-5fold:1").fit(TINY).save(folder)


def front(text):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_front_matter_is_what_was_measured(run, capsys):
    assert main(["card", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "README.md")
    assert main(["card", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": str(run), "card": str(run / "README.md")}
    told, body = front((run / "README.md").read_text())
    result = json.loads((run / "result.json").read_text())
    assert told["library_name"] == "tacit"
    assert "federated-learning" in told["tags"]
    (model,) = told["model-index"]
    (measured,) = model["results"]
    found = {entry["type"]: entry["value"] for entry in measured["metrics"]}
    assert found == pytest.approx(result["metrics"], rel=1e-5)
    for observer in ("the server", "another client", "anyone who is given"):
        assert observer in body
    assert "No privacy guarantee against" in body
    low = result["metrics"]["rmse"] - 1.96 * result["errors"]["rmse"]
    assert f"{low:.4f} to" in body


def test_a_bounded_claim_is_stated_with_its_assumptions(run):
    result = json.loads((run / "result.json").read_text())
    line = {
        "observer": "release", "unit": "user", "adjacency": "add-remove", "epsilon": 3.25, "delta": 1e-6,
        "mode": "accounted", "assumes": ["noise | is secret"], "because": "",
    }  # fmt: skip
    told, body = front(card({**result, "privacy": [line]}, {}))
    assert "differential-privacy" in told["tags"]
    assert "ε = 3.25 at δ = 1e-06" in body
    assert "noise \\| is secret" in body
    assert "No privacy guarantee" not in body


def test_folders_of_whoever_ran_it_are_not_told(run):
    result = json.loads((run / "result.json").read_text())
    text = card({**result, "data": "/home/ann/log.csv:scale=1-5"}, {})
    assert "/home/ann" not in text
    assert "fedrec++ on log.csv" in text


def test_a_baseline_says_that_it_saw_everything(tmp_path, capsys):
    folder = Recommender("pop", split="leave-one-out").fit(TINY).save(tmp_path / "run")
    assert main(["card", str(folder), "--out", str(tmp_path / "card.md")]) == 0
    told, body = front((tmp_path / "card.md").read_text())
    assert "federated-learning" not in told["tags"]
    assert "nothing about it is private" in body
    assert main(["card", str(tmp_path)]) == 2
    capsys.readouterr()


def test_a_central_twin_is_no_federation(run):
    result = json.loads((run / "result.json").read_text())
    told, body = front(card({**result, "settings": {**result["settings"], "twin": "central"}}, {}))
    assert "federated-learning" not in told["tags"]
    assert "central twin, trained on everybody's data in one place" in body
    told, body = front(card({**result, "privacy": []}, {}))
    assert "sends nothing" in body
