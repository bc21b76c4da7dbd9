"""Options that several commands share, and the experiment they make together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.config.experiment import Experiment

Data = Annotated[str, typer.Option(help="A data set by name, or the path of a CSV, Parquet or .inter file.")]
DataDir = Annotated[Path | None, typer.Option(help="Where data sets lie (else $TACIT_DATA, else the cache).")]
SplitName = Annotated[str, typer.Option("--split", help="How to split; the method's usual way by default.")]


def _rounds(text: str | int) -> int:
    """A number of rounds somebody asked for; only the default, a number already, is the method's own."""
    if isinstance(text, int):
        return text
    if not text.isdecimal() or not int(text):
        raise typer.BadParameter(f"{text!r} is not a whole number above 0")
    return int(text)


Rounds = Annotated[
    int, typer.Option(parser=_rounds, metavar="N", help="Rounds of training; the method's own by default.")
]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal numbers.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the method: key=value. Repeatable.")
]
Protect = Annotated[list[str] | None, typer.Option(help="A protection to add: name:value. Repeatable.")]
Transport = Annotated[str, typer.Option(help="How messages travel.")]
Metrics = Annotated[str, typer.Option(help="Metrics, separated by commas: rmse,hr@10,hr@10[99].")]
Device = Annotated[str, typer.Option(help="cpu, or cuda for networks; all else computes on the CPU.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Threads = Annotated[int, typer.Option(help="Threads; they change speed only.", min=1)]


def settings_from(texts: Sequence[str] | None) -> dict[str, Any]:
    """``key=value`` texts as a table.

    Example:
        >>> settings_from(["rho=2", "twin=central"])
        {'rho': '2', 'twin': 'central'}
    """
    settings: dict[str, Any] = {}
    for text in texts or ():
        key, found, value = text.partition("=")
        if not found or not key or not value:
            raise TacitError(f"--set {text} is not a setting", "write --set key=value, such as --set rho=2")
        if key in settings:
            raise TacitError(f"--set {key} is given twice", "give each setting once")
        settings[key] = value
    return settings


def experiment(method: str, given: Mapping[str, Any]) -> "Experiment":
    """The experiment the command line asks for; ``method`` may also be an experiment file (TOML).

    What the command line says wins over what the file says.
    """
    from tacit.config.experiment import Experiment  # heavy rooms load on first use

    said = {key: value for key, value in given.items() if value}
    if not method.endswith(".toml"):
        return Experiment.from_mapping({"method": method, **said})
    base = Experiment.from_file(Path(method)).to_mapping()
    said["settings"] = {**base["settings"], **said.get("settings", {})}
    return Experiment.from_mapping({**base, **said})


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
