"""``tacit budget``: the noise for a target ε, or the ε of a noise, and a table to choose from."""

import json
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.errors import TacitError

EXAMPLE = "Example: tacit budget --users 6040 --cohort 200 --rounds 300 --epsilon 4"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("budget", epilog=EXAMPLE)(budget)


def budget(
    users: Annotated[int, typer.Option(help="How many people there are.")],
    cohort: Annotated[
        int, typer.Option(help="How many take part in a round (on average, with Poisson sampling).")
    ],
    rounds: Annotated[int, typer.Option(help="How many rounds.")],
    delta: Annotated[float, typer.Option(help="The probability that ε may fail.")] = 1e-6,
    sampler: Annotated[
        str, typer.Option(help="poisson, fixed, or none (everybody's turn is known).")
    ] = "poisson",
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    noise: Annotated[
        float, typer.Option(help="Standard deviation on the sum, divided by the clip norm.")
    ] = 0.0,
    epsilon: Annotated[float, typer.Option(help="The target ε.")] = 0.0,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Plan user-level privacy of clipped sums with Gaussian noise."""
    if bool(noise) == bool(epsilon):
        raise TacitError(
            "one of two is wanted", "give --noise Z to learn ε, or --epsilon E to learn the noise"
        )
    from tacit.account.calibrate import budget as planned  # accounting loads on first use

    given: dict[str, Any] = {"noise": noise or None, "epsilon": epsilon or None}
    found = planned(users, cohort, rounds, delta, sampler, adjacency, **given)
    if as_json:
        typer.echo(json.dumps(found))
        return
    from tacit.report.tables import print_rows

    shown = [
        (name, f"{value:.6g}" if isinstance(value, float) else _words(value)) for name, value in found.items()
    ]
    print_rows(f"{cohort} of {users} people, {rounds} rounds", ("", ""), shown)


def _words(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
