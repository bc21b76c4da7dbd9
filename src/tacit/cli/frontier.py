"""``tacit frontier``: accuracy against privacy against bytes, as a table and a picture."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.cli.compare import caption, stopping
from tacit.cli.progress import Watching
from tacit.errors import TacitError

EXAMPLE = "Example: tacit frontier dp-privrec privrec --epsilon 1,2,4,8 --seeds 5 --out runs/frontier"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("frontier", epilog=EXAMPLE)(frontier)


def frontier(
    methods: Annotated[list[str], typer.Argument(help="Methods, as in dp-privrec:clients=200.")],
    epsilon: Annotated[str, typer.Option(help="Budgets, for methods that take one.")] = "1,2,4,8",
    shrunk: Annotated[
        str, typer.Option("--bytes", help="Ways to shrink uploads: full, half, int8, topk:0.1, svd:8.")
    ] = "full",
    data: options.Data = "",
    split: options.SplitName = "",
    rounds: options.Rounds = 0,
    seed: options.Seed = 1,
    seeds: Annotated[int, typer.Option(help="How many seeds; five or more to compare methods.", min=1)] = 1,
    sets: options.Sets = None,
    transport: options.Transport = "",
    metrics: options.Metrics = "",
    out: Annotated[
        Path | None, typer.Option(help="Where runs, table and picture go; one cut short goes on there.")
    ] = None,
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Run methods at several privacy budgets and upload sizes; print the table and draw the frontier."""
    from tacit.config import frontier as points  # heavy rooms load on first use
    from tacit.report.frontier import rows, write_frontier
    from tacit.report.tables import print_rows
    from tacit.runtime.checkpoint import written_whole

    if len(set(methods)) < len(methods):
        raise TacitError("a method is named twice", "name each once")
    budgets, ways = points.numbers(epsilon), points.shrinking(shrunk)
    given = {
        "data": data,
        "split": split,
        "rounds": rounds,
        "seed": seed,
        "settings": options.settings_from(sets),
        "transport": transport,
        "metrics": options.names(metrics),
    }
    base = options.experiment(methods[0].split(":")[0], given)
    folder = out or Path("runs") / f"frontier-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    asked = points.points(methods, base, budgets, ways)
    with stopping(folder), Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
        found = points.frontier(asked, seeds, folder, data_dir, threads, watching)
    whole = json.dumps(found, indent=1)
    written_whole(folder / points.TABLE, lambda draft: draft.write_text(whole, encoding="utf-8"))
    files = write_frontier(found, folder)
    if as_json:
        typer.echo(json.dumps({**found, "files": [str(file) for file in files]}))
        return 0
    columns, lines = rows(found)
    print_rows(caption(found, len(lines)), columns, lines, right=range(2, len(columns)))
    for one in found["refused"]:
        typer.echo(f"no such point: {one['point']}: {one['why']}")
    typer.echo("\n".join(f"wrote {file}" for file in files))
    return 0
