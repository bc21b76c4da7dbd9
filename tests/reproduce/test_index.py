"""All tables in one go: kept, resumed, told in one table and on one page."""

import json
import signal

import pytest

from tacit.cli.main import main
from tacit.errors import TacitError
from tacit.reproduce.index import every_table, index_page, kept_file, kept_pictures, kept_tables, summary
from tacit.reproduce.table import Cell, Options, Reproduction, tables

CELLS = (
    Cell("a", "x", 2.0, 1.5, "why | so"),
    Cell("a", "y", None, 3.0),
    Cell("b", "x", 1.0, None, "none left"),
)


def drawing(text):
    return lambda path: path.write_text(f"<svg>{text}</svg>")


def no_picture(path):
    raise TacitError("pictures need matplotlib", "install it")


@pytest.fixture
def makers():
    """Two tables, one with a picture, that count how often they are made."""
    made = []

    def maker(name, picture=None):
        def of(options):
            made.append(name)
            return Reproduction(name, f"title of {name}", CELLS, ("a note",), picture)

        return of

    return {"p/one": maker("p/one"), "p/two": maker("p/two", drawing("two"))}, made


def test_what_is_kept_is_not_made_again(tmp_path, makers):
    known, made = makers
    first = list(every_table(Options(quick=True), tmp_path, makers=known))
    again = list(every_table(Options(quick=True), tmp_path, makers=known))
    assert made == ["p/one", "p/two"]
    assert first == again
    assert all(line["quick"] and line["seconds"] >= 0 <= line["cpu_seconds"] for line in first)


def test_the_full_form_is_its_own_and_is_preferred(tmp_path, makers):
    known, made = makers
    list(every_table(Options(quick=True), tmp_path, makers=known))
    list(every_table(Options(), tmp_path, ["p/one"], makers=known))
    assert made == ["p/one", "p/two", "p/one"]
    assert [(line["table"], line["quick"]) for line in kept_tables(tmp_path)] == [
        ("p/one", False),
        ("p/two", True),
    ]


def test_a_torn_file_or_another_version_s_is_made_again(tmp_path, makers):
    known, made = makers
    kept_file(tmp_path, "p/one", quick=True).write_text('{"table": "p/o')
    kept_file(tmp_path, "p/two", quick=True).write_text(json.dumps({"table": "p/two", "tacit": "0.0"}))
    assert kept_tables(tmp_path) == []
    list(every_table(Options(quick=True), tmp_path, makers=known))
    assert made == ["p/one", "p/two"]


def test_a_table_without_its_data_says_so_and_is_tried_again(tmp_path):
    def without(options):
        raise TacitError("no ml-1m", "name its folder")

    (line,) = every_table(Options(quick=True), tmp_path, makers={"p/one": without})
    assert line["skipped"] == "no ml-1m; name its folder"
    assert summary(line)["form"] == "skipped"
    assert not list(tmp_path.iterdir())


def test_it_stops_between_tables(tmp_path, makers):
    known, made = makers
    options = Options(quick=True)
    options.listener.stopping = lambda: True
    assert len(list(every_table(options, tmp_path, makers=known))) == 1
    assert made == ["p/one"]


def test_one_table_stops_at_once(makers, monkeypatch):
    known, made = makers

    def interrupted(options):
        signal.raise_signal(signal.SIGINT)
        return known["p/one"](options)

    monkeypatch.setattr("tacit.reproduce.table.tables", lambda: {"p/slow": interrupted})
    assert main(["reproduce", "p/slow", "--quick"]) == 130
    assert made == []


def test_the_page_says_paper_ours_difference_and_reason(tmp_path, makers):
    known, _ = makers
    lines = list(every_table(Options(quick=True), tmp_path, makers=known))
    page = index_page(lines, {"p/two": "pictures/p-two.svg"})
    assert "| a | x | 2 | 1.5 | -0.5 | why \\| so |" in page
    assert "| a | y |  | 3 |  |  |" in page
    assert "| b | x | 1 |  |  | none left |" in page
    assert "[p/one](#pone)" in page
    assert "quick form" in page
    assert page.count("![") == 1
    assert "![title of p/two](pictures/p-two.svg)" in page


def test_pictures_are_kept_beside_numbers_and_may_be_missing(tmp_path, makers):
    known, _ = makers
    lines = list(every_table(Options(quick=True), tmp_path, makers=known))
    assert kept_pictures(lines, tmp_path) == {"p/two": tmp_path / "p-two.quick.svg"}

    def plain(options):
        return Reproduction("p/three", "t", CELLS, (), no_picture)

    (line,) = every_table(Options(quick=True), tmp_path, makers={"p/three": plain})
    assert "skipped" not in line
    assert kept_pictures([line], tmp_path) == {}


def test_the_command_writes_the_page_and_its_pictures_from_what_is_kept(
    tmp_path, makers, monkeypatch, capsys
):
    known, _ = makers
    monkeypatch.setattr("tacit.reproduce.table.tables", lambda: known)
    monkeypatch.setattr("tacit.reproduce.index.tables", lambda: known)
    page = tmp_path / "docs" / "reproduction.md"
    assert main(["reproduce", "--all", "--quick", "--out", str(tmp_path / "kept"), "--index", str(page)]) == 0
    out = capsys.readouterr().out
    assert "p/one" in out
    assert "p/two" in out
    assert "2 tables" in out
    assert "![title of p/two](pictures/p-two.svg)" in page.read_text()
    assert (tmp_path / "docs" / "pictures" / "p-two.svg").read_text() == "<svg>two</svg>"
    assert main(["reproduce", "--index", str(page), "--out", str(tmp_path / "nothing")]) == 2
    assert "nothing is kept" in capsys.readouterr().err


def test_every_table_has_a_paper_to_name():
    from tacit.reproduce.index import PAPERS

    assert {name.split("/")[0] for name in tables()} == set(PAPERS)
