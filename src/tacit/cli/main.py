"""The ``tacit`` command. Errors are one line on stderr and exit 2; Ctrl-C saves and exits 130."""

import os
import re
import sys
from typing import Annotated, Any

import typer

from tacit import __version__
from tacit.cli import (
    audit,
    bench,
    budget,
    card,
    compare,
    data,
    device,
    export,
    frontier,
    proxy,
    recommend,
    report,
    reproduce,
    run,
    server,
    up,
)
from tacit.errors import TacitError

# The parser's own exceptions, wherever the installed typer keeps them (its own copy of click, or click).
_Misused: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="tacit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Recommendations learned from people whose taste nobody gets to see.",
    epilog="Example: tacit run fedrec++ --data demo",
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the parser calls it so
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


_Version = typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")


@app.callback()
def _common(version: Annotated[bool, _Version] = False) -> None:  # noqa: FBT002
    del version  # told before a command is looked for


_COMMANDS = (
    run,
    compare,
    frontier,
    data,
    recommend,
    report,
    reproduce,
    budget,
    bench,
    audit,
    device,
    export,
    card,
    server,
    proxy,
    up,
)

for _module in _COMMANDS:
    _module.add_to(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Example:
        >>> main(["--version"])
        tacit 0.1.0
        0
    """
    try:
        returned: Any = app(args=arguments, standalone_mode=False, prog_name="tacit")
    except TacitError as error:
        return _failed(str(error))
    except _Misused as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "tacit"
        if type(error).__name__ == "NoArgsIsHelpError":
            return _failed(f"no command given; see '{command} --help'")
        said = _said_once(_one_line(error.format_message()))  # type: ignore[attr-defined]
        return _failed(f"{said.rstrip('.')}; see '{command} --help'")
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _failed(f"{error.filename or 'a file'}: {error.strerror or error}; check that path")
    except MemoryError as error:
        return _failed(f"not enough memory ({error}); use fewer people or items, or a smaller model")
    return returned if isinstance(returned, int) else 0


def _failed(line: str) -> int:
    sys.stderr.write(f"tacit: {_one_line(line)}\n")
    return 2


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _said_once(text: str) -> str:
    """Without a sentence told twice: the parser and its parser both guess what a command was meant to be."""
    return re.sub(r"(Did you mean [^?]*\?)( \1)+", r"\1", text)


def entry() -> None:
    """What the installed ``tacit`` script and ``python -m tacit`` call."""
    sys.exit(main())
