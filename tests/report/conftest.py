"""Pages as the commands write them, each made once: what a reader may open."""

import pytest

from tacit.cli.main import main

TINY = "demo:users=60,items=50,mean=15"
NOISY = ("--transport", "secure-sum:0.1:0.05", "--protect", "skellam:1.0:10:3.0")


def asked(*words):
    """A command that must succeed."""
    assert main([str(word) for word in words]) == 0


def fresh(folder):
    """A run as it comes: nothing beside it, never attacked."""
    asked("run", "fedrec++", "--data", TINY, "--rounds", 40, "--out", folder / "run", "--quiet")
    return folder / "run" / "report.html"


def beside(folder):
    """Two seeds with twins and baselines beside them, attacked."""
    table = folder / "table"
    asked("compare", "fedrec++", "--data", TINY, "--rounds", 12, "--seeds", 2, "--out", table, "--quiet")
    asked("audit", table / "fedrec++-seed1", "--rounds", 3, "--quiet")
    asked("report", table, "--out", folder / "beside.html", "--quiet")
    return folder / "beside.html"


def promised(folder):
    """A run with a bound against the server itself, attacked."""
    run = folder / "run"
    asked("run", "fedmf", "--data", TINY, "--rounds", 5, *NOISY, "--out", run, "--quiet")
    asked("audit", run, "--rounds", 3, "--quiet")
    asked("report", run, "--quiet")
    return run / "report.html"


def frontier(folder):
    """Accuracy, privacy and bytes of two methods."""
    asked(
        "frontier", "ldp-spectral", "pop", "--epsilon", "1,4,16", "--data", TINY, "--seeds", 2,
        "--out", folder, "--quiet",
    )  # fmt: skip
    return folder / "frontier.html"


MAKERS = {"fresh": fresh, "beside": beside, "promised": promised, "frontier": frontier}


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """The file of a page by its kind."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = MAKERS[kind](tmp_path_factory.mktemp(f"page-{kind}"))
        return made[kind]

    return of
