"""``tacit recommend``: the top of the list for somebody who trained, or for a newcomer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.config.top import Recommended


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("recommend", epilog="Example: tacit recommend runs/mine --user 42 --k 5")(recommend)


def recommend(
    run: Annotated[Path | None, typer.Argument(help="The folder of a finished run.")] = None,
    user: Annotated[str, typer.Option(help="The raw id of somebody in the data, or on the device.")] = "",
    history: Annotated[
        Path | None, typer.Option(help="A newcomer's history: CSV, Parquet or .inter.")
    ] = None,
    device: Annotated[
        Path | None, typer.Option(help="A device's folder instead of a run: its own list, with no network.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="The key of a sealed device.")] = None,
    k: Annotated[int, typer.Option(help="How many items.", min=1)] = 10,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Recommend items by raw id, leaving out what the person has seen."""
    if (run is None) == (device is None):
        raise TacitError("say from what", "give a run's folder, or --device DIR")
    if device is not None:
        if history is not None:
            raise TacitError("--history with --device", "import it: tacit device DIR --import FILE")
        found = _on_device(device, key_file, user, k)
        _shown(
            found, f"for {user or 'you'}", as_json=as_json, told={"device": str(device), "user": user or None}
        )
        return
    assert run is not None
    if bool(user) == (history is not None):
        raise TacitError(
            "say for whom", "give --user ID for somebody in the data, or --history FILE for a newcomer"
        )
    from tacit.cli.progress import Watching
    from tacit.config.serving import opened  # heavy rooms load on first use

    with Watching(quiet=quiet or as_json):
        served = opened(run, data_dir)
        top = served.for_user(user, k) if history is None else served.for_history(history, k)
    _shown(top, f"for {user or history}", as_json=as_json, told={"run": str(run), "user": user or None})


def _on_device(folder: Path, key_file: Path | None, user: str, k: int) -> "list[Recommended]":
    from tacit.deploy.local_view import LocalView
    from tacit.deploy.store import DeviceStore

    with DeviceStore.opened(folder, key_file) as store:
        return LocalView.of(store, store.person_meant(user)).top(k)


def _shown(top: Sequence[Any], title: str, *, as_json: bool, told: dict[str, Any]) -> None:
    if as_json:
        items = [{"item": row.item, "score": row.score, "title": row.title} for row in top]
        typer.echo(json.dumps({**told, "items": items}))
        return
    from tacit.report.tables import print_rows

    rows = [(str(place), str(row.item), f"{row.score:.3f}", row.title) for place, row in enumerate(top, 1)]
    print_rows(title, ("", "item", "score", "title"), rows, right=(0, 2))
