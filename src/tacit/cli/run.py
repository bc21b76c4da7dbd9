"""``tacit run`` and ``tacit methods``."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError

RUN_EXAMPLE = "Example: tacit run fedrec++ --data ml-100k --set rho=2 --rounds 100 --out runs/mine"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("run", epilog=RUN_EXAMPLE)(run)
    app.command("methods", epilog="Example: tacit methods --json")(methods)


def run(
    method: Annotated[str, typer.Argument(help="A method's name, or an experiment file (TOML).")] = "",
    data: options.Data = "",
    split: options.SplitName = "",
    rounds: options.Rounds = 0,
    seed: options.Seed = 0,
    sets: options.Sets = None,
    protect: options.Protect = None,
    transport: options.Transport = "",
    metrics: options.Metrics = "",
    out: Annotated[Path | None, typer.Option(help="The run folder to make (under runs/ by default).")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue a run that was stopped or killed.")] = None,
    device: options.Device = "",
    data_dir: options.DataDir = None,
    threads: options.Threads = 1,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Simulate a federation, evaluate it, and write a run folder."""
    given = {
        "data": data,
        "split": split,
        "rounds": rounds,
        "seed": seed,
        "settings": options.settings_from(sets),
        "protect": protect,
        "transport": transport,
        "metrics": options.names(metrics),
        "device": device,
    }
    if resume is not None and (method or any(given.values()) or out):
        raise TacitError("--resume continues a run as it was configured", "give --resume FOLDER alone")
    if resume is None and not method:
        raise TacitError("no method given", "write tacit run fedrec++, or see `tacit methods`")
    with Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
        from tacit.config.session import continued, started  # heavy rooms load while somebody watches

        began = time.perf_counter()
        if resume is not None:
            session = continued(resume, data_dir, threads)
        else:
            session = started(options.experiment(method, given), out, data_dir, threads)
        result = session.finished(watching, loaded=time.perf_counter() - began)
    if result is None:
        sys.stderr.write(
            f"tacit: stopped and saved; continue with: tacit run --resume {session.folder.path}\n"
        )
        return 130
    show(result, as_json=as_json)
    return 0


def show(result: dict[str, Any], *, as_json: bool) -> None:
    """Print a result."""
    if as_json:
        typer.echo(json.dumps(result))
        return
    from tacit.report.tables import print_result

    print_result(result)


def methods(
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """List the methods and baselines, one line each."""
    del quiet  # there is nothing to wait for
    from tacit.config import catalogue

    federated = {name: catalogue.summary(maker) for name, maker in catalogue.methods().items()}
    baselines = {name: baseline.summary for name, baseline in catalogue.baselines().items()}
    if as_json:
        typer.echo(json.dumps({"federated": federated, "baselines": baselines}))
        return
    from tacit.report.tables import print_methods

    print_methods(federated, baselines)
