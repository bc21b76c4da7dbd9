"""``tacit card``: what a model is, for those who are given it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("card", epilog="Example: tacit card runs/mine")(card)


def card(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[Path | None, typer.Option(help="Where to write it (README.md in the run).")] = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Write a model card in Hugging Face's layout, from the run's own ledgers."""
    from tacit.report.card import write_card  # loads on first use

    written = write_card(run, out)
    if as_json:
        typer.echo(json.dumps({"run": str(run), "card": str(written)}))
    elif not quiet:
        typer.echo(str(written))
