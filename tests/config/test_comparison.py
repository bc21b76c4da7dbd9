"""Comparisons and frontiers: equal twins are one, promises of one unit, and who is on a frontier."""

import json

import pytest

from tacit.cli.main import main

TINY = "demo:users=60,items=50,mean=15"


def asked(capsys, *words):
    """The JSON of a command that must succeed."""
    capsys.readouterr()
    assert main([*map(str, words), "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_equal_twins_are_one_row_of_as_many_runs_and_one_test(tmp_path, capsys):
    table = asked(
        capsys, "compare", "fedmf", "fedrec:rho=2", "--data", TINY, "--rounds", 4, "--seeds", 5,
        "--out", tmp_path,
    )  # fmt: skip
    rows = {row["method"]: row for row in table["rows"]}
    assert list(rows) == ["fedmf", "fedrec:rho=2", "central twin", "local twin", "user-mean", "bias"]
    assert {len(row["runs"]) for row in rows.values()} == {5}
    assert rows["central twin"]["twin"] == "central"
    assert table["pairs"] == "seeds"
    # five comparisons were made, not seven: the smallest p is five times its own
    from scipy import stats

    def each(row):
        return [json.loads((tmp_path / run / "result.json").read_text())["metrics"]["rmse"] for run in
                (name.rpartition("/")[2] for name in row["runs"])]  # fmt: skip

    others = [row for label, row in rows.items() if label != "fedmf"]
    raw = [float(stats.ttest_rel(each(row), each(rows["fedmf"])).pvalue) for row in others]
    low = raw.index(min(value for value in raw if value == value))
    assert others[low]["p"] == pytest.approx(min(1.0, 5 * raw[low]))
    difference = others[low]["difference"]
    assert difference["low"] < difference["mean"] < difference["high"]
    assert rows["fedmf"]["difference"] is None


def test_a_frontier_is_among_those_who_send_and_tells_promises_about_people(tmp_path, capsys):
    found = asked(
        capsys, "frontier", "dplcf", "pop", "--epsilon", "1,8", "--data", TINY, "--seeds", 2,
        "--out", tmp_path,
    )  # fmt: skip
    points = {point["point"]: point for point in found["points"]}
    assert list(points) == ["dplcf ε=8", "dplcf ε=1", "pop"]
    assert points["pop"]["pooled"]
    assert not points["pop"]["frontier"]  # all its data lie in one place: no rival of those who send
    assert points["dplcf ε=1"]["frontier"]
    assert points["dplcf ε=1"]["epsilon"]["server"] > 8  # one answer costs 1, a person gives fifty
    for name, point in points.items():
        lines = json.loads((tmp_path / point["runs"][0].rpartition("/")[2] / "result.json").read_text())
        whole = {line["observer"]: line["epsilon"] for line in lines["privacy"] if line["unit"] == "user"}
        assert point["epsilon"] == {side: whole[side] for side in ("server", "release")}, name
    page = (tmp_path / "frontier.html").read_text(encoding="utf-8")
    assert "all data" in page
    assert "Lines across" in page
    assert (tmp_path / "frontier.png").stat().st_size > 5000


def test_what_only_a_round_refuses_is_told_beside_the_others(tmp_path, capsys):
    found = asked(
        capsys, "frontier", "dplcf", "--epsilon", 4, "--bytes", "full,int8", "--data", TINY,
        "--out", tmp_path,
    )  # fmt: skip
    assert [point["point"] for point in found["points"]] == ["dplcf ε=4"]
    (refused,) = found["refused"]
    assert refused["point"] == "dplcf ε=4 int8"
    assert "whole numbers already" in refused["why"]


def test_a_method_that_cannot_keep_a_budget_is_told_beside_those_that_can(tmp_path, capsys):
    found = asked(
        capsys, "frontier", "dp-fedmf", "priv-fedmf-sub", "--epsilon", 4, "--rounds", 2, "--data", TINY,
        "--out", tmp_path,
    )  # fmt: skip
    (point,) = found["points"]
    assert point["point"] == "dp-fedmf ε=4"
    assert 3.9 < point["epsilon"]["release"] <= 4
    (refused,) = found["refused"]
    assert refused["point"] == "priv-fedmf-sub ε=4"
    assert "bits about items" in refused["why"]


def test_points_that_cannot_be_run_are_told_and_nothing_is_left_of_nothing(tmp_path, capsys):
    words = ["frontier", "dplcf", "--bytes", "svd:8", "--rounds", "2", "--data", TINY, "--quiet"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "none of these points can be run" in said
    assert not list(tmp_path.iterdir())
