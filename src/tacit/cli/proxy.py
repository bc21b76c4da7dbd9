"""``tacit proxy``: takes sealed reports and letters, passes on what hides people."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options

EXAMPLE = "Examples: tacit proxy here --init --server-key HEX · tacit proxy here --host 0.0.0.0 --port 9444"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("proxy", epilog=EXAMPLE)(proxy)


def proxy(
    folder: Annotated[Path, typer.Argument(help="The proxy's folder.")],
    init: Annotated[bool, typer.Option("--init", help="Make the folder.")] = False,  # noqa: FBT002
    server_key: Annotated[str, typer.Option(help="The public key of the server it works for.")] = "",
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=1, max=65535)] = 9444,
    certificates: Annotated[
        Path | None,
        typer.Option(help="A folder with proxy.pem and proxy.key (or server.pem and server.key)."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name or address by which it is reached, for the certificate. Repeatable."),
    ] = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Run the proxy between devices and a server; it can read nothing of what it carries."""
    from tacit.deploy.proxy import ProxyService  # heavy rooms load on first use
    from tacit.deploy.wire import key_told

    if init:
        key = key_told(server_key, "--server-key", "give what `tacit server DIR --key` prints")
        service = ProxyService.created(folder, key)
        told = {"folder": str(folder), "key": service.public.hex()}
        typer.echo(json.dumps(told) if as_json else f"the proxy's key: {told['key']}")
        service.close()
        return 0
    return _serve(ProxyService.opened(folder), folder, (host, port), certificates, name or (), quiet=quiet)


def _serve(
    service: object,
    folder: Path,
    where: tuple[str, int],
    certificates: Path | None,
    names: Sequence[str],
    *,
    quiet: bool,
) -> int:
    import signal
    import threading

    from tacit.deploy.certificates import own_certificate
    from tacit.deploy.https import in_background
    from tacit.deploy.proxy import ProxyService
    from tacit.deploy.proxy_http import listening

    assert isinstance(service, ProxyService)
    host, port = where
    place = certificates or folder / "certificates"
    if certificates is None:
        own_certificate(place, "proxy", sorted({host, "127.0.0.1", "localhost", *names}))
    name = "proxy" if (place / "proxy.pem").exists() else "server"
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with in_background(listening(service, host, port, place / f"{name}.pem", place / f"{name}.key")):
        if not quiet:
            vouching = f"{place / 'ca.pem'} vouches for it"
            typer.echo(f"the proxy listens on https://{host}:{port}; {vouching}", err=True)
        stop.wait()
    service.close()
    return 130
