"""What can be said about one exchange: for whom, against whom, and under which assumptions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tacit.account.events import Event, NonPrivate, from_json, to_json
from tacit.errors import TacitError


class Observer(Enum):
    """Who looks: the aggregating server, a forwarding proxy, another client, anyone given the model.

    Example:
        >>> Observer("server")
        <Observer.SERVER: 'server'>
    """

    SERVER = "server"
    PROXY = "proxy"
    PEER = "peer"
    RELEASE = "release"


class Unit(Enum):
    """What is protected as one piece: everything a user did, or one interaction.

    Example:
        >>> Unit("user")
        <Unit.USER: 'user'>
    """

    USER = "user"
    INTERACTION = "interaction"


class Adjacency(Enum):
    """How two neighbouring data sets differ in one unit: it is there or not, or it is another one.

    Example:
        >>> Adjacency.ADD_REMOVE.reach, Adjacency.REPLACE_ONE.reach
        (1, 2)
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @property
    def reach(self) -> int:
        """How far a sum can move between neighbours, in clip norms: replacing takes one away and adds one."""
        return 2 if self is Adjacency.REPLACE_ONE else 1


@dataclass(frozen=True)
class Bound:
    """One unit contributes a vector whose norm of this ``order`` (1, 2 or infinity) is at most ``size``.

    Example:
        >>> Bound(2, 1.0)
        Bound(order=2, size=1.0)
    """

    order: float
    size: float

    def __post_init__(self) -> None:
        if self.order not in {1, 2, math.inf}:
            raise TacitError(f"a bound of norm order {self.order}", "use order 1, 2 or infinity")
        if not (math.isfinite(self.size) and self.size > 0):
            raise TacitError(f"a bound of size {self.size}", "give a finite size above zero")


@dataclass(frozen=True)
class Summed:
    """What the exact sum of all messages shows, and what that relies on.

    Example:
        >>> from tacit.account.events import Gaussian
        >>> Summed(Gaussian(10.0, 1.0), ("100 people added their noise",)).event.noise_std
        10.0
    """

    event: Event
    assumes: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """One event per observer, with the unit, the adjacency and the bound that events and noise rely on.

    A claim starts as :meth:`unbounded` and improves only where a stage says so. Observers that no stage
    spoke about stay :class:`~tacit.account.events.NonPrivate`.

    ``summed`` is what the exact sum of all messages shows, where noise on devices makes that an event.
    Whoever gets the model sees no more than the sum; the server does, unless a transport hides single
    messages from it.

    Example:
        >>> from tacit.account.events import Gaussian
        >>> claim = Claim.unbounded("raw updates").with_bound(Bound(2, 1.0))
        >>> claim = claim.with_event(
        ...     Observer.RELEASE, Gaussian(2.0, 1.0), assumes=("the server adds the noise",)
        ... )
        >>> claim.event(Observer.RELEASE), claim.event(Observer.SERVER)
        (Gaussian(noise_std=2.0, clip=1.0), NonPrivate(reason='raw updates'))
    """

    unit: Unit
    adjacency: Adjacency
    bound: Bound | None
    events: Mapping[Observer, Event]
    assumes: Mapping[Observer, tuple[str, ...]]
    summed: Summed | None = None

    @classmethod
    def unbounded(
        cls, reason: str, unit: Unit = Unit.USER, adjacency: Adjacency = Adjacency.ADD_REMOVE
    ) -> "Claim":
        """Nothing is promised to anybody, for the given reason."""
        return cls(unit, adjacency, None, {observer: NonPrivate(reason) for observer in Observer}, {})

    def event(self, observer: Observer) -> Event:
        """What this observer saw; silence means non-private."""
        return self.events.get(observer, NonPrivate("nothing was claimed for this observer"))

    def with_event(self, observer: Observer, event: Event, assumes: tuple[str, ...] = ()) -> "Claim":
        """The same claim with another event for one observer; assumptions pile up."""
        known = self.assumes.get(observer, ())
        piled = known + tuple(line for line in dict.fromkeys(assumes) if line not in known)
        return replace(
            self, events={**self.events, observer: event}, assumes={**self.assumes, observer: piled}
        )

    def with_bound(self, bound: Bound | None) -> "Claim":
        """The same claim with another bound on one unit's contribution; ``None`` means unbounded."""
        return replace(self, bound=bound)

    def to_json(self) -> dict[str, Any]:
        """The claim as plain JSON data.

        Example:
            >>> Claim.unbounded("raw updates").to_json()["events"]["peer"]
            {'kind': 'non-private', 'reason': 'raw updates'}
        """
        bound = self.bound and {
            "order": "inf" if self.bound.order == math.inf else self.bound.order,
            "size": self.bound.size,
        }
        return {
            "unit": self.unit.value,
            "adjacency": self.adjacency.value,
            "bound": bound,
            "events": {observer.value: to_json(event) for observer, event in self.events.items()},
            "assumes": {observer.value: list(lines) for observer, lines in self.assumes.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Claim":
        """The claim that :meth:`to_json` wrote."""
        bound = data["bound"] and Bound(float(data["bound"]["order"]), data["bound"]["size"])
        return cls(
            unit=Unit(data["unit"]),
            adjacency=Adjacency(data["adjacency"]),
            bound=bound,
            events={Observer(name): from_json(event) for name, event in data["events"].items()},
            assumes={Observer(name): tuple(lines) for name, lines in data["assumes"].items()},
        )
