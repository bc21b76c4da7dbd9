"""Paired differences: over seeds where there are five, else over people; nothing where nothing pairs."""

import re

import numpy as np
import pytest
from scipy import stats

from tacit.report.beside import beside_others, signed
from tacit.report.differences import differences
from tacit.report.saved import Saved, Subject
from tacit.report.tables import compared_rows, print_compared
from tacit.report.words import for_whole_people, side

PLAIN = {"privacy": [], "traffic": {}, "data": "demo", "split": "all", "rounds": 1, "notes": []}


def run(seed, value, people=(), values=(), metric="rmse", weights=None):
    table = {f"{metric}/users": np.array(people), f"{metric}/values": np.array(values)} if len(people) else {}
    if weights is not None:
        table[f"{metric}/weights"] = np.array(weights)
    return Saved({**PLAIN, "method": "x", "seed": seed, "metrics": {metric: value}}, per_user=table)


def subject(label, values, first=1):
    return Subject(label, tuple(run(first + place, value) for place, value in enumerate(values)))


OURS, THEIRS, THIRDS = (1.0, 1.1, 0.9, 1.05, 0.98), (1.2, 1.25, 1.15, 1.1, 1.3), (1.0, 1.1, 0.9, 1.1, 0.9)


def test_five_seeds_are_paired_by_student_and_corrected_after_holm():
    told = [subject("ours", OURS), subject("theirs", THEIRS), subject("thirds", THIRDS)]
    found = differences(told, "rmse")
    raw = [float(stats.ttest_rel(other, OURS).pvalue) for other in (THEIRS, THIRDS)]
    low, high = sorted(raw)
    assert (found.pairs, found.many, found.reference) == ("seeds", 5, "ours")
    assert found.found["theirs"].difference == pytest.approx(np.mean(THEIRS) - np.mean(OURS))
    adjusted = [found.found[label].adjusted for label in ("theirs", "thirds")]
    assert sorted(adjusted) == pytest.approx([min(1, 2 * low), max(min(1, 2 * low), high)])
    # Student's interval of the mean difference, as scipy computes it
    between = stats.ttest_rel(THEIRS, OURS).confidence_interval(0.95)
    assert (found.found["theirs"].low, found.found["theirs"].high) == pytest.approx(tuple(between))


def test_fewer_seeds_are_paired_over_the_people_that_all_were_judged_on():
    ours = Subject("ours", (run(1, 1.0, [1, 2, 3, 4, 9], [1.0, 2.0, 3.0, 4.0, 100.0], "hr@10"),))
    theirs = Subject("theirs", (run(1, 1.0, [1, 2, 3, 4], [1.5, 2.4, 3.6, 4.5], "hr@10"),))
    found = differences([ours, theirs], "hr@10")
    assert (found.pairs, found.many) == ("people", 4)
    assert found.found["theirs"].difference == pytest.approx(0.5)
    assert found.found["theirs"].p_value == pytest.approx(
        float(stats.ttest_rel([1.5, 2.4, 3.6, 4.5], [1.0, 2.0, 3.0, 4.0]).pvalue)
    )


def test_differences_over_people_are_those_of_the_reported_metric():
    """RMSE is over ratings: whoever rated more weighs more, and the difference is that of the two numbers."""
    draw = np.random.default_rng(2)
    people, weights = np.arange(300), draw.integers(1, 80, 300)
    errors = [draw.gamma(4.0, 0.25, 300), draw.gamma(4.0, 0.25, 300) + 0.004 * weights]
    whole = [float(np.sqrt((weights * one**2).sum() / weights.sum())) for one in errors]
    told = [
        Subject(label, (run(1, value, people, one, weights=weights),))
        for label, value, one in zip("ab", whole, errors, strict=True)
    ]
    found = differences(told, "rmse").found["b"]
    assert found.difference == pytest.approx(whole[1] - whole[0])
    assert found.low < found.difference < found.high


def test_runs_that_do_not_pair_are_not_tested_and_the_page_says_so():
    assert differences([subject("alone", OURS)], "rmse") is None
    apart = [subject("ours", OURS), subject("theirs", THEIRS, first=2)]
    assert differences(apart, "rmse") is None
    assert "their seeds, and so their splits, differ" in beside_others(apart)
    assert "no metric of people in common" in beside_others([subject("a", OURS[:1]), subject("b", OURS[:1])])


def test_the_page_tells_differences_with_their_sign_and_correction():
    text = beside_others([subject("ours", OURS), subject("theirs", THEIRS)])
    assert "+0.1940" in text
    assert "5 seeds" in text
    assert "after Holm for 1 comparison," in text
    assert f"{np.mean(OURS):.4f} ± {np.std(OURS, ddof=1):.4f}" in text
    assert [signed(value) for value in (-0.25, 0.0, 0.002)] == ["−0.2500", "0.0000", "+0.00200"]


def test_promises_about_one_interaction_never_stand_for_those_about_a_person():
    whole = {"observer": "server", "unit": "user", "adjacency": "replace-one", "epsilon": 90.0}
    single = {"observer": "server", "unit": "interaction", "adjacency": "add-remove", "epsilon": 0.5}
    assert side([whole, single], "server") == "90"
    assert for_whole_people([whole, single])["server"]["epsilon"] == 90.0


def row(label):
    metrics = {name: {"mean": 0.5, "sd": 0.01} for name in ("rmse", "mae", "hr@10", "ndcg@10", "mrr")}
    traffic = {"up_bytes_per_client_round": 2000}
    return {
        "method": label,
        "metrics": metrics,
        "p": 0.04,
        "privacy": [],
        "traffic": traffic,
        "seconds": {"train": 1.0},
    }


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_comparison_fits_the_terminal_without_breaking_numbers(width, monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("COLUMNS", str(width))
    table = {"rows": [row("fedmf"), row("dp-privrec:clients=200,epsilon=4")]}
    print_compared("a title that is longer than any table is wide " * 3, table)
    said = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, said.splitlines())) <= width
    shown = compared_rows(table)[0]
    assert "0.5000 ± 0.0100" in said
    rest = said.split("also measured, in compare.json and on the page: ")[1]
    assert "mrr" in rest
    for name in ("rmse", "mae", "hr@10", "ndcg@10"):
        assert name in shown
        assert (name in rest) != (name in said.split("also measured")[0])
