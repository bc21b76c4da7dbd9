"""A federation's rounds as progress on stderr."""

from tacit.deploy.channel import Unwatched
from tacit.deploy.coordinator import Coordinator
from tacit.runtime.listener import Listener


class Rounds(Unwatched):
    """Tells a listener how enrolment and rounds go."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._stage = ""

    def enrolled(self, here: int, expected: int) -> None:
        """Show how many are there."""
        self._named("enrolling", expected)
        self._listener.step(here, {})

    def round(self, coordinator: Coordinator, seconds: float) -> None:
        """Show the rounds."""
        self._named("rounds", coordinator.rounds)
        rows = coordinator.journal.rounds()
        answered = float(rows[-1]["answered"]) if rows else 0.0
        self._listener.step(max(0, coordinator.state.round), {"seconds": seconds, "answered": answered})

    def warn(self, line: str) -> None:
        """One line."""
        self._listener.warn(line)

    def stopping(self) -> bool:
        """Ctrl-C."""
        return self._listener.stopping()

    def _named(self, stage: str, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._listener.stage(stage, total)
