"""What a device allows: decided on the device, from its own ledger, before anything is computed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tacit.account.claim import Adjacency, Claim, Observer, Unit
from tacit.account.events import Composed, Event, NonPrivate, Nothing, Repeated, Sampled
from tacit.errors import TacitError, nearest

DAY = 86_400
SET_UP = -1


@dataclass(frozen=True)
class Sent:
    """One line of the device's own ledger: an exchange in which this person's device answered.

    ``claim`` is the exchange's claim as JSON (``Claim.to_json``), ``None`` where nothing was claimed.
    ``known`` is False for an answer that this copy of the store lost. ``slot`` is the number under which the
    server asked: one for the whole run (-1: not known).
    """

    person: str
    run: str
    round: int
    exchange: str
    to: str
    up_bytes: int
    down_bytes: int
    claim: Mapping[str, Any] | None
    time: int
    known: bool = True
    slot: int = -1


@dataclass(frozen=True)
class Ask:
    """A request to take part in one exchange, as the device sees it before it computes anything."""

    person: str
    run: str
    round: int
    exchange: str
    claim: Mapping[str, Any] | None
    time: int
    down_bytes: int = 0
    up_bytes: int = 0
    delta: float = 1e-6


@dataclass(frozen=True)
class Limits:
    """What the owner allows, per person; ``None`` or 0 is no limit.

    ``epsilon`` bounds what an observer may learn in one run (``{"server": 8.0}``); an exchange that
    promises that observer nothing is then refused. ``separation`` is the least distance in rounds between
    two participations in a run. ``runs`` bounds how many runs a person takes part in, and thereby what every
    limit per run adds up to: another needs the owner's word, or founding anew would begin all of them anew.
    ``bytes_per_day`` counts the questions a person answered and the answers.

    Example:
        >>> Limits(per_run=20, epsilon={"server": 8.0}).said()
        ('at most 20 rounds per run', 'epsilon towards the server at most 8 per run', 'at most 1 run')
    """

    per_run: int | None = None
    per_day: int | None = None
    separation: int = 0
    bytes_per_day: int | None = None
    epsilon: Mapping[str, float] = field(default_factory=dict)
    runs: int | None = 1

    def __post_init__(self) -> None:
        for name in ("per_run", "per_day", "bytes_per_day", "separation", "runs"):
            value = getattr(self, name)
            if value is not None and (value != int(value) or value < 0):
                raise TacitError(f"the limit {name} = {value}", "give a whole number of at least 0")
        names = [observer.value for observer in Observer]
        for observer, most in self.epsilon.items():
            if observer not in names:
                raise TacitError(f"no observer is called {observer!r}", nearest(observer, names))
            if not (math.isfinite(most) and most >= 0):
                raise TacitError(
                    f"the limit epsilon:{observer} = {most}", "give a finite number of at least 0"
                )

    def to_json(self) -> dict[str, Any]:
        """The limits as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Limits":
        """The limits that :meth:`to_json` wrote."""
        return cls(**data)

    def with_setting(self, text: str) -> "Limits":
        """The same limits with one more, written ``name=value`` (``epsilon:server=8``, ``per_run=none``).

        Example:
            >>> Limits().with_setting("per_day=3").with_setting("epsilon:server=8")
            Limits(per_run=None, per_day=3, separation=0, bytes_per_day=None, epsilon={'server': 8.0}, runs=1)
        """
        name, found, value = text.partition("=")
        name = name.strip().replace("-", "_")
        known = ("per_run", "per_day", "separation", "bytes_per_day", "runs", "epsilon:server")
        kind, _, observer = name.partition(":")
        if not found or (kind != "epsilon" and name not in known[:5]) or (kind == "epsilon" and not observer):
            remedy = "write name=value, such as per_run=20" if not found else nearest(name, known)
            raise TacitError(f"{text!r} is not a limit", remedy)
        try:
            off = value.strip().lower() == "none"
            if kind == "epsilon":
                others = {name: most for name, most in self.epsilon.items() if name != observer}
                return replace(self, epsilon=others if off else {**others, observer: float(value)})
            none = 0 if name == "separation" else None
            return replace(self, **{name: none if off else int(value)})
        except ValueError as error:
            raise TacitError(f"the limit {text!r} is not a number", "give a number, or none") from error

    def said(self) -> tuple[str, ...]:
        """The limits in words, for the person."""
        lines = []
        if self.per_run is not None:
            lines.append(f"at most {self.per_run} rounds per run")
        if self.per_day is not None:
            lines.append(f"at most {self.per_day} rounds per day")
        if self.separation:
            lines.append(f"at least {self.separation} rounds between two participations in a run")
        if self.bytes_per_day is not None:
            lines.append(f"at most {self.bytes_per_day} bytes per day, questions answered and answers")
        for observer, most in sorted(self.epsilon.items()):
            lines.append(f"epsilon towards the {observer} at most {most:g} per run")
        if self.runs is not None:
            lines.append(f"at most {self.runs} run{'s' * (self.runs != 1)}")
        return tuple(lines)


