"""The text that names a data set: ``name`` or ``path``, then ``:option=value,option=value``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.errors import TacitError, nearest


@dataclass(frozen=True)
class Option:
    """One thing that may be set after the colon.

    With ``choices`` the value is one of them; with ``least`` it is a whole number no smaller; with
    neither it is free text that the source checks itself.

    Example:
        >>> Option("seed", "1", "draws", least=0).checked("demo", "7")
        '7'
    """

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()
    least: int | None = None

    def checked(self, owner: str, value: str) -> str:
        """The value, or one line saying what it should have been."""
        if self.choices and value not in self.choices:
            raise TacitError(f"{owner}: {self.name}={value} is not known", nearest(value, self.choices))
        if self.least is not None and not (value.isascii() and value.isdigit() and int(value) >= self.least):
            raise TacitError(
                f"{owner}: {self.name}={value} is not a whole number of at least {self.least}",
                f"write for example {self.name}={max(self.least, 1)}",
            )
        return value


def parsed(spec: str) -> tuple[str, dict[str, str]]:
    """The name (or path) and the options of a spec, as they were written.

    A colon only starts options when something with an ``=`` follows it, so that paths may hold colons.

    Example:
        >>> parsed("demo:users=50,items=20")
        ('demo', {'users': '50', 'items': '20'})
        >>> parsed("C:/logs/mine.csv")
        ('C:/logs/mine.csv', {})
    """
    head, colon, tail = spec.rpartition(":")
    if not colon or ("=" not in tail.split(",")[0].split("/")[0]):
        return spec, {}
    given: dict[str, str] = {}
    for part in tail.split(","):
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not (name and equals and value):
            raise TacitError(
                f"cannot read {part!r} in {spec!r}", "write options as name:option=value,option=value"
            )
        if name in given:
            raise TacitError(f"option {name!r} is given twice in {spec!r}", "give it once")
        given[name] = value
    return head, given


def settled(owner: str, options: Sequence[Option], given: Mapping[str, str]) -> dict[str, str]:
    """Every option's value: the one given, checked, or the default.

    Example:
        >>> settled("demo", [Option("users", "1000", "people", least=1)], {})
        {'users': '1000'}
    """
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else "write the name alone"
            raise TacitError(f"{owner} has no option {name!r}", hint)
    return {
        name: option.checked(owner, given[name]) if name in given else option.default
        for name, option in known.items()
    }
