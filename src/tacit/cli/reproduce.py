"""``tacit reproduce``: published tables, the papers' numbers beside ours."""

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError

KEPT = Path("reproduction")


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("reproduce", epilog="Example: tacit reproduce fedrec/table2")(reproduce)


def reproduce(
    table: Annotated[str, typer.Argument(help="PAPER/TABLE; without one they are listed.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every table not kept yet.")] = False,  # noqa: FBT002
    quick: Annotated[bool, typer.Option("--quick", help="A smaller form that says so.")] = False,  # noqa: FBT002
    out: Annotated[
        Path | None, typer.Option(help="Where results are kept (reproduction/ with --all and --index).")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Write this Markdown page, its pictures beside it, from all that is kept."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the table to this file, where it has a picture.")
    ] = None,
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Regenerate published tables from runs, and the index of all of them."""
    from tacit.reproduce.table import Options, tables  # heavy rooms load on first use

    if every and table:
        raise TacitError("--all and a table's name", "give one of the two")
    if picture and not table:
        raise TacitError("--picture without a table", "name one, such as dp-sub/bytes")
    if not (table or every or index):
        names = sorted(tables())
        typer.echo(json.dumps({"tables": names}) if as_json else "\n".join(names))
        return 0
    # between tables a stop loses nothing; inside one there is nothing to save, so it stops at once
    softly = Watching.stops_softly if every else nullcontext
    with Watching(quiet=quiet or as_json) as watching, softly(watching):
        wanted = Options(data_dir, quick, threads, watching)
        found = _one(table, wanted, out, picture) if table else _all(wanted, out or KEPT) if every else []
    if every and len(found) < len(tables()):
        where = out or KEPT
        sys.stderr.write(
            f"tacit: stopped after {len(found)} tables, kept in {where}; go on with the same line\n"
        )
        return 130
    _write_index(index, out or KEPT)
    if as_json:
        typer.echo(json.dumps(found[0] if table else {"tables": found}))
    elif table:
        _show(found[0])
    elif every:
        _show_all(found)
    if index is not None and not as_json:
        typer.echo(f"index: {index}")
    return 0


def _one(table: str, wanted: Any, out: Path | None, picture: Path | None) -> list[dict[str, Any]]:
    from tacit.reproduce.index import every_table
    from tacit.reproduce.table import reproduced, tables

    if out is None or picture is not None or table not in tables():
        found = reproduced(table, wanted)
        if picture is not None:
            if found.picture is None:
                raise TacitError(f"{table} has no picture", "leave --picture out; dp-sub/bytes has one")
            found.picture(picture)
        return [found.to_json()]
    (line,) = every_table(wanted, out, [table])
    if "skipped" in line:
        problem, _, remedy = line["skipped"].partition("; ")
        raise TacitError(problem, remedy)
    return [line]


def _all(wanted: Any, out: Path) -> list[dict[str, Any]]:
    from tacit.reproduce.index import every_table

    return list(every_table(wanted, out))


def _write_index(index: Path | None, out: Path) -> None:
    if index is None:
        return
    from tacit.reproduce.index import index_page, kept_pictures, kept_tables

    kept = kept_tables(out)
    if not kept:
        raise TacitError(
            f"nothing is kept in {out}", "run tacit reproduce --all --quick first, or give --out"
        )
    pictures = kept_pictures(kept, out)
    names = {table: f"pictures/{table.replace('/', '-')}.svg" for table in pictures}
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        for table, name in names.items():
            (index.parent / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(pictures[table], index.parent / name)
        index.write_text(index_page(kept, names), encoding="utf-8")
    except OSError as error:
        raise TacitError(f"{index} cannot be written ({error.strerror})", "choose another --index") from error


def _show(found: Mapping[str, Any]) -> None:
    from tacit.report.tables import print_rows
    from tacit.reproduce.index import difference, number

    rows = [
        (
            cell["row"],
            cell["column"],
            number(cell["paper"]),
            number(cell["ours"]),
            difference(cell["paper"], cell["ours"]),
            cell["note"],
        )
        for cell in found["cells"]
    ]
    columns = ("row", "column", "paper", "ours", "difference", "")
    print_rows(found["title"], columns, rows, right=(2, 3, 4))
    for note in found["notes"]:
        typer.echo(f"note: {note}")


def _show_all(found: list[dict[str, Any]]) -> None:
    from tacit.report.tables import print_rows
    from tacit.reproduce.index import percent, summary

    rows = []
    for line in map(summary, found):
        took = [line["seconds"], line["cpu_seconds"]]
        seconds = ["" if value is None else f"{value:.1f}" for value in took]
        apart = (percent(line["median"]), percent(line["largest"]))
        cells = (str(line["cells"]), str(line["compared"]))
        rows.append((line["table"], line["form"], *cells, *apart, *seconds, line["skipped"] or line["title"]))
    columns = ("table", "form", "cells", "compared", "median off", "largest", "seconds", "computing", "")
    print_rows("published tables, the papers' numbers beside ours", columns, rows, right=(2, 3, 4, 5, 6, 7))
    spent = sum(line.get("seconds", 0.0) for line in found)
    typer.echo(f"{len(found)} tables, {spent:.0f} s; one of them: tacit reproduce TABLE")
