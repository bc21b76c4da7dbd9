"""``tacit compare``: several methods in one table."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError

EXAMPLE = "Example: tacit compare fedmf fedrec:rho=3 fedrec++:rho=3 --data demo --seeds 5"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("compare", epilog=EXAMPLE)(compare)


def compare(
    methods: Annotated[list[str], typer.Argument(help="Methods; each may carry settings: fedrec:rho=3.")],
    data: options.Data = "",
    split: options.SplitName = "",
    rounds: options.Rounds = 0,
    seed: options.Seed = 1,
    seeds: Annotated[int, typer.Option(help="How many seeds; five or more to compare methods.", min=1)] = 1,
    sets: options.Sets = None,
    protect: options.Protect = None,
    transport: options.Transport = "",
    metrics: options.Metrics = "",
    out: Annotated[
        Path | None, typer.Option(help="Where the run folders go; a table cut short goes on there.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="No twins and baselines beside.")] = False,  # noqa: FBT002
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Run several methods on the same data, splits and seeds, and print one table."""
    from tacit.config.comparison import compared, contestants  # heavy rooms load on first use
    from tacit.config.experiment import method_of

    if len(set(methods)) < len(methods):
        raise TacitError("a method is named twice", "name each once")
    given = {
        "data": data,
        "split": split,
        "rounds": rounds,
        "seed": seed,
        "settings": options.settings_from(sets),
        "protect": protect,
        "transport": transport,
        "metrics": options.names(metrics),
    }
    base = options.experiment(methods[0].split(":")[0], given)
    folder = out or Path("runs") / f"compare-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    entries = contestants(methods, base, beside=not only)
    for entry in entries:
        method_of(entry.experiment)  # what one cannot do is refused before the first of them trains
    with stopping(folder), Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
        table = compared(entries, seeds, folder, data_dir, threads, watching)
    if as_json:
        typer.echo(json.dumps(table))
    else:
        show(table)
        typer.echo(f"run folders: {folder}\nas a page: tacit report {folder}")
    return 0


@contextmanager
def stopping(folder: Path) -> Generator[None]:
    """Says how to go on, where several runs were stopped on the way."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"tacit: stopped and saved; the same command with --out {folder} goes on\n")
        raise


def show(table: dict[str, Any]) -> None:
    """Print the table."""
    from tacit.report.tables import print_compared

    print_compared(caption(table, len(table["rows"])), table)


def caption(table: dict[str, Any], rows: int) -> str:
    """What the numbers of a table are of, and what its p-values are.

    Example:
        >>> told = {"seeds": 3, "primary": "rmse", "reference": "fedmf", "pairs": "people"}
        >>> caption(told, 1)
        'mean ± standard deviation over 3 seeds'
        >>> caption({**told, "seeds": 1}, 2)
        "1 seed; p: Student's t paired over people on rmse against fedmf, Holm's correction"
    """
    seeds = table["seeds"]
    numbers = "1 seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"
    if rows < 2:
        return numbers
    pairs = f"paired over {table['pairs']} on {table['primary']} against {table['reference']}"
    return f"{numbers}; p: Student's t {pairs}, Holm's correction"
