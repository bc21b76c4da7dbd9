"""``tacit reproduce``: a published table, the paper's number beside ours."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("reproduce", epilog="Example: tacit reproduce fedrec/table2")(reproduce)


def reproduce(
    table: Annotated[str, typer.Argument(help="PAPER/TABLE; without one they are listed.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller form that says so.")] = False,  # noqa: FBT002
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the table to this file, where it has a picture.")
    ] = None,
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Regenerate a published table from runs."""
    from tacit.reproduce.table import Options, reproduced, tables  # heavy rooms load on first use

    if not table:
        names = sorted(tables())
        typer.echo(json.dumps({"tables": names}) if as_json else "\n".join(names))
        return
    with Watching(quiet=quiet or as_json) as watching:
        found = reproduced(table, Options(data_dir, quick, threads, watching))
    if picture is not None:
        if found.picture is None:
            raise TacitError(f"{table} has no picture", "leave --picture out; dp-sub/bytes has one")
        found.picture(picture)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    from tacit.report.tables import print_rows

    rows = [
        (
            cell.row,
            cell.column,
            _number(cell.paper),
            _number(cell.ours),
            _difference(cell.paper, cell.ours),
            cell.note,
        )
        for cell in found.cells
    ]
    print_rows(found.title, ("row", "column", "paper", "ours", "difference", ""), rows, right=(2, 3, 4))
    for note in found.notes:
        typer.echo(f"note: {note}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def _difference(paper: float | None, ours: float | None) -> str:
    return "" if paper is None or ours is None else f"{ours - paper:+.4g}"
