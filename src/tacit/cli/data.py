"""``tacit data``: what there is, what it looks like, how to get it."""

import json
from typing import Annotated

import typer

from tacit.cli import options
from tacit.cli.progress import Watching


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(help="List, describe and download data sets.", invoke_without_command=True)
    group.callback(epilog="Example: tacit data describe ml-1m")(listed)
    group.command("get", epilog="Example: tacit data get ml-1m")(fetched)
    group.command("describe", epilog="Example: tacit data describe demo")(described)
    app.add_typer(group, name="data")


def listed(
    context: typer.Context,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """List the data sets, one line each."""
    del quiet  # there is nothing to wait for
    if context.invoked_subcommand is not None:
        return
    from tacit.data import known

    sets = known(data_dir)
    if as_json:
        typer.echo(json.dumps([entry._asdict() for entry in sets]))
        return
    from tacit.report.tables import print_rows

    rows = [(entry.name, "here" if entry.available else "not here", entry.line) for entry in sets]
    print_rows("data sets", ("name", "", "what it is"), rows)


def fetched(
    name: Annotated[str, typer.Argument(help="A data set by name.")],
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Download a data set from its publisher, checked and resumable."""
    from tacit.data import get

    with Watching(quiet=quiet) as watching:
        watching.stage("fetching")
        path = get(name, data_dir)
    typer.echo(f"{name} is at {path}")


def described(
    data: Annotated[str, typer.Argument(help="A data set by name, or the path of a table.")] = "demo",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Describe a data set: size, ratings, activity, popularity, features."""
    from tacit.data import describe, load

    with Watching(quiet=quiet or as_json):
        facts = describe(load(data, data_dir))
    if as_json:
        typer.echo(json.dumps(facts))
        return
    from tacit.report.tables import print_rows

    print_rows(data, ("", ""), [(name, _shown(value)) for name, value in facts.items()])


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return str(value)
