"""Which runs make one subject of a report, and which do not belong in one report."""

import json
import shutil

import pytest

from tacit.cli.main import main
from tacit.report.page import page
from tacit.report.saved import subjects

TINY = "demo:users=60,items=50,mean=15"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three seeds of one method, another method, and the first on another split."""
    home = tmp_path_factory.mktemp("runs")
    asked = {
        "one": ("fedmf", "--seed", "1"),
        "two": ("fedmf", "--seed", "2"),
        "three": ("fedmf", "--seed", "3"),
        "other": ("fedrec", "--seed", "1"),
        "split": ("fedmf", "--seed", "1", "--split", "leave-one-out"),
    }
    for name, words in asked.items():
        told = ["run", *words, "--data", TINY, "--rounds", "4", "--out", str(home / name), "--quiet"]
        assert main(told) == 0
    return home


def test_runs_that_differ_in_their_seed_alone_are_one_subject(runs):
    found = subjects([runs / "one", runs / "other", runs / "two", runs / "three"])
    assert [(one.label, one.seeds) for one in found] == [("fedmf", (1, 2, 3)), ("fedrec", (1,))]
    whole = page(found)
    assert "3 seeds (1, 2, 3)" in whole
    assert "mean of 3 seeds" in whole
    single = [json.loads((runs / name / "result.json").read_text())["metrics"]["rmse"] for name in
              ("one", "two", "three")]  # fmt: skip
    assert found[0].metrics()["rmse"] == pytest.approx(sum(single) / 3)


def test_the_same_run_twice_is_told_apart_by_its_folder(runs, tmp_path):
    shutil.copytree(runs / "one", tmp_path / "copy")
    found = subjects([runs / "one", tmp_path / "copy"])
    assert [one.label for one in found] == ["fedmf (one)", "fedmf (copy)"]


def test_runs_on_other_splits_are_not_compared(runs, capsys):
    assert main(["report", str(runs / "one"), str(runs / "split")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "its split is leave-one-out, the first run's ratings-5fold:1" in said


def test_the_curve_of_several_seeds_is_their_mean(runs):
    found = subjects([runs / "one", runs / "two"])
    ends = [run.curve[-1]["metrics"]["rmse"] for run in found[0].runs]
    assert f"at the end rmse {sum(ends) / 2:.4f}" in page(found)


@pytest.mark.parametrize("name", ["audit.json", "compare.json"])
def test_a_damaged_file_is_one_line(runs, tmp_path, capsys, name):
    shutil.copytree(runs / "one", tmp_path / "run")
    (tmp_path / "run" / name).write_text("{")
    assert main(["report", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{name} is damaged" in said
