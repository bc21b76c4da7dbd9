"""``tacit up``: a whole deployment on this machine, for trying out."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.cli.progress import Watching

EXAMPLE = (
    "Examples: tacit up --data demo --devices 20 · tacit up fedmmf --devices 12 --rounds 3 · "
    "tacit up fedrec --data demo:users=40 --processes"
)
SHOWN = "fedrec++"  # where no method is named: one that needs every part of a deployment
SHOWN_ROUNDS = 10

Seeded = Annotated[
    bool, typer.Option("--seeded", help="Repeatable, equal to a simulation; then nothing is claimed.")
]


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("up", epilog=EXAMPLE)(up)


def up(
    method: Annotated[
        str,
        typer.Argument(
            help=f"A method's name, or an experiment file; without one, {SHOWN_ROUNDS} rounds of {SHOWN}."
        ),
    ] = "",
    devices: Annotated[int, typer.Option(help="How many devices, one person each.", min=2)] = 10,
    processes: Annotated[bool, typer.Option("--processes", help="A process for every device.")] = False,  # noqa: FBT002
    seeded: Seeded = False,  # noqa: FBT002 - a flag
    keep: Annotated[Path | None, typer.Option(help="Keep all folders here instead of removing them.")] = None,
    accuracy: Annotated[
        str, typer.Option(help="Ask for one randomised bit of how good a list is: EPSILON or EPSILON:ROUNDS.")
    ] = "",
    data: options.Data = "",
    split: options.SplitName = "",
    rounds: options.Rounds = 0,
    seed: options.Seed = 0,
    sets: options.Sets = None,
    protect: options.Protect = None,
    transport: options.Transport = "",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Start a server, devices, and a proxy where one is needed, with TLS and fresh keys; stop all at the end.

    Nothing keeps running and nothing stays on the disk, unless --keep says where.
    """
    given = {
        "data": data,
        "split": split,
        "rounds": rounds if method else rounds or SHOWN_ROUNDS,
        "seed": seed,
        "settings": options.settings_from(sets),
        "protect": protect,
        "transport": transport,
    }
    experiment = options.experiment(method or SHOWN, given)
    from tacit.cli.rounds import Rounds  # heavy rooms load on first use
    from tacit.deploy.accuracy import Accuracy
    from tacit.deploy.operator_view import printed
    from tacit.deploy.up import Trial, tried

    asked = Accuracy.parsed(accuracy) if accuracy else None
    trial = Trial(experiment, devices, processes, seeded, keep, asked)
    with Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
        view = tried(trial, Rounds(watching), data_dir)
    if view is None:
        sys.stderr.write("tacit: stopped; nothing is left running\n")
        return 130
    if as_json:
        typer.echo(json.dumps(view))
    else:
        printed(view)
    return 0
