"""``tacit server``: the server of a federation of real devices."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import Watching
from tacit.errors import TacitError

EXAMPLE = (
    "Examples: tacit server here --key · "
    "tacit server here fedrec --data ml-100k --people 50 --devices keys.txt --host 0.0.0.0 · "
    "tacit server here · tacit server here --status"
)


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("server", epilog=EXAMPLE)(server)


def server(
    folder: Annotated[Path, typer.Argument(help="The server's folder.")],
    method: Annotated[
        str, typer.Argument(help="A method, to found a federation; without one it goes on.")
    ] = "",
    people: Annotated[int, typer.Option(help="How many people will take part.", min=0)] = 0,
    devices: Annotated[
        list[Path] | None,
        typer.Option(help="A file of devices' public keys, one a line (with --status: serve nothing)."),
    ] = None,
    revoke: Annotated[str, typer.Option(help="Shut a device out, by its key's fingerprint.")] = "",
    key: Annotated[bool, typer.Option("--key", help="Print the server's public key and stop.")] = False,  # noqa: FBT002
    status: Annotated[bool, typer.Option("--status", help="Show the federation and stop.")] = False,  # noqa: FBT002
    proxy: Annotated[str, typer.Option(help="The proxy's address: https://host:port.")] = "",
    proxy_key: Annotated[str, typer.Option(help="The proxy's public key, as its --init printed it.")] = "",
    proxy_ca: Annotated[
        Path | None, typer.Option(help="The certificate that vouches for the proxy, if another does.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=1, max=65535)] = 9443,
    certificates: Annotated[
        Path | None, typer.Option(help="A folder with server.pem, server.key and ca.pem.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name or address by which devices reach it, for the certificate. Repeatable."),
    ] = None,
    deadline: Annotated[float, typer.Option(help="Seconds to wait for answers in a step.", min=1)] = 60.0,
    accuracy: Annotated[
        str, typer.Option(help="Ask for one randomised bit of how good a list is: EPSILON or EPSILON:ROUNDS.")
    ] = "",
    data: options.Data = "",
    rounds: options.Rounds = 0,
    sets: options.Sets = None,
    protect: options.Protect = None,
    transport: options.Transport = "",
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Found a federation and run it, go on after a stop or a kill, or look at it.

    Of --data the server takes the catalogue (ids, features, the scale of ratings), never anybody's history.
    """
    from tacit.deploy import running  # heavy rooms load on first use
    from tacit.deploy.operator_view import printed, seen

    if key:
        typer.echo(running.server_key(folder).hex())
        return 0
    keys = running.keys_in(devices or [])
    if keys and not method:
        running.admit(folder, keys)
    if status:
        view = seen(folder)
        typer.echo(json.dumps(view)) if as_json else printed(view)
        return 0
    if revoke:
        gone = running.revoked(folder, revoke)
        typer.echo(f"revoked {revoke}: {gone} of its people had enrolled; nothing more in, nothing more out")
        return 0
    if method:
        given: dict[str, Any] = {
            "data": data,
            "rounds": rounds,
            "settings": options.settings_from(sets),
            "protect": protect,
            "transport": transport,
        }
        experiment = options.experiment(method, given)
        running.found(folder, experiment, people, proxy, proxy_key, data_dir, proxy_ca, accuracy)
        running.admit(folder, keys)
    elif people or data or sets or protect or transport or rounds or proxy or accuracy:
        raise TacitError(
            "a federation goes on as it was founded", "give the folder alone (and --devices, --host)"
        )
    return _serve(folder, (host, port, certificates, name or (), deadline), as_json=as_json, quiet=quiet)


def _serve(
    folder: Path,
    listening: tuple[str, int, Path | None, Sequence[str], float],
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    from tacit.cli.rounds import Rounds
    from tacit.deploy import running
    from tacit.deploy.operator_view import printed, seen

    with Watching(quiet=quiet or as_json) as watching, watching.stops_softly():
        finished = running.served(folder, *listening, Rounds(watching))
    if not finished:
        sys.stderr.write(f"tacit: stopped and saved; continue with: tacit server {folder}\n")
        return 130
    view = seen(folder)
    typer.echo(json.dumps(view)) if as_json else printed(view)
    return 0
