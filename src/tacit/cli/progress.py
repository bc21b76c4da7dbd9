"""Progress on stderr when somebody watches, and a soft stop for Ctrl-C."""

import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FrameType, TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from tacit.runtime.listener import Listener

SHOWN = 2  # of the newest numbers; the table at the end has all of them


class Watching(Listener):
    """A progress bar with the newest numbers; silent where stderr is not a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description:>10}", table_column=Column(no_wrap=True, min_width=10)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn(
                "{task.fields[facts]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            console=self._console,
            transient=True,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None
        self._facts = ""
        self._stop = False

    def __enter__(self) -> "Watching":
        self._bar.start()
        self._task = self._bar.add_task("loading", total=None, facts="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        """Show a new bar; one that only moves where nobody knows how much there is to do."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=total, facts="")

    def step(self, done: int, facts: Mapping[str, float]) -> None:
        """Move the bar."""
        if facts:
            shown = list(facts.items())[:SHOWN]
            self._facts = "  ".join(f"{name} {value:.4f}" for name, value in shown)
        if self._task is not None:
            self._bar.update(self._task, completed=done, facts=self._facts)

    def warn(self, line: str) -> None:
        """One line above the bar."""
        self._console.print(f"tacit: {line}", style="yellow", highlight=False, soft_wrap=True)

    def stopping(self) -> bool:
        """Whether Ctrl-C (or a polite kill) was pressed."""
        return self._stop

    @contextmanager
    def stops_softly(self) -> Generator[None]:
        """The first Ctrl-C lets the round finish and saves; the second one interrupts at once."""

        def asked(signum: int, frame: FrameType | None) -> None:
            del frame
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True
            if signum == signal.SIGINT and sys.stderr.isatty():
                self.warn("stopping after this round (Ctrl-C again: at once)")

        before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
