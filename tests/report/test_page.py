"""The report of a run: one file that asks the network for nothing and says what was promised to whom."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tacit.ledger.record import Traffic
from tacit.report import page as whole
from tacit.report.saved import Crossed, Saved, Subject
from tacit.report.tables import compared_rows
from tacit.report.words import best_guess, epsilon_text, meaning, sized

RESULT = {
    "method": "fedrec++",
    "data": "demo <b>",
    "split": "ratings-5fold:1",
    "seed": 1,
    "rounds": 2,
    "metrics": {"rmse": 0.85, "hr@10": 0.3},
    "errors": {"rmse": 0.005},
    "privacy": [
        {"observer": "server", "unit": "user", "adjacency": "add-remove", "epsilon": None, "delta": 1e-6,
         "assumes": [], "because": "one upload reveals it"},
        {"observer": "release", "unit": "user", "adjacency": "add-remove", "epsilon": 3.25, "delta": 1e-6,
         "assumes": ["the sample is secret"]},
    ],
    "paper_says": "hidden",
    "traffic": {
        "total_bytes": 1_234_567,
        "up_bytes_per_client_round": 100.0,
        "down_bytes_per_client_round": 500.0,
        "published_units_per_round": {"client": 258.0},
    },
    "seconds": {"train": 1.5},
    "notes": ["942 users"],
}  # fmt: skip
CURVE = [{"round": 1, "metrics": {"rmse": 1.0}}, {"round": 2, "metrics": {"rmse": 0.9}}]


GROUPS = [
    {"metric": "rmse", "group": "light users", "value": 0.9, "error": 0.01, "users": 40, "meaning": "1 to 5"},
    {"metric": "rmse", "group": "heavy users", "value": 0.8, "error": None, "users": 1, "meaning": "6 to 90"},
]
SENT = Crossed("train", Traffic(up=1000, down=5000, ids_up=200, values_up=700), 10, 2)
AUDIT = {
    "privacy": RESULT["privacy"],
    "attacks": [
        {"name": "rated-set", "observer": "server", "metrics": {"precision": 0.9, "prior_precision": 0.1}},
        {"name": "sum-tail", "observer": "server", "metrics": {}, "skipped": "no sums here"},
    ],
}


def page(result, curve=(), config="", **more):
    run = Saved(
        {**result, "groups": GROUPS, "versions": {"tacit": "1"}}, curve, config, crossed=[SENT], **more
    )
    return whole.page([Subject(result["method"], (run,))])


class Balanced(HTMLParser):
    """Every opened element is closed, in order."""

    VOID = ("meta", "br", "wbr", "path", "use", "rect", "line", "link", "img")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, _attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        """Nothing stays open."""

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_escaped_and_self_contained():
    text = page(RESULT, CURVE, 'method = "fedrec++"')
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    assert "demo &lt;b&gt;" in text
    assert "<b>" not in text
    fetched = re.findall(r"""(?:src|href)=["'](?!#)([^"']+)""", text)
    assert not [link for link in fetched if not link.startswith("data:")]
    assert "<script" not in text


def test_it_says_what_is_promised_and_what_is_not():
    text = page(RESULT, [], "")
    assert "ε = ∞" in text
    assert "one upload reveals it" in text
    assert "ε = 3.25 at δ = 1e-06" in text
    assert "the sample is secret" in text
    assert "The paper says: “hidden”" in text


def test_what_epsilon_means_is_said_with_the_bound_it_implies():
    # the best share of right guesses between equally likely cases is (e^eps + delta) / (e^eps + 1)
    assert best_guess(math.log(3), 0.0) == pytest.approx(0.75)
    assert best_guess(0.0, 0.1) == pytest.approx(0.55)
    line = {"unit": "user", "adjacency": "add-remove", "delta": 0.0, "epsilon": math.log(3)}
    assert "75 times in 100" in meaning(line)
    shown = meaning({**line, "epsilon": 1.0})
    assert "74 times in 100" in shown  # e / (e + 1) is 0.7311: a bound is rounded up
    assert "next to nothing" in meaning({**line, "epsilon": 20.0})
    assert meaning({**line, "epsilon": None}).startswith("Nothing is proved")


def test_bytes_are_told_by_kind():
    text = page(RESULT)
    assert "headers and seals" in text
    assert SENT.kinds["headers and seals"] == 100
    assert "20 B" in text  # ids: 200 bytes over ten answers


def test_attacks_stand_beside_the_claims():
    text = page(RESULT, audit=AUDIT)
    assert "No measurement exceeds" in text
    assert "no sums here" in text
    broken = {**AUDIT, "attacks": [{**AUDIT["attacks"][0], "exceeds": "4.0 measured, 3.25 claimed"}]}
    assert "exceeds a claim" in page(RESULT, audit=broken)
    assert "was not attacked yet" in page(RESULT)


def test_nothing_that_is_not_sent_is_attacked_or_drawn():
    nothing = {**RESULT["traffic"], "up_bytes_per_client_round": 0.0}
    fitted = page({**RESULT, "rounds": 0, "traffic": nothing}, CURVE[:1])
    assert "nothing is sent that could be attacked" in fitted
    assert "fitted at once" in fitted
    assert "Learning curve" not in fitted  # one round is no curve
    assert "nothing to attack" in page({**RESULT, "privacy": []})


def test_the_first_numbers_are_promises_about_people():
    """What is proved of one interaction stands further down, with its unit."""
    one = {**RESULT["privacy"][1], "unit": "interaction", "epsilon": 0.125}
    text = page({**RESULT, "privacy": [*RESULT["privacy"], one]})
    head, rest = text.split("<main", 1)
    assert ">3.25<" in head
    assert "0.125" not in head
    assert "ε = 0.125" in rest
    assert "interaction: one rating or click" in rest


def test_a_bound_that_promises_next_to_nothing_is_not_shown_as_a_good_one():
    large = {**RESULT["privacy"][1], "epsilon": 20.0}
    text = page({**RESULT, "privacy": [large]})
    assert 'class="card weak"' in text
    assert 'class="card bound"' not in text
    assert "they may guess right as good as always" in text
    assert "99.99 times" not in text  # less than all of 100 was not proved


def test_other_runs_stand_beside_as_lines_and_rows():
    main = Subject("mine", (Saved({**RESULT}, CURVE, ""),))
    twin = Subject("its twin", (Saved({**RESULT, "metrics": {"rmse": 0.8}}, (), ""),))
    text = whole.page([main, twin])
    assert "Beside other methods" in text
    assert text.count("its twin") >= 3


def test_intervals_resample_people():
    values = {"rmse/users": np.arange(50), "rmse/values": np.full(50, 0.5), "rmse/weights": np.arange(1, 51)}
    found = Subject("x", (Saved(RESULT, per_user=values),)).interval("rmse")
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert Subject("x", (Saved(RESULT),)).interval("rmse") is None


def test_the_curve_is_a_picture_with_words_for_it():
    text = page(RESULT, CURVE, "")
    assert "<svg" in text
    assert 'role="img"' in text
    assert "at the end rmse 0.9000" in text


def test_numbers_for_people():
    assert [sized(n) for n in (0, 999, 1500, 2.5e9)] == ["0 B", "999 B", "1.50 kB", "2.50 GB"]
    assert epsilon_text({"epsilon": None, "delta": 1e-6}) == "ε = ∞"


def test_a_comparison_shows_both_sides_of_the_guarantee():
    metrics = {"rmse": {"mean": 0.5, "sd": 0.01}}
    traffic = {"up_bytes_per_client_round": 2000}
    row = {"method": "x", "metrics": metrics, "p": 0.04, "privacy": RESULT["privacy"], "traffic": traffic}
    row["seconds"] = {"train": 1.0}
    columns, rows = compared_rows({"rows": [row]})
    assert rows == [["x", "0.5000 ± 0.0100", "0.04", "∞", "3.25", "2.00 kB", "1.00 s"]]
    assert len(columns) == len(rows[0])
