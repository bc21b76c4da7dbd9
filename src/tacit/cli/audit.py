"""``tacit audit``: attacks on a run, each with only what its observer saw; the claim stands beside them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching

EXAMPLE = "Example: tacit audit runs/mine --rounds 10 --attack rated-set-intersection"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("audit", epilog=EXAMPLE)(audit)


def audit(
    run: Annotated[Path, typer.Argument(help="The folder of a run, finished or not.")],
    attack: Annotated[list[str] | None, typer.Option(help="Only this attack. Repeatable.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds to replay and attack (5 by default).", min=0)] = 0,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Attack a run: what single uploads, sums, letters and answers give away, and what guessing would."""
    from tacit.audit.suite import audited  # heavy rooms load on first use

    with Watching(quiet=quiet or as_json) as watching:
        found = audited(run, attack or [], rounds, data_dir, watching)
    if as_json:
        typer.echo(json.dumps(found))
        return
    from tacit.report.tables import epsilon_text, print_rows

    rows = [row for line in found["attacks"] for row in _rows(line)]
    print_rows(f"attacks on {run}", ("attack", "observer", "metric", "found", "guessed"), rows, right=(3, 4))
    for line in found["attacks"]:
        if "skipped" in line:
            typer.echo(f"does not apply: {line['name']}: {line['skipped']}")
    for claim in found["privacy"]:
        typer.echo(f"claimed against {claim['observer']}: {epsilon_text(claim)} ({claim['unit']})")


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
