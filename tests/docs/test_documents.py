"""What the documentation shows is done: commands and code run, links lead somewhere, facts are new.

Blocks of a page run from top to bottom in one empty folder. A fence ``console`` holds commands after ``$``
(or ``>`` for their further lines) and, after each, lines that must be among what it prints, numbers within a
twentieth; ``...`` stands for anything. ``sh`` is a script, ``python`` is executed, and a block with a
``title`` is a file. ``<!-- not run: why -->`` before a fence leaves it out, ``<!-- slow: why -->`` leaves it
to the slow suite.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from tacit import __version__
from tacit.cli.main import app, main
from tacit.config import catalogue

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?:<!-- (?P<mark>[^>]*) -->\n+)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
MOST_SECONDS = 300


@dataclass(frozen=True)
class Block:
    """One fence of a page."""

    line: int
    kind: str
    title: str
    text: str
    mark: str

    @property
    def runs(self):
        return bool(self.title) or self.kind in {"python", "console", "sh"}


def blocks(page):
    text = page.read_text("utf-8")
    found = []
    for fence in FENCE.finditer(text):
        title = re.search(r'title="([^"]*)"', fence["kind"])
        kind = fence["kind"].split(" ")[0]
        place = text.count("\n", 0, fence.start()) + 1
        found.append(Block(place, kind, title[1] if title else "", fence["text"], fence["mark"] or ""))
    return found


def name(page):
    return str(page.relative_to(ROOT))


def runnable(slow):
    wanted = []
    for page in PAGES:
        own = [b for b in blocks(page) if b.runs and not b.mark.startswith("not run")]
        if any(b.mark.startswith("slow") for b in own) if slow else any(not b.mark for b in own):
            wanted.append(page)
    return wanted


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder in which ``tacit`` is this one's, with one thread and no accelerator."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for variable, value in {"COLUMNS": "160", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(variable, value)
    return tmp_path


@pytest.mark.parametrize("page", runnable(slow=False), ids=name)
def test_what_a_page_shows_runs(page, place):
    run_page(page, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", runnable(slow=True), ids=name)
def test_the_slow_part_of_a_page_runs_too(page, place):
    run_page(page, slow=True)


def run_page(page, *, slow):
    names = {"__name__": "page"}
    for block in blocks(page):
        if not block.runs or block.mark.startswith("not run") or (block.mark.startswith("slow") and not slow):
            continue
        where = f"{name(page)}:{block.line}"
        if block.title:
            Path(block.title).write_text(block.text, "utf-8")
        elif block.kind == "python":
            exec(compile(block.text, where, "exec"), names)
        elif block.kind == "sh":
            done(block.text, where)
        else:
            for command, shown in spoken(block.text):
                printed = done(command, where)
                for line in shown:
                    assert any(alike(line, real) for real in printed.splitlines()), (
                        f"{where}: `{command.strip()}` prints no line like {line!r}:\n{printed}"
                    )


def done(script, where):
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{where}: exit {ran.returncode} of\n{script}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def spoken(text):
    """Commands with the lines shown after each."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:] + "\n", []])
        elif line.startswith("> "):
            found[-1][0] += line[2:] + "\n"
        elif line.strip() and line.strip() != "...":
            found[-1][1].append(line)
    return found


def alike(shown, real):
    """The same words, numbers within a twentieth."""
    want, have = shown.split(), real.split()
    if "..." in want:
        cut = want.index("...")
        return len(have) >= cut and all(map(near, want[:cut], have[:cut]))
    return len(want) == len(have) and all(map(near, want, have))


def near(want, have):
    if want == have:
        return True
    try:
        want, have = (float(word.strip("(),;:%").replace(",", "")) for word in (want, have))
    except ValueError:
        return False
    return abs(want - have) <= 0.05 * abs(want)


def test_the_checks_can_fail(tmp_path):
    assert alike("rmse  0.9683 ...", "rmse 0.97 0.0249")
    assert not alike("rmse 0.9683", "rmse 1.2")
    assert not alike("rmse 0.9683", "mae 0.9683")
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n")
    assert spoken(blocks(page)[0].text) == [["echo one\n", ["two"]]]
    with pytest.raises(AssertionError, match="exit 3"):
        done("exit 3", "here")


def test_what_is_left_out_has_a_reason():
    for page in PAGES:
        for block in blocks(page):
            if block.mark.startswith(("not run", "slow")):
                assert re.fullmatch(r"(not run|slow): .{10,}", block.mark), f"{name(page)}:{block.line}"


# commands, options, links

SUBSTITUTED = re.compile(r'"?\$\(tacit ([^)]*)\)"?')
SPOKEN = re.compile(r"`(?:\.venv/bin/)?tacit ([^`\n]*)`|^\$? ?(?:\.venv/bin/)?tacit (.*)$", re.M)


