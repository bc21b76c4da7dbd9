"""The one exception a user may see: what is wrong, and how to put it right."""

import difflib
from collections.abc import Iterable


class TacitError(Exception):
    """Bad input, or something refused, told in one line.

    The command line prints it as ``tacit: problem; remedy`` and exits with status 2.

    Example:
        >>> str(TacitError("no data set is called 'ml-1k'", "try 'ml-1m'"))
        "no data set is called 'ml-1k'; try 'ml-1m'"
    """

    def __init__(self, problem: str, remedy: str) -> None:
        """Keep the two halves apart, so that callers can add to either."""
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["TacitError"], tuple[str, str]]:
        """Survive a trip between processes."""
        return type(self), (self.problem, self.remedy)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the closest known name, or the list of all names, if there are any.

    Example:
        >>> nearest("fedrek", ["fedrec", "fedmf"])
        "did you mean 'fedrec'?"
        >>> nearest("zzz", ["b", "a"])
        'known: a, b'
        >>> nearest("zzz", [])
        'there is none'
    """
    names = sorted(known)
    if not names:
        return "there is none"
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(names)
