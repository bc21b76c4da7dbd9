"""Processes that we start: each in a group of its own, ended with everything it started, and with us."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_BOUND = (
    "import ctypes, os, sys\n"
    "try: ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG: killed with whoever started it (Linux)
    "except (OSError, AttributeError): pass\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def begun(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A process in its own group, whose words go to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", _BOUND, *command],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            process_group=0,
        )


def ended(process: "subprocess.Popen[bytes]", patience: float = 5.0) -> None:
    """Ask the group to end; insist after a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass
class Children:
    """All of them; leaving the block ends them.

    Example:
        >>> with Children() as children:
        ...     child = children.start([sys.executable, "-c", "input()"], Path(os.devnull))
        >>> child.poll() is not None
        True
    """

    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """One more."""
        child = begun(command, log, {**os.environ, **(environment or {})})
        self.started.append(child)
        return child

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.started:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
        for child in self.started:
            ended(child)
