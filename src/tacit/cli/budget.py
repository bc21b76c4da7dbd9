"""``tacit budget``: the noise for a target ε, or the ε of a noise, and a table to choose from."""

import itertools
import json
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.errors import TacitError

EXAMPLE = "Example: tacit budget --users 6040 --cohort 100,300 --rounds 100,300 --epsilon 4"
MOST_LINES = 200


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("budget", epilog=EXAMPLE)(budget)


def budget(
    users: Annotated[int, typer.Option(help="How many people there are.")],
    cohort: Annotated[
        str, typer.Option(help="How many take part in a round (on average, with Poisson sampling).")
    ],
    rounds: Annotated[str, typer.Option(help="How many rounds. Several numbers with commas: a table.")],
    delta: Annotated[float, typer.Option(help="The probability that ε may fail.")] = 1e-6,
    sampler: Annotated[
        str, typer.Option(help="poisson, fixed, or none (everybody's turn is known).")
    ] = "poisson",
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    noise: Annotated[str, typer.Option(help="Standard deviation on the sum, divided by the clip norm.")] = "",
    epsilon: Annotated[str, typer.Option(help="The target ε.")] = "",
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Plan user-level privacy of clipped sums with Gaussian noise.

    Cohort, rounds, noise and ε may each be several numbers separated by commas: a line for every
    combination.
    """
    if bool(noise) == bool(epsilon):
        raise TacitError(
            "one of two is wanted", "give --noise Z to learn ε, or --epsilon E to learn the noise"
        )
    wholes = [numbers("--cohort", cohort, whole=True), numbers("--rounds", rounds, whole=True)]
    name = "noise" if noise else "epsilon"
    levels = numbers(f"--{name}", noise or epsilon)
    cases = list(itertools.product(*wholes, levels))
    if len(cases) > MOST_LINES:
        raise TacitError(f"a table of {len(cases)} lines", f"ask for at most {MOST_LINES} combinations")
    from tacit.account.calibrate import budget as planned  # accounting loads on first use
    from tacit.cli.progress import Watching

    found: list[dict[str, Any]] = []
    with Watching(quiet=quiet or as_json) as watching:
        watching.stage("planning", len(cases))
        for size, turns, level in cases:
            found.append(planned(users, int(size), int(turns), delta, sampler, adjacency, **{name: level}))
            watching.step(len(found), {})
    if as_json:
        typer.echo(json.dumps(found[0] if len(found) == 1 else {"rows": found}))
    elif len(found) == 1:
        _show_one(found[0])
    else:
        _show_table(found)


def numbers(option: str, text: str, *, whole: bool = False) -> list[float]:
    """Numbers separated by commas.

    Example:
        >>> numbers("--cohort", "30,100", whole=True), numbers("--epsilon", "0.5")
        ([30, 100], [0.5])
    """
    read = int if whole else float
    try:
        return [read(part) for part in text.split(",")]
    except ValueError:
        kind = "whole number" if whole else "number"
        raise TacitError(
            f"{option} {text!r} is no {kind}", f"write one, or several with commas: {option} 1,2"
        ) from None


def _show_one(found: dict[str, Any]) -> None:
    from tacit.report.tables import print_rows

    shown = [
        (name, f"{value:.6g}" if isinstance(value, float) else _words(value))
        for name, value in found.items()
        if value not in ([], ())
    ]
    title = f"{found['cohort']} of {found['users']} people, {found['rounds']} rounds"
    print_rows(title, ("", ""), shown)


def _show_table(found: list[dict[str, Any]]) -> None:
    from tacit.report.tables import print_rows

    first = found[0]
    columns = ("cohort", "rounds", "epsilon", "noise", "noise on the mean")
    rows = [
        (
            str(line["cohort"]),
            str(line["rounds"]),
            f"{line['epsilon']:.4g}",
            f"{line['noise']:.4g}",
            f"{line['noise_on_mean']:.3g}",
        )
        for line in found
    ]
    title = (
        f"{first['users']} people, delta {first['delta']:g}, {first['sampler']} sampling, "
        f"{first['adjacency']}, {first['unit']} level"
    )
    print_rows(title, columns, rows, right=range(5))
    told = dict.fromkeys(_words(line[key]) for line in found for key in ("accountant", "assumes"))
    about = ("noise in clip norms: on the sum, and on each number of the mean", *filter(None, told))
    typer.echo("; ".join(about))


def _words(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