def told():
    """Every command line in the documents, with its page."""
    for page in PAGES:
        for match in SPOKEN.finditer(page.read_text("utf-8")):
            line = match[1] or match[2]
            for inner in SUBSTITUTED.findall(line):
                yield name(page), inner.split()
            yield name(page), SUBSTITUTED.sub("VALUE", line).split()


def commands():
    group = typer.main.get_command(app)
    found = {}
    for word, command in group.commands.items():
        found[word] = {option for part in command.params for option in part.opts}
        for inner in getattr(command, "commands", {}).values():
            found[word] |= {option for part in inner.params for option in part.opts}
    return found


def test_every_command_and_option_told_of_exists():
    known = commands()
    lines = list(told())
    assert len(lines) > 50
    for page, words in lines:
        if not words or not re.fullmatch(r"[a-z]+", words[0]):
            spared = {"--help", "--version", "…", "...", "X", "COMMAND", __version__}
            assert not words or words[0] in spared, (page, words)
            continue
        assert words[0] in known, (page, words)
        for word in words[1:]:
            if word.startswith("--") and word not in {"--help", "--"}:
                assert word.split("=")[0].rstrip(".,;:…)") in known[words[0]], (page, words)


def test_every_command_has_help_and_is_in_the_manual(capsys):
    manual = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    for command in commands():
        assert main([command, "--help"]) == 0
        assert "Example" in capsys.readouterr().out, command
        assert f"## `tacit {command}`" in manual, command


LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def slug(heading):
    plain = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain, flags=re.ASCII)).strip("-")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        reached = (page.parent / file).resolve() if file else page
        assert reached.exists(), f"{name(page)} links to {target}"
        if anchor and reached.suffix == ".md" and reached.parent.name != "api":
            headings = re.findall(r"^#+ (.*)$", reached.read_text("utf-8"), re.M)
            assert anchor in map(slug, headings), f"{name(page)} links to {target}"


def test_no_page_is_missing_from_the_site():
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in PAGES[1:]:
        assert str(page.relative_to(ROOT / "docs")) in listed, page


def test_the_page_on_adding_a_method_is_the_example():
    page = ROOT / "docs" / "adding-a-method.md"
    file = ROOT / "examples" / "outside-method" / "src" / "tacit_fedbpr.py"
    own = [b.text for b in blocks(page) if b.kind == "python" and not (b.title or b.mark)]
    shown, trial = own[:-1], own[-1]
    assert trial.startswith("from tacit.data.load import load")
    assert [line for text in shown for line in text.splitlines() if line] == [
        line for line in file.read_text("utf-8").splitlines() if line
    ]


# methods


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_methods", ROOT / "docs" / "generate_methods.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def measured(generator):
    return json.loads(generator.MEASURED.read_text("utf-8"))


def test_every_method_has_a_page_in_which_it_is_named(generator, measured):
    pages = generator.page_of()
    built_in = {n for n, maker in catalogue.methods().items() if maker.__module__.startswith("tacit.")}
    assert set(pages) == built_in == set(measured)
    for method, page in pages.items():
        first = (ROOT / "docs" / "methods" / page).read_text("utf-8").splitlines()[0]
        assert f"`{method}`" in first, page


def test_settings_and_facts_on_the_pages_are_those_of_the_code(generator, measured):
    for page in PAGES:
        text = page.read_text("utf-8")
        assert generator.rendered(text, measured) == text, (
            f"run python docs/generate_methods.py for {page.name}"
        )


def test_a_changed_default_would_be_seen(generator, measured):
    page = (ROOT / "docs" / "methods" / "fcf.md").read_text("utf-8")
    assert generator.rendered(page.replace("| `dim` | `20` |", "| `dim` | `21` |"), measured) == page


def check_measured(generator, measured, method):
    now, kept = generator.measure(method), measured[method]
    assert now["traffic"] == pytest.approx(kept["traffic"], rel=0.02), method
    for new, old in zip(now["privacy"], kept["privacy"], strict=True):
        assert {**new, "epsilon": 0} == {**old, "epsilon": 0}, method
        assert new["epsilon"] == (None if old["epsilon"] is None else pytest.approx(old["epsilon"], rel=0.01))


@pytest.mark.parametrize("method", ["ldp-popularity", "dplcf", "mf-np"])
def test_a_quick_method_measures_as_its_page_says(generator, measured, method):
    check_measured(generator, measured, method)


@pytest.mark.slow
def test_every_method_measures_as_its_page_says(generator, measured):
    for method in measured:
        check_measured(generator, measured, method)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="the documentation is built with the extra 'docs'")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    fetched = re.compile(
        r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//'
        r'|<link[^>]*rel="(?:stylesheet|preconnect)"[^>]*href="(?:https?:)?//'
    )
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text("utf-8")), page
