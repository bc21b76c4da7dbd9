"""What a run tells while it works; the command line shows it, a test may ignore it."""

from collections.abc import Mapping


class Listener:
    """Hears nothing and shows nothing; the command line's progress overrides what it wants.

    Example:
        >>> Listener().stage("training", 100)
    """

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def step(self, done: int, facts: Mapping[str, float]) -> None:
        """``done`` steps of the stage are finished; ``facts`` are the newest numbers."""

    def warn(self, line: str) -> None:
        """Something the user should know."""

    def stopping(self) -> bool:
        """Whether the user asked to stop after the current step."""
        return False
