"""``tacit export``: a finished run's model for another program."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options
from tacit.errors import TacitError


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("export", epilog="Example: tacit export runs/mine --onnx mine.onnx")(export)


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    onnx: Annotated[Path | None, typer.Option(help="The ONNX file to write.")] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Write the model as a graph that scores on a device: its owner's numbers in, all items' scores out."""
    if onnx is None:
        raise TacitError(
            "no format given", "add --onnx FILE (the run's model/ folder has safetensors already)"
        )
    from tacit.config.exporting import exported_onnx  # heavy rooms load on first use
    from tacit.config.serving import opened

    done = exported_onnx(opened(run, data_dir), run, onnx)
    if as_json:
        told = {
            "inputs": done.inputs,
            "items": done.items,
            "bytes": done.bytes,
            "difference": done.difference,
        }
        typer.echo(json.dumps({"run": str(run), "onnx": str(done.path), **told}))
        return
    taken = ", ".join(f"{name} (people x {width})" for name, width in done.inputs.items())
    typer.echo(f"{done.path}: {taken} in, scores (people x {done.items}) out, {done.bytes:,} bytes")
    if done.difference is None:
        typer.echo("not compared with Tacit's own scores: ONNX Runtime is not installed")
    else:
        typer.echo(
            f"ONNX Runtime's scores differ from Tacit's by at most {done.difference:.1g} of the largest"
        )
