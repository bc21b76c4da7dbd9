"""``tacit recommend``: the top of the list for somebody who trained, or for a newcomer."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.errors import TacitError


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("recommend", epilog="Example: tacit recommend runs/mine --user 42 --k 5")(recommend)


def recommend(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    user: Annotated[str, typer.Option(help="The raw id of somebody in the data.")] = "",
    history: Annotated[
        Path | None, typer.Option(help="A newcomer's history: CSV, Parquet or .inter.")
    ] = None,
    k: Annotated[int, typer.Option(help="How many items.", min=1)] = 10,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Recommend items by raw id, leaving out what the person has seen."""
    if bool(user) == (history is not None):
        raise TacitError(
            "say for whom", "give --user ID for somebody in the data, or --history FILE for a newcomer"
        )
    from tacit.config.serving import opened  # heavy rooms load on first use

    served = opened(run, data_dir)
    top = served.for_user(user, k) if history is None else served.for_history(history, k)
    if as_json:
        items = [{"item": row.item, "score": row.score, "title": row.title} for row in top]
        typer.echo(json.dumps({"run": str(run), "user": user or None, "items": items}))
        return
    from tacit.report.tables import print_rows

    rows = [(str(place), str(row.item), f"{row.score:.3f}", row.title) for place, row in enumerate(top, 1)]
    print_rows(f"for {user or history}", ("", "item", "score", "title"), rows, right=(0, 2))
