"""``tacit device``: one person's own device, or a gateway's.

What concerns the person (making, importing, looking, limiting, pausing, forgetting) is done here and in
:mod:`tacit.deploy`; taking part over a network is :func:`tacit.deploy.participation.participate`, which is
given a :class:`tacit.deploy.joining.Joining` and returns an exit status. It is imported only then: without
``--server`` nothing here can reach a network.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options
from tacit.errors import TacitError

EXAMPLE = (
    "Examples: tacit device mine --init --import ratings.csv --user ann · "
    "tacit device mine --key >> keys.txt · tacit device mine --web · "
    "tacit device mine --server https://recommender.example:9443 --ca ca.pem"
)
KeyFile = Annotated[
    Path | None, typer.Option(help="The key that seals the folder's values (made by --init if missing).")
]


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("device", epilog=EXAMPLE)(device)


@dataclass(frozen=True)
class _Wanted:
    """What the command line asks of a device that exists."""

    spec: str
    user: str
    everyone: bool
    limit: list[str]
    know: list[str]
    pause: str
    resume: bool
    forget: bool
    yes: bool
    data_dir: Path | None


def device(
    folder: Annotated[Path, typer.Argument(help="The device's folder.")],
    init: Annotated[bool, typer.Option("--init", help="Make the folder.")] = False,  # noqa: FBT002
    key_file: KeyFile = None,
    history: Annotated[
        str, typer.Option("--import", help="Take in a history: CSV, Parquet, .inter, or a data set's name.")
    ] = "",
    user: Annotated[str, typer.Option(help="Whose: a raw user id.")] = "",
    everyone: Annotated[bool, typer.Option("--everyone", help="A gateway: many people.")] = False,  # noqa: FBT002
    know: Annotated[
        list[str] | None, typer.Option(help="What the device knows of its owner: age=25-34. Repeatable.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="Allow runs=N, per_run=N, per_day=N, separation=N, bytes_per_day=N, "
            "epsilon:server=E; or none."
        ),
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Take no part until resumed.")] = False,  # noqa: FBT002
    resume: Annotated[bool, typer.Option("--resume-taking-part", help="End a pause.")] = False,  # noqa: FBT002
    forget: Annotated[bool, typer.Option("--forget", help="Erase the person from this device.")] = False,  # noqa: FBT002
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,  # noqa: FBT002
    key: Annotated[bool, typer.Option("--key", help="Print the public key, for the operator.")] = False,  # noqa: FBT002
    write_key: Annotated[
        Path | None, typer.Option(help="Write the private key to a file, for flower-supernode.")
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show the device and stop.")] = False,  # noqa: FBT002
    web: Annotated[bool, typer.Option("--web", help="Serve the person's page on this machine.")] = False,  # noqa: FBT002
    port: Annotated[int, typer.Option(help="The page's port (0: any free one).", min=0, max=65535)] = 0,
    server: Annotated[str, typer.Option(help="Take part with this server.")] = "",
    ca: Annotated[Path | None, typer.Option(help="The certificate that vouches for the server.")] = None,
    charter: Annotated[
        str, typer.Option(help="The server's public key, as its operator told you (tacit server DIR --key).")
    ] = "",
    serve: Annotated[bool, typer.Option("--serve", help="Take part for everybody in the folder.")] = False,  # noqa: FBT002
    rounds: Annotated[int, typer.Option(help="Stop after so many answered rounds.", min=0)] = 0,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> int:
    """Keep a person's history on their own device: import, look, take part, limit, pause, forget."""
    if serve and not server:
        raise TacitError("--serve takes part with a server", "give --server URL")
    from tacit.deploy.store import DeviceStore  # heavy rooms load on first use

    with DeviceStore.created(folder, key_file) if init else DeviceStore.opened(folder, key_file) as store:
        asked = (history, user, everyone, limit or [], know or [], _reason(pause=pause), resume, forget, yes)
        said = _changed(store, _Wanted(*asked, data_dir))
        if init:
            said.insert(0, f"{folder} is ready" + (" (sealed)" if key_file else ""))
        looking = status or as_json or not (said or web or server or key or write_key)
        if key or write_key:
            _shown_key(store, write_key)
        if said and not (quiet or as_json):
            typer.echo("\n".join(said))
        if looking and not (web or server):
            _shown(store, as_json=as_json)
        if web:
            from tacit.deploy.web import serve_page

            return serve_page(store, user, port, quiet=quiet)
    if not server:
        return 0
    from tacit.deploy.joining import Joining
    from tacit.deploy.participation import participate  # the only part that knows a network

    return participate(Joining(folder, key_file, server, ca, charter, serve, rounds, quiet, as_json))


