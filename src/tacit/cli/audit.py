"""``tacit audit``: attacks on a run, each with only what its observer saw; the claim stands beside them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError

EXAMPLE = "Example: tacit audit runs/mine --rounds 10 --attack rated-set-intersection"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("audit", epilog=EXAMPLE)(audit)


def audit(
    run: Annotated[Path | None, typer.Argument(help="The folder of a run, finished or not.")] = None,
    attack: Annotated[list[str] | None, typer.Option(help="Only this attack. Repeatable.")] = None,
    rounds: Annotated[
        int, typer.Option(help="Rounds to replay (5 by default) and to train anew (50 by default).", min=0)
    ] = 0,
    grid: Annotated[bool, typer.Option("--grid", help="Each attack on each protection; no run.")] = False,  # noqa: FBT002
    data: Annotated[str, typer.Option(help="With --grid: the data set (else a small one).")] = "",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Attack a run: what uploads, sums, letters, answers and models give away, and what guessing would.

    Exits with 1, and one line on stderr, if a measured lower bound is above what the run claims.
    """
    if grid == (run is not None):
        raise TacitError(
            "--grid attacks methods, not a run" if grid else "no run given",
            "give either the folder of a run, or --grid",
        )
    if data and not grid:
        raise TacitError("--data belongs to --grid", "a run knows its own data")
    from tacit.audit.suite import audited  # heavy rooms load on first use

    with Watching(quiet=quiet or as_json) as watching:
        if grid:
            from tacit.audit.grid import grid as every

            found = every(attack or [], data, rounds, data_dir, watching)
        else:
            assert run is not None
            found = audited(run, attack or [], rounds, data_dir, watching)
    if as_json:
        typer.echo(json.dumps(found))
    elif grid:
        _show_grid(found)
    else:
        _show(run, found)
    return refuted(found)


def refuted(found: Mapping[str, Any]) -> int:
    """1 with one line on stderr per claim that a measurement refutes, else 0."""
    groups = found.get("grid", [found])
    broken = [(group, line) for group in groups for line in group["attacks"] if "exceeds" in line]
    for group, line in broken:
        where = f"{group['protection']}, " if "protection" in group else ""
        sys.stderr.write(f"tacit: claim refuted: {where}{line['name']}: {line['exceeds']}\n")
    return 1 if broken else 0


def _show(run: Path | None, found: Mapping[str, Any]) -> None:
    from tacit.report.tables import epsilon_text, print_rows

    rows = [row for line in found["attacks"] for row in _rows(line)]
    print_rows(f"attacks on {run}", ("attack", "observer", "metric", "found", "guessed"), rows, right=(3, 4))
    for line in found["attacks"]:
        if "skipped" in line:
            typer.echo(f"does not apply: {line['name']}: {line['skipped']}")
        if "suspicious" in line:
            typer.echo(f"look at this: {line['name']}: {line['suspicious']}")
    for claim in found["privacy"]:
        unit = "user" if claim["unit"] == "user" else f"{claim['unit']}, {claim['adjacency']}"
        typer.echo(f"claimed against {claim['observer']}: {epsilon_text(claim)} ({unit})")
    if not found["privacy"]:
        why = "nothing leaves a device" if found["finished"] else "the run is not finished"
        typer.echo(f"nothing is claimed: {why}")


def _show_grid(found: Mapping[str, Any]) -> None:
    """Few columns at a time, so that a terminal can show them."""
    from tacit.audit.grid import rows
    from tacit.report.tables import print_rows

    columns, table = rows(found)
    for low in range(1, len(columns), 4):
        part = [columns[0], *columns[low : low + 4]]
        lines = [[row[0], *row[low : low + 4]] for row in table]
        print_rows(f"attack × protection on {found['data']}: found (guessed)", part, lines)


def _rows(line: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """One row per metric; what a guess from public knowledge scores stands in the last column."""
    metrics = line["metrics"]
    shown = [name for name in metrics if not name.startswith("prior_")]
    return [
        (
            line["name"] if name == shown[0] else "",
            line["observer"] if name == shown[0] else "",
            name.replace("_", " "),
            f"{metrics[name]:.6g}",
            f"{metrics['prior_' + name]:.6g}" if "prior_" + name in metrics else "",
        )
        for name in shown
    ]
