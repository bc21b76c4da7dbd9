"""``tacit bench``: ratios measured in one run on this machine."""

import importlib
import json
import pkgutil
from types import ModuleType
from typing import Annotated

import typer

from tacit.cli import options
from tacit.errors import TacitError, nearest


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("bench", epilog="Example: tacit bench mf-round --json")(bench)


def _known() -> dict[str, ModuleType]:
    """The benchmarks by name; modules of the room without a ``run`` are parts of others."""
    import tacit.bench  # benchmarks load on first use

    names = sorted(found.name for found in pkgutil.iter_modules(tacit.bench.__path__))
    modules = {name.replace("_", "-"): importlib.import_module(f"tacit.bench.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "run")}


def first_line(module: ModuleType) -> str:
    """The first sentence of a module's docstring.

    Example:
        >>> import json
        >>> first_line(json).startswith("JSON")
        True
    """
    return (module.__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark; without a name they are listed.")] = "",
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Measure variants of the same work in one process and print their ratios."""
    known = _known()
    if not name:
        listed = {known_as: first_line(maker) for known_as, maker in known.items()}
        if as_json:
            typer.echo(json.dumps({"benches": sorted(listed)}))
            return
        from tacit.report.tables import print_rows

        print_rows("benchmarks", ("name", "what it measures"), list(listed.items()))
        return
    if name not in known:
        raise TacitError(f"no benchmark is called {name!r}", nearest(name, known))
    from tacit.cli.progress import Watching

    with Watching(quiet=quiet or as_json) as watching:
        watching.stage("measuring")
        found = known[name].run()
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