def _shown_key(store: Any, file: Path | None) -> None:
    from tacit.deploy.identity import Identity

    if file is not None:
        Identity.of(store).written(file)
    typer.echo(Identity.of(store).public_text)


def _reason(*, pause: bool) -> str:
    return "paused by its owner" if pause else ""


def _changed(store: Any, wanted: _Wanted) -> list[str]:
    """Do what was asked for, in the order in which a person would mean it; one line for each."""
    said: list[str] = []
    if wanted.spec:
        from tacit.deploy.importing import taken_in

        changed = taken_in(
            store, wanted.spec, wanted.user, everyone=wanted.everyone, data_dir=wanted.data_dir
        )
        said.append(f"took in {sum(changed.values())} new or changed entries of {_people(len(changed))}")
    if wanted.know:
        person = store.person_meant(wanted.user)
        store.set_profile(person, {**store.profile(person), **options.settings_from(wanted.know)})
        said.append(f"noted {len(wanted.know)} facts about {person}; they stay on this device")
    if wanted.limit:
        limits = store.limits()
        for text in wanted.limit:
            limits = limits.with_setting(text)
        store.set_limits(limits)
        said.append("limits: " + ("; ".join(limits.said()) or "none"))
    if wanted.pause and wanted.resume:
        raise TacitError("--pause and --resume-taking-part at once", "give one of them")
    if wanted.pause:
        store.set_paused(wanted.pause)
        said.append("paused: this device takes no part")
    if wanted.resume:
        store.set_paused("")
        said.append("this device takes part again when a server asks")
    if wanted.forget:
        said.append(_forgotten(store, wanted))
    return said


def _forgotten(store: Any, wanted: _Wanted) -> str:
    person = store.person_meant(wanted.user)
    if not wanted.yes:
        question = f"Erase everything this device holds of {person!r}? What was sent cannot be called back"
        typer.confirm(question, abort=True, err=True)
    store.forget(person)
    return f"{person} is forgotten on this device; what was sent before cannot be called back"


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"


def _shown(store: Any, *, as_json: bool) -> None:
    from tacit.deploy.status import status as told

    found = told(store)
    if as_json:
        typer.echo(json.dumps(found))
        return
    from tacit.report.tables import print_rows

    rows = [
        ("people", ", ".join(f"{one['person']} ({one['entries']} entries)" for one in found["people"][:8])),
        ("takes part", f"no: {found['paused']}" if found["paused"] else "yes, when asked"),
        ("limits", "; ".join(store.limits().said()) or "none set"),
        ("key", found["fingerprint"]),
    ]
    if len(found["people"]) > 8:
        rows[0] = ("people", f"{rows[0][1]} and {len(found['people']) - 8} more")
    print_rows(f"device {found['folder']}", ("", ""), rows)
    _shown_runs(found["runs"])


def _shown_runs(runs: list[dict[str, Any]]) -> None:
    from tacit.report.tables import epsilon_text, print_rows, sized

    rows = []
    for run in runs:
        for one in run["people"]:
            worst = max(one["privacy"], key=lambda told: _size(told["epsilon"]), default=None)
            spent = f"{epsilon_text(worst)} ({worst['observer']})" if worst else "nothing was sent"
            rows.append(
                (
                    run["run"],
                    run["method"],
                    one["person"],
                    str(one["rounds"]),
                    sized(one["up_bytes"]),
                    sized(one["down_bytes"]),
                    spent,
                )
            )
    if rows:
        names = ("run", "method", "person", "rounds", "sent", "received", "at most learned")
        print_rows("what left this device", names, rows, right=(3, 4, 5))


def _size(epsilon: float | None) -> float:
    return float("inf") if epsilon is None else epsilon
