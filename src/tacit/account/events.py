"""What one observer saw of one exchange, in the few words an accountant understands.

The set is closed on purpose. An event carries raw numbers (the standard deviation of the noise on the
**sum**, the clip norm) and never a "noise multiplier": two libraries read that word in two ways. How far
neighbours lie apart follows from the clip norm and the adjacency, inside the accountant alone.
A mechanism nobody analysed has no event here; it is :class:`NonPrivate`, or refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from tacit.errors import TacitError, nearest


class UnsupportedEvent(TacitError):
    """Raised where no published analysis covers an event; a number would be a guess."""


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise TacitError(f"{name} is {value}", "give a finite number above zero")


def _at_least_one(name: str, value: int) -> None:
    if value < 1 or value != int(value):
        raise TacitError(f"{name} is {value}", "give a whole number of at least 1")


@dataclass(frozen=True)
class NonPrivate:
    """Seen in the clear, or protected by something without a proof; ``reason`` says which.

    Example:
        >>> NonPrivate("updates are sent in the clear")
        NonPrivate(reason='updates are sent in the clear')
    """

    reason: str
    kind: ClassVar[str] = "non-private"


@dataclass(frozen=True)
class Nothing:
    """This observer saw nothing that depends on the data.

    Example:
        >>> Nothing()
        Nothing()
    """

    kind: ClassVar[str] = "nothing"


@dataclass(frozen=True)
class Gaussian:
    """A sum of vectors of Euclidean norm at most ``clip`` plus normal noise of this deviation per coordinate.

    A bit sent as plus or minus one half is the same with ``clip=0.5``.

    Example:
        >>> Gaussian(noise_std=2.0, clip=1.0)
        Gaussian(noise_std=2.0, clip=1.0)
    """

    noise_std: float
    clip: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _positive("noise_std", self.noise_std)
        _positive("clip", self.clip)


@dataclass(frozen=True)
class Laplace:
    """A sum of vectors of L1 norm at most ``clip`` plus Laplace noise of this scale per coordinate.

    Example:
        >>> Laplace(scale=2.0, clip=1.0)
        Laplace(scale=2.0, clip=1.0, dimension=1)
    """

    scale: float
    clip: float
    dimension: int = 1
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _positive("scale", self.scale)
        _positive("clip", self.clip)
        _at_least_one("dimension", self.dimension)


@dataclass(frozen=True)
class Skellam:
    """An integer sum plus Skellam noise of this total ``variance`` per coordinate.

    ``clip`` and ``clip_l1`` bound the L2 and L1 norm of one unit's integer vector, after rounding.

    Example:
        >>> Skellam(variance=100.0, clip=10.0, clip_l1=40.0).kind
        'skellam'
    """

    variance: float
    clip: float
    clip_l1: float
    kind: ClassVar[str] = "skellam"

    def __post_init__(self) -> None:
        _positive("variance", self.variance)
        _positive("clip", self.clip)
        _positive("clip_l1", self.clip_l1)


@dataclass(frozen=True)
class DiscreteGaussian:
    """An integer sum to which ``shares`` honest clients each added discrete Gaussian noise.

    ``share_std`` is the parameter of one share, ``clip`` bounds the norm of one unit's integer vector.

    Example:
        >>> DiscreteGaussian(share_std=4.0, shares=30, dimension=20, clip=10.0).shares
        30
    """

    share_std: float
    shares: int
    dimension: int
    clip: float
    kind: ClassVar[str] = "discrete-gaussian"

    def __post_init__(self) -> None:
        _positive("share_std", self.share_std)
        _positive("clip", self.clip)
        _at_least_one("shares", self.shares)
        _at_least_one("dimension", self.dimension)


@dataclass(frozen=True)
class PureLocal:
    """One report of a local randomiser whose output distributions differ by at most ``exp(epsilon)``.

    Example:
        >>> PureLocal(epsilon=2.5)
        PureLocal(epsilon=2.5)
    """

    epsilon: float
    kind: ClassVar[str] = "pure-local"

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True)
class RandomisedResponse:
    """Bits each kept with odds ``exp(epsilon)``, of which neighbours differ in ``flips``.

    ``by_item`` marks answers with one bit per item: an interaction that is there or not turns one of them
    round, one that becomes another turns two.

    Example:
        >>> RandomisedResponse(epsilon=2.0, flips=1682)
        RandomisedResponse(epsilon=2.0, flips=1682, by_item=False)
    """

    epsilon: float
    flips: int
    by_item: bool = False
    kind: ClassVar[str] = "randomised-response"

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        _at_least_one("flips", self.flips)


@dataclass(frozen=True)
class Shuffled:
    """One report per user, ``reports`` users, every report ``local_epsilon``-private, order forgotten.

    ``one_bit`` marks the mechanisms for which the stronger clone probability was proved: a uniformly
    chosen coordinate and one bit about it. All others get the bound that holds for any randomiser.

    Example:
        >>> Shuffled(local_epsilon=2.5, reports=75_040)
        Shuffled(local_epsilon=2.5, reports=75040, one_bit=False)
    """

    local_epsilon: float
    reports: int
    one_bit: bool = False
    kind: ClassVar[str] = "shuffled"

    def __post_init__(self) -> None:
        _positive("local_epsilon", self.local_epsilon)
        _at_least_one("reports", self.reports)


@dataclass(frozen=True)
class Poisson:
    """Everybody takes part independently with probability ``rate``, and nobody learns who did.

    Example:
        >>> Poisson(rate=0.05)
        Poisson(rate=0.05)
    """

    rate: float
    kind: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise TacitError(f"the sampling rate is {self.rate}", "give a probability above 0 and at most 1")


@dataclass(frozen=True)
class FixedSize:
    """Exactly ``cohort`` of ``population`` take part, a uniformly random secret subset.

    Example:
        >>> FixedSize(cohort=30, population=4800).rate
        0.00625
    """

    cohort: int
    population: int
    kind: ClassVar[str] = "fixed-size"

    def __post_init__(self) -> None:
        _at_least_one("cohort", self.cohort)
        if self.cohort > self.population:
            raise TacitError(
                f"a cohort of {self.cohort} out of {self.population} users", "ask for at most all of them"
            )

    @property
    def rate(self) -> float:
        """The share of the population that takes part."""
        return self.cohort / self.population


Sampling: TypeAlias = Poisson | FixedSize


@dataclass(frozen=True)
class Sampled:
    """An event whose participants were a secret random sample.

    Example:
        >>> Sampled(Gaussian(1.2, 1.0), Poisson(0.05)).sampling
        Poisson(rate=0.05)
    """

    event: "Event"
    sampling: Sampling
    kind: ClassVar[str] = "sampled"


@dataclass(frozen=True)
class Composed:
    """Several things seen together, of the same people.

    Example:
        >>> Composed([Nothing(), PureLocal(1.0)]).events
        (Nothing(), PureLocal(epsilon=1.0))
    """

    events: tuple["Event", ...]
    kind: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))


@dataclass(frozen=True)
class Repeated:
    """The same kind of thing seen ``times`` times, with fresh noise each time.

    Example:
        >>> Repeated(PureLocal(2.5), times=100).times
        100
    """

    event: "Event"
    times: int
    kind: ClassVar[str] = "repeated"

    def __post_init__(self) -> None:
        _at_least_one("times", self.times)


Event: TypeAlias = (
    NonPrivate
    | Nothing
    | Gaussian
    | Laplace
    | Skellam
    | DiscreteGaussian
    | PureLocal
    | RandomisedResponse
    | Shuffled
    | Sampled
    | Composed
    | Repeated
)

_EVENTS: tuple[type, ...] = Event.__args__
_KINDS: dict[str, Any] = {cls.kind: cls for cls in (*_EVENTS, Poisson, FixedSize)}


def to_json(event: Event | Sampling) -> dict[str, Any]:
    """The event as plain JSON data.

    Example:
        >>> to_json(Repeated(Sampled(Gaussian(1.2, 1.0), Poisson(0.04)), 300))["event"]["sampling"]
        {'kind': 'poisson', 'rate': 0.04}
    """
    return {"kind": event.kind} | {field.name: _plain(getattr(event, field.name)) for field in fields(event)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return to_json(value) if hasattr(value, "kind") else value


def from_json(data: Mapping[str, Any]) -> Any:
    """The event that :func:`to_json` wrote.

    Example:
        >>> from_json({"kind": "gaussian", "noise_std": 2.0, "clip": 1.0})
        Gaussian(noise_std=2.0, clip=1.0)
    """
    kind = str(data.get("kind"))
    if kind not in _KINDS:
        raise TacitError(f"no event is called {kind!r}", nearest(kind, _KINDS))
    values = {name: _parsed(value) for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[kind](**values)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(_KINDS[kind]))
        raise TacitError(
            f"the event {kind!r} has other fields than {sorted(values)}", f"give {names}"
        ) from error


def _parsed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return from_json(value)
    return tuple(map(from_json, value)) if isinstance(value, list) else value
