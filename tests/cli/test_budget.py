"""``tacit budget``: one plan, a table of plans, and one line for what cannot be planned."""

import json

import pytest

from tacit.account.calibrate import budget as planned
from tacit.cli.budget import numbers
from tacit.cli.main import main
from tacit.errors import TacitError

BASE = ["budget", "--users", "1000"]


def tacit(capsys, *words):
    code = main([*BASE, *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_one_plan_is_one_object_as_before(capsys):
    code, out, _ = tacit(capsys, "--cohort", "50", "--rounds", "20", "--epsilon", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert found == planned(1000, 50, 20, 1e-6, epsilon=2.0)
    assert 0.999 * 2 <= found["epsilon"] <= 2


def test_several_numbers_are_a_table_of_every_combination(capsys):
    words = ("--cohort", "50,200", "--rounds", "20", "--noise", "1,2", "--json")
    rows = json.loads(tacit(capsys, *words)[1])["rows"]
    assert [(row["cohort"], row["rounds"], row["noise"]) for row in rows] == [
        (50, 20, 1.0), (50, 20, 2.0), (200, 20, 1.0), (200, 20, 2.0),
    ]  # fmt: skip
    assert rows[0] == planned(1000, 50, 20, 1e-6, noise=1.0)


def test_a_table_for_people_says_what_it_is_about(capsys):
    code, out, _ = tacit(capsys, "--cohort", "50,200", "--rounds", "20", "--noise", "1.5")
    assert code == 0
    for said in ("1000 people", "poisson", "add-remove", "user level", "noise on the mean", "stays secret"):
        assert said in out
    assert out.count("\n") >= 6


@pytest.mark.parametrize("sampler", ["none", "poisson"])
def test_assumptions_stand_where_there_are_any(capsys, sampler):
    out = tacit(capsys, "--cohort", "50", "--rounds", "20", "--noise", "30", "--sampler", sampler)[1]
    assert ("assumes" in out) == (sampler == "poisson")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cohort", "50", "--rounds", "20"), "one of two is wanted"),
        (("--cohort", "50", "--rounds", "20", "--noise", "1", "--epsilon", "1"), "one of two is wanted"),
        (("--cohort", "50,x", "--rounds", "20", "--noise", "1"), "no whole number"),
        (("--cohort", "1.5", "--rounds", "20", "--noise", "1"), "no whole number"),
        (("--cohort", "50", "--rounds", "20,", "--noise", "1"), "no whole number"),
        (("--cohort", "50", "--rounds", "20", "--noise", "much"), "is no number"),
        (("--cohort", "50", "--rounds", "20", "--noise", "0"), "above zero"),
        (("--cohort", "50", "--rounds", "20", "--noise", "nan"), "finite"),
        (("--cohort", "50", "--rounds", "20", "--epsilon", "-1"), "above zero"),
        (("--cohort", "5000", "--rounds", "20", "--epsilon", "1"), "at most all of them"),
        (("--cohort", "50", "--rounds", "20", "--epsilon", "1", "--sampler", "fixed"), "replace-one"),
        (("--cohort", "50", "--rounds", "20", "--epsilon", "1", "--delta", "2"), "between 0 and 1"),
        (("--cohort", "50", "--rounds", "20", "--noise", ",".join(["1"] * 201)), "at most 200"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_exit_2(capsys, words, said):
    code, out, err = tacit(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("tacit: ")
    assert said in err


def test_numbers_are_read_with_or_without_spaces():
    assert numbers("--cohort", "30, 60", whole=True) == [30, 60]
    with pytest.raises(TacitError, match="--epsilon"):
        numbers("--epsilon", "")
