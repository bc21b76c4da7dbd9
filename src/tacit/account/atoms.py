"""A run's events in their shortest equivalent form: which kinds were seen, and how often each.

A thousand equal rounds become one entry. Gaussian releases of the same people join into one, because a
Gaussian vector scaled block by block is again a Gaussian mechanism: ``1/z^2`` adds up.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from tacit.account.claim import Adjacency
from tacit.account.events import (
    Composed,
    DiscreteGaussian,
    Event,
    FixedSize,
    Gaussian,
    Laplace,
    NonPrivate,
    Nothing,
    PureLocal,
    RandomisedResponse,
    Repeated,
    Sampled,
    Sampling,
    Shuffled,
    Skellam,
    UnsupportedEvent,
)

Counts = Mapping[Event, int]

NO_CROWD = 1e-3
"""With less noise than this many clip norms a sample hides nobody: it counts as if all had been asked."""
NO_CLONES = 30.0
"""From this local epsilon on nobody's report passes for another's: shuffling adds nothing."""

_SECRET = "who takes part in a round is drawn at random and stays secret"
_PRESENT = "that a report was sent is not hidden"
_SHUFFLER = "the shuffler is honest, and reports cannot be linked or timed"
_SHARES = "the honest clients counted on added their share of the noise"


def atoms(events: Iterable[Event]) -> Counts:
    """How often each irreducible event occurs.

    Example:
        >>> round = Composed((Gaussian(2.0, 1.0), Gaussian(1.0, 0.5)))
        >>> [(event.kind, times) for event, times in atoms([Repeated(round, 2)]).items()]
        [('gaussian', 1)]
    """
    found: Counter[Event] = Counter()
    for event, times in Counter(events).items():
        _collect(event, times, found)
    return _joined(found)


def _collect(event: Event, times: int, found: Counter[Event]) -> None:
    match event:
        case Nothing():
            return
        case Composed(events):
            for part in events:
                _collect(part, times, found)
        case Repeated(inner, again):
            _collect(inner, times * again, found)
        case Sampled(inner, sampling):
            reduced = _sampled(inner, sampling)
            if isinstance(reduced, Sampled):
                found[reduced] += times
            else:
                _collect(reduced, times, found)
        case Shuffled(local_epsilon) if local_epsilon > NO_CLONES:
            found[PureLocal(local_epsilon)] += times
        case _:
            found[event] += times


def _joined(found: Mapping[Event, int]) -> Counts:
    """All unsampled Gaussians as one."""
    gaussians = {event: times for event, times in found.items() if isinstance(event, Gaussian)}
    if not gaussians:
        return dict(found)
    rest = {event: times for event, times in found.items() if event not in gaussians}
    precision = sum(times * (event.clip / event.noise_std) ** 2 for event, times in gaussians.items())
    return {Gaussian(1 / math.sqrt(precision), 1.0): 1, **rest}


def _sampled(inner: Event, sampling: Sampling) -> Event:
    """One event under one sample; what is seen together stays together, for its participants are the same."""
    parts = atoms([inner])
    if not parts:
        return Nothing()
    for part in parts:
        if isinstance(part, NonPrivate):
            return part
        if isinstance(part, Sampled | Shuffled):
            raise UnsupportedEvent(
                f"a sample of a {part.kind} event has no published analysis here",
                "sample once, and shuffle without sampling",
            )
    whole = _composed(parts)
    loud = isinstance(whole, Gaussian) and whole.noise_std < NO_CROWD * whole.clip
    return whole if sampling.rate == 1 or loud else Sampled(whole, sampling)


def _composed(parts: Counts) -> Event:
    entries = [part if times == 1 else Repeated(part, times) for part, times in parts.items()]
    return entries[0] if len(entries) == 1 else Composed(tuple(entries))


def pure_epsilon(event: Event, adjacency: Adjacency) -> float:
    """The epsilon at delta zero, infinite where there is none.

    A sample amplifies ``epsilon`` to ``log(1 + rate (exp(epsilon) - 1))`` under either sampler and adjacency
    this library accounts (Balle, Barthe and Gaboardi 2018, Theorems 8 to 10).

    Example:
        >>> pure_epsilon(Repeated(RandomisedResponse(2.0, 3), 2), Adjacency.REPLACE_ONE)
        12.0
    """
    match event:
        case Nothing():
            return 0.0
        case PureLocal(epsilon):
            return epsilon
        case RandomisedResponse(epsilon, flips):
            return epsilon * flips
        case Laplace(scale, clip, _):
            return adjacency.reach * clip / scale
        case Shuffled(local_epsilon):
            return local_epsilon
        case Composed(events):
            return sum(pure_epsilon(part, adjacency) for part in events)
        case Repeated(inner, times):
            return times * pure_epsilon(inner, adjacency)
        case Sampled(inner, sampling):
            epsilon = pure_epsilon(inner, adjacency)
            if epsilon > 700:
                return epsilon + math.log(sampling.rate) if math.isfinite(epsilon) else math.inf
            return math.log1p(sampling.rate * math.expm1(epsilon))
        case _:
            return math.inf


def check_adjacency(counts: Counts, adjacency: Adjacency) -> None:
    """Refuse a fixed-size sample under add-remove: the cohort would betray the size of the population."""
    for event in counts:
        if (
            isinstance(event, Sampled)
            and isinstance(event.sampling, FixedSize)
            and adjacency is Adjacency.ADD_REMOVE
        ):
            raise UnsupportedEvent(
                "a cohort of fixed size has no add-remove analysis: someone takes a removed user's place",
                "account it under replace-one, or sample with poisson",
            )


def assumptions(counts: Counts) -> tuple[str, ...]:
    """What a reader must believe for the numbers of these events to hold.

    Example:
        >>> from tacit.account.events import Poisson
        >>> assumptions({Sampled(Gaussian(1.0, 1.0), Poisson(0.1)): 5})
        ('who takes part in a round is drawn at random and stays secret',)
    """
    lines: dict[str, None] = {}
    for event in counts:
        lines |= dict.fromkeys(_needs(event))
    return tuple(lines)


def _needs(event: Event) -> tuple[str, ...]:
    match event:
        case Sampled(inner, _):
            return (_SECRET, *assumptions(atoms([inner])))
        case Shuffled():
            return (_SHUFFLER, _PRESENT)
        case PureLocal() | RandomisedResponse():
            return (_PRESENT,)
        case Skellam() | DiscreteGaussian():
            return (_SHARES,)
        case _:
            return ()
