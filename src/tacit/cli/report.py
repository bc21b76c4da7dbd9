"""``tacit report``: runs as one HTML file that opens without a network."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.cli.progress import Watching

EXAMPLE = "Example: tacit report runs/mine --beside; or tacit report runs/mine runs/another --out both.html"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("report", epilog=EXAMPLE)(report)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, or a comparison's folder. The first is told about, the others stand beside it."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The file; report.html in the first folder unless given.")
    ] = None,
    beside: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--beside", help="First train the run's twins and the usual baselines, once.")
    ] = False,
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Accuracy, privacy per observer, bytes, attacks and groups of runs, with pictures, in one HTML file."""
    from tacit.errors import TacitError
    from tacit.report.page import write_page  # plotting loads on first use

    if beside and len(runs) > 1:
        raise TacitError("--beside stands other runs beside one run", "give one run, or leave --beside out")
    target = out or runs[0] / "report.html"
    if target.is_dir():
        raise TacitError(f"{target} is a folder", "give --out a file, such as --out report.html")
    if beside:
        from tacit.config.comparison import beside as trained  # the heaviest room

        with Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
            runs = [*runs, *trained(runs[0], data_dir, threads, watching)]
    elif len(runs) == 1:
        kept = [file.parent for file in runs[0].glob("beside/*/result.json")]
        runs = [*runs, *sorted(kept, key=lambda run: ("-twin-" not in run.name, run.name))]
    try:
        written = write_page(runs, target)
    except OSError as error:
        raise TacitError(f"{target} cannot be written ({error.strerror})", "choose another --out") from error
    if as_json:
        typer.echo(json.dumps({"report": str(written), "runs": [str(run) for run in runs]}))
    elif not quiet:
        typer.echo(f"report: {written}")
