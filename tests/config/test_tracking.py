"""MLflow gets what the public half of a run folder says, and never takes a run down with it."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.config.tracking import Tracking
from tacit.runtime.listener import Listener

RUN = ("run", "fedmf", "--data", "demo:users=40,items=30,mean=10", "--rounds", "4", "--quiet")
INSTALLED = importlib.util.find_spec("mlflow") is not None


def tacit(*words, cwd, **environment):
    command = [sys.executable, "-m", "tacit", *map(str, words)]
    everything = {**os.environ, "PYTHONWARNINGS": "ignore", **environment}
    return subprocess.run(command, cwd=cwd, env=everything, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not INSTALLED, reason="MLflow is not installed")
def test_a_run_is_logged_with_its_rounds_claims_and_public_files(tmp_path):
    store = tmp_path / "store"
    done = tacit(
        *RUN, "--out", tmp_path / "run", cwd=tmp_path,
        MLFLOW_TRACKING_URI=store.as_uri(), MLFLOW_ALLOW_FILE_STORE="true",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (metric,) = store.glob("*/*/metrics/rmse")
    logged = metric.parent.parent
    curve = [line.split()[1:] for line in (logged / "metrics" / "curve.rmse").read_text().splitlines()]
    assert [step for _, step in curve] == ["1", "2", "3", "4"]
    assert float(curve[-1][0]) == pytest.approx(float(metric.read_text().split()[1]))
    assert (logged / "params" / "settings.reg").read_text() == "0.04"
    assert (logged / "tags" / "epsilon.server").read_text() == "unbounded"
    sent = {
        str(file.relative_to(logged / "artifacts"))
        for file in (logged / "artifacts").rglob("*")
        if file.is_file()
    }
    assert {"config.toml", "result.json", "report.html", "model/shared.safetensors"} <= sent
    assert not any("private" in name or "devices" in name for name in sent)
    assert "status: 3" in (logged / "meta.yaml").read_text()  # finished


@pytest.mark.skipif(not INSTALLED, reason="MLflow is not installed")
def test_a_store_that_cannot_be_used_is_one_line_before_training(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = tacit(
        *RUN, "--out", tmp_path / "run", cwd=tmp_path,
        MLFLOW_TRACKING_URI=(tmp_path / "file" / "store").as_uri(), MLFLOW_ALLOW_FILE_STORE="true",
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot be used" in done.stderr.splitlines()[-1]
    assert "correct or unset MLFLOW_TRACKING_URI" in done.stderr.splitlines()[-1]


class Heard(Listener):
    def __init__(self):
        self.warnings = []

    def warn(self, line):
        self.warnings.append(line)


class Failing:
    """A tracking server that stops answering after some calls."""

    def __init__(self, calls):
        self.left, self.seen = calls, []

    def __getattr__(self, name):
        def call(*words, **named):
            self.left -= 1
            if self.left < 0:
                raise ConnectionError("refused\nmore")
            self.seen.append((name, words, named))

        return call


def test_a_server_that_stops_answering_is_told_of_once_and_the_run_goes_on():
    heard, server = Heard(), Failing(1)
    tracking = Tracking(heard, server, "id")
    tracking.stage("training", 3)
    for done in (1, 2, 3):
        tracking.step(done, {"hr@10": 0.5})
    result = {"metrics": {}, "traffic": {}, "seconds": {}, "privacy": [], "rounds": 3}
    tracking.finished(result, Path("nowhere"))
    assert [name for name, _, _ in server.seen] == ["log_metric"]
    assert server.seen[0][1] == ("id", "curve.hr_at_10", 0.5)
    assert heard.warnings == ["MLflow stopped answering (refused): the run goes on without it"]


def test_set_but_not_installed_is_said_and_nothing_else_changes(monkeypatch):
    from tacit.config import tracking

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:1")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    heard = Heard()
    assert tracking.tracked(heard, {}, "mine") is None
    assert "not installed" in heard.warnings[0]
