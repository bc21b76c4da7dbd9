"""``tacit export``: a finished run's model for another program."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.config.exporting import Exported


EXAMPLE = "Example: tacit export runs/mine --onnx mine.onnx --safetensors mine.safetensors"


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("export", epilog=EXAMPLE)(export)


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    onnx: Annotated[
        Path | None, typer.Option(help="The scoring graph: a person's numbers in, all items' scores out.")
    ] = None,
    safetensors: Annotated[
        Path | None, typer.Option(help="What the server holds, with item ids and claims, as one file.")
    ] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
    quiet: options.Quiet = False,  # noqa: FBT002 - a flag
) -> None:
    """Write a run's model for other programs: a graph that scores on a device, or the arrays themselves."""
    if onnx is None and safetensors is None:
        raise TacitError("no format given", "add --onnx FILE or --safetensors FILE")
    from tacit.config.exporting import exported_onnx, exported_safetensors  # heavy rooms load on first use
    from tacit.config.serving import opened

    served = opened(run, data_dir)
    told: dict[str, Any] = {"run": str(run)}
    lines: list[str] = []
    if onnx is not None:
        done = exported_onnx(served, run, onnx)
        told |= {"onnx": str(done.path), **asdict(done)}
        del told["path"]
        lines += _graph(done)
    if safetensors is not None:
        arrays = exported_safetensors(served, run, safetensors)
        told |= {
            "safetensors": str(safetensors),
            "arrays": {name: list(shape) for name, shape in arrays.items()},
        }
        listed = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in arrays.items())
        lines.append(f"{safetensors}: {listed}")
    if as_json:
        typer.echo(json.dumps(told))
    elif not quiet:
        typer.echo("\n".join(lines))


def _graph(done: "Exported") -> list[str]:
    taken = ", ".join(f"{name} (people x {width})" for name, width in done.inputs.items())
    first = f"{done.path}: {taken} in, scores (people x {done.items}) out, {done.bytes:,} bytes"
    if done.difference is None:
        return [first, "not compared with Tacit's own scores: ONNX Runtime is not installed"]
    return [
        first,
        f"ONNX Runtime's scores differ from Tacit's by at most {done.difference:.1g} of the largest",
    ]