def refusal(limits: Limits, ledger: Sequence[Sent], ask: Ask) -> str | None:
    """Why the device will not take part in this exchange, or ``None`` if it may.

    Pure: it sees the limits, the person's own ledger and the request, and nothing a server says about the
    past. A round counts once, however many exchanges it has; set-up (round -1, and no other number) counts
    towards bytes and epsilon alone.

    Example:
        >>> ask = Ask("ann", "run", round=4, exchange="round", claim=None, time=0)
        >>> refusal(Limits(per_run=0), (), ask)
        'limit per_run: this would be participation 1 of at most 0 in this run'
    """
    mine = [line for line in ledger if line.person == ask.person]
    here = [line for line in mine if line.run == ask.run]
    rounds = {line.round for line in here if line.round != SET_UP}
    again = ask.round == SET_UP or ask.round in rounds
    if too_many_runs(limits, mine, ask.run):
        return f"limit runs: this would be another run, of at most {limits.runs}"
    if not again:
        refused = _too_often(limits, mine, rounds, ask)
        if refused:
            return refused
    today = [line for line in mine if line.time > ask.time - DAY]
    crossed = sum(line.up_bytes + line.down_bytes for line in today) + ask.up_bytes + ask.down_bytes
    if limits.bytes_per_day is not None and crossed > limits.bytes_per_day:
        return f"limit bytes_per_day: {crossed} bytes within a day, of at most {limits.bytes_per_day}"
    return _too_much(limits, here, ask)


def too_many_runs(limits: Limits, mine: Sequence[Sent], run: str) -> bool:
    """Whether one person's ledger holds as many other runs as the owner allows.

    Example:
        >>> before = [Sent("ann", "r1", 0, "train", "server", 1, 1, None, 0)]
        >>> [too_many_runs(Limits(runs=1), before, run) for run in ("r1", "r2")]
        [False, True]
    """
    runs = {line.run for line in mine}
    return limits.runs is not None and run not in runs and len(runs) >= limits.runs


def _too_often(limits: Limits, mine: Sequence[Sent], rounds: set[int], ask: Ask) -> str | None:
    if limits.per_run is not None and len(rounds) + 1 > limits.per_run:
        return (
            f"limit per_run: this would be participation {len(rounds) + 1} "
            f"of at most {limits.per_run} in this run"
        )
    # lines from a clock that ran ahead count as today's: a clock set back frees nothing
    today = {(line.run, line.round) for line in mine if line.time > ask.time - DAY and line.round != SET_UP}
    if limits.per_day is not None and len(today) + 1 > limits.per_day:
        return (
            f"limit per_day: this would be participation {len(today) + 1} "
            f"of at most {limits.per_day} within a day"
        )
    near = min((abs(ask.round - other) for other in rounds), default=limits.separation)
    if near < limits.separation:
        return (
            f"limit separation: this person took part {near} rounds from round {ask.round}; "
            f"at least {limits.separation} must lie between"
        )
    return None


