"""``tacit bench``: ratios measured in one run on this machine."""

import importlib
import json
import pkgutil
from typing import Annotated

import typer

from tacit.cli import options
from tacit.errors import TacitError, nearest


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("bench", epilog="Example: tacit bench mf-round --json")(bench)


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark; without a name they are listed.")] = "",
    as_json: options.Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Measure variants of the same work in one process and print their ratios."""
    import tacit.bench  # benchmarks load on first use

    known = [found.name.replace("_", "-") for found in pkgutil.iter_modules(tacit.bench.__path__)]
    if not name:
        typer.echo(json.dumps({"benches": known}) if as_json else "\n".join(known))
        return
    if name not in known:
        raise TacitError(f"no benchmark is called {name!r}", nearest(name, known))
    found = importlib.import_module(f"tacit.bench.{name.replace('-', '_')}").run()
    if as_json:
        typer.echo(json.dumps(found))
        return
    from tacit.report.tables import print_rows

    print_rows(
        name,
        ("variant", "milliseconds"),
        [(k, f"{1e3 * v:.2f}") for k, v in found["seconds"].items()],
        right=(1,),
    )
    print_rows(
        "ratios", ("against", "ratio"), [(k, f"{v:.2f}") for k, v in found["ratios"].items()], right=(1,)
    )
    for note in found.get("notes", ()):
        typer.echo(f"note: {note}")
