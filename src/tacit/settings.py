"""Settings are typed, bounded arguments: one place parses, checks and names them.

A method is a function whose keyword arguments are its settings. ``Annotated`` bounds are checked
whoever calls: the command line (text), an experiment file (TOML values) or Python.
"""

import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tacit.errors import TacitError, nearest

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Between:
    """Bounds of a number; ``open_low`` excludes the lower one.

    Example:
        >>> Between(0, 1, open_low=True).holds(0.0)
        False
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False

    def holds(self, number: float) -> bool:
        """Whether a number lies within."""
        above = number > self.low if self.open_low else number >= self.low
        return above and number <= self.high and math.isfinite(number)

    def __str__(self) -> str:
        above = f"above {self.low:g}" if self.open_low else f"at least {self.low:g}"
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return above if math.isinf(self.high) else f"{above} and at most {self.high:g}"


Positive = Annotated[float, Between(0, open_low=True)]
NonNegative = Annotated[float, Between(0)]
Share = Annotated[float, Between(0, 1, open_low=True)]
Natural = Annotated[int, Between(0)]
Count = Annotated[int, Between(1)]
CountOrShare = Annotated[
    int | float, "a whole number counts people, a number with a point is a share (1.0: all)"
]
Dim = Annotated[int, Between(1, 1024)]


@dataclass(frozen=True)
class Setting:
    """One keyword argument of a method: its name, type, bounds and default."""

    name: str
    kinds: tuple[type, ...]
    choices: tuple[Any, ...]
    bounds: Between | None
    default: Any

    def expected(self) -> str:
        """What a value should look like, in words."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        words = {
            int: "a whole number",
            float: "a number",
            bool: "true or false",
            str: "a word",
            type(None): "none",
        }
        kinds = " or ".join(words[kind] for kind in self.kinds)
        return f"{kinds} {self.bounds}" if self.bounds else kinds

    def checked(self, value: Any) -> Any:
        """The value if it fits; one clear line where it does not."""
        if self.choices:
            fits = value in self.choices
        elif isinstance(value, bool):
            fits = bool in self.kinds
        elif isinstance(value, int) and int not in self.kinds and float in self.kinds:
            value, fits = float(value), True
        else:
            fits = isinstance(value, self.kinds)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or (self.bounds and is_number and not self.bounds.holds(value)):
            raise TacitError(f"setting {self.name}={value} is not possible", f"give {self.expected()}")
        return value

    def parsed(self, text: str) -> Any:
        """A value from the command line's text."""
        if self.choices:
            return self.checked(next((choice for choice in self.choices if str(choice) == text), text))
        if bool in self.kinds and text.lower() in {"true", "false", "yes", "no"}:
            return text.lower() in {"true", "yes"}
        if type(None) in self.kinds and text.lower() == "none":
            return None
        for kind in (int, float):
            if kind in self.kinds:
                try:
                    return self.checked(kind(text))
                except ValueError:
                    continue
        if str in self.kinds:
            return self.checked(text)
        raise TacitError(f"setting {self.name}={text} cannot be read", f"give {self.expected()}")


def _setting(name: str, hint: Any, default: Any) -> Setting:
    bounds = None
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        bounds = next((extra for extra in extras if isinstance(extra, Between)), None)
    if get_origin(hint) is Literal:
        return Setting(name, (str,), get_args(hint), None, default)
    kinds = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    inner = [_setting(name, kind, default) for kind in kinds if get_origin(kind) is Annotated]
    bounds = bounds or next((part.bounds for part in inner if part.bounds), None)
    plain = tuple(kind for kind in kinds if get_origin(kind) is not Annotated)
    return Setting(name, plain + tuple(k for part in inner for k in part.kinds), (), bounds, default)


@functools.cache
def settings_of(function: Callable[..., Any]) -> Mapping[str, Setting]:
    """The settings a method (or any stage) takes, by name.

    Example:
        >>> def method(*, dim: Dim = 20, fill: Literal["average", "hybrid"] = "hybrid"): ...
        >>> settings_of(method)["fill"].parsed("average"), settings_of(method)["dim"].parsed("8")
        ('average', 8)
    """
    original = inspect.unwrap(function)
    hints = get_type_hints(original, include_extras=True)
    named = inspect.signature(original).parameters.values()
    return {p.name: _setting(p.name, hints[p.name], p.default) for p in named if p.kind is p.KEYWORD_ONLY}


def known_setting(function: Callable[..., Any], name: str, owner: str) -> Setting:
    """The setting of that name, or one line with the nearest name."""
    settings = settings_of(function)
    if name not in settings:
        raise TacitError(f"{owner} has no setting {name!r}", nearest(name, settings))
    return settings[name]


def checked(function: _F) -> _F:
    """Decorate a function so that its keyword arguments are checked against their annotations.

    Example:
        >>> @checked
        ... def step(*, rate: Positive = 0.1) -> float:
        ...     return rate
        >>> step(rate=2)
        2.0
    """

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        values = {
            name: known_setting(function, name, function.__name__).checked(v) for name, v in given.items()
        }
        return function(*args, **values)

    return call  # type: ignore[return-value]


def head_count(amount: float, population: int, what: str) -> int:
    """How many people a count or a share means.

    Example:
        >>> (
        ...     head_count(0.25, 943, "denoisers"),
        ...     head_count(1, 943, "denoisers"),
        ...     head_count(1.0, 943, "clients"),
        ... )
        (236, 1, 943)
    """
    fits = 0 <= amount <= (population if isinstance(amount, int) else 1)
    if not fits:
        raise TacitError(
            f"{what}={amount} of {population} people is not possible",
            f"give a whole number up to {population}, or a share such as 0.5 (1.0: everyone)",
        )
    return amount if isinstance(amount, int) else math.ceil(amount * population)