def _too_much(limits: Limits, here: Sequence[Sent], ask: Ask) -> str | None:
    claims = [line.claim for line in here] + [ask.claim]
    for name, most in limits.epsilon.items():
        told = spent(claims, Observer(name), ask.delta)
        if told.value > most:
            why = f" ({told.reason})" if told.reason else ""
            return f"limit epsilon:{name}: it would reach {_number(told.value)} of at most {most:g}{why}"
    return None


@dataclass(frozen=True)
class Spent:
    """What one observer may have learned of a person in a run; infinite where nothing was proved."""

    observer: Observer
    value: float
    delta: float
    reason: str = ""
    assumes: tuple[str, ...] = ()
    unit: Unit = Unit.USER
    adjacency: Adjacency = Adjacency.ADD_REMOVE


def spent(claims: Sequence[Mapping[str, Any] | None], observer: Observer, delta: float = 1e-6) -> Spent:
    """The epsilon of one person's participations towards one observer.

    The device knows in which rounds it took part. A round's amplification by secret sampling holds for
    all rounds of a run together, not for the drawn ones, so it is **not** counted here: what is shown is
    the loss of somebody known to have taken part in exactly these rounds.

    Example:
        >>> from tacit.account.events import PureLocal
        >>> one = Claim.unbounded("").with_event(Observer.SERVER, PureLocal(0.5)).to_json()
        >>> spent([one, one], Observer.SERVER, 0.0).value
        1.0
    """
    from tacit.account.accountant import epsilon  # scipy and dp_accounting load on first use

    counts: dict[tuple[Unit, Adjacency, Event], int] = {}
    assumes: dict[str, None] = {}
    for data in claims:
        claim = Claim.unbounded("nothing was claimed") if data is None else Claim.from_json(data)
        event = unsampled(claim.event(observer))
        if isinstance(event, Nothing):
            continue
        assumes |= dict.fromkeys(claim.assumes.get(observer, ()))
        key = (claim.unit, claim.adjacency, event)
        counts[key] = counts.get(key, 0) + 1
    if not counts:
        return Spent(observer, 0.0, delta)
    unit, adjacency, _ = next(iter(counts))
    broken = dict.fromkeys(event.reason for _, _, event in counts if isinstance(event, NonPrivate))
    if broken:
        return Spent(observer, math.inf, delta, "; ".join(broken), tuple(assumes), unit, adjacency)
    if len({(unit, adjacency) for unit, adjacency, _ in counts}) > 1:
        reason = "exchanges promise different units, which cannot be added up"
        return Spent(observer, math.inf, delta, reason, tuple(assumes), unit, adjacency)
    events = [event if times == 1 else Repeated(event, times) for (_, _, event), times in counts.items()]
    try:
        told = epsilon(events, delta, adjacency)
    except TacitError as error:
        return Spent(observer, math.inf, delta, error.problem, tuple(assumes), unit, adjacency)
    return Spent(observer, told.value, delta, told.reason, (*assumes, *told.assumes), unit, adjacency)


def unsampled(event: Event) -> Event:
    """The event for somebody known to have been drawn.

    Example:
        >>> from tacit.account.events import Gaussian, Poisson
        >>> unsampled(Sampled(Gaussian(2.0, 1.0), Poisson(0.1)))
        Gaussian(noise_std=2.0, clip=1.0)
    """
    if isinstance(event, Sampled):
        return unsampled(event.event)
    if isinstance(event, Composed):
        return Composed(tuple(unsampled(part) for part in event.events))
    if isinstance(event, Repeated):
        return Repeated(unsampled(event.event), event.times)
    return event


def _number(value: float) -> str:
    return "infinity" if math.isinf(value) else f"{value:.4g}"
