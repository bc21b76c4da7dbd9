"""The report of a run: one file that asks the network for nothing and says what was promised to whom."""

import re
from html.parser import HTMLParser

from tacit.report.page import page
from tacit.report.tables import compared_rows, epsilon_text, sized

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
    "traffic": {"total_bytes": 1_234_567, "published_units_per_round": {"client": 258.0}},
    "seconds": {"train": 1.5},
    "notes": ["942 users"],
}  # fmt: skip
CURVE = [{"round": 1, "metrics": {"rmse": 1.0}}, {"round": 2, "metrics": {"rmse": 0.9}}]


class Balanced(HTMLParser):
    """Every opened element is closed, in order."""

    VOID = ("meta", "br", "path", "use", "rect", "line", "link", "img")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, _attributes):
        if tag not in self.VOID:
            self.open.append(tag)

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
    assert "The paper says: hidden" in text


def test_the_curve_is_a_picture_with_words_for_it():
    text = page(RESULT, CURVE, "")
    assert "<svg" in text
    assert 'role="img"' in text
    assert "rmse 0.9000 at the end" in text


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
