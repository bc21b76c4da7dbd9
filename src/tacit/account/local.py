"""Local randomisers: what their reports cost a person, one by one and over a whole run.

A published "epsilon" is often one report's, or one bit's. A person's is the sum over all bits and reports
unless the randomised answer was drawn once and kept.
"""

import math

from tacit.account.claim import Adjacency, Unit
from tacit.account.events import Composed, Event, PureLocal, RandomisedResponse, Repeated, Sampled
from tacit.account.gaussian import check_epsilon
from tacit.errors import TacitError


def pure_total(epsilon: float, reports: int, rounds: int = 1) -> float:
    """The epsilon, at delta zero, of so many reports in each of so many rounds.

    Example:
        >>> pure_total(2.5, reports=100), pure_total(2.5, reports=100, rounds=20)
        (250.0, 5000.0)
    """
    return check_epsilon(epsilon) * _count("reports", reports) * _count("rounds", rounds)


def reports(epsilon: float, per_round: int = 1) -> Event:
    """The event of one round in which a person sends so many fresh reports.

    Example:
        >>> reports(2.5, per_round=100)
        Repeated(event=PureLocal(epsilon=2.5), times=100)
    """
    return Repeated(PureLocal(epsilon), _count("reports", per_round))


def keep_probability(epsilon: float) -> float:
    """How often randomised response tells the truth about a bit.

    Example:
        >>> round(keep_probability(2.0), 3)
        0.881
    """
    return 1 / (1 + math.exp(-check_epsilon(epsilon)))


def lies_below(epsilon: float) -> int:
    """How many of the ``2**64`` words mean a lie: rounded up, and never none, whatever the epsilon.

    Example:
        >>> lies_below(800.0), round(lies_below(2.0) / 2**64, 3)
        (1, 0.119)
    """
    rare = math.exp(-check_epsilon(epsilon))
    return max(1, math.ceil(2.0**64 * rare / (1 + rare)))


def randomised_bits(epsilon: float, items: int, unit: Unit, adjacency: Adjacency, draws: int = 1) -> Event:
    """One randomised bit per item, accounted for what is really protected.

    Neighbours differ in one bit if an interaction may be there or not, in two if it may be another one, and
    in every bit if the unit is a user. ``draws`` counts fresh draws; an answer drawn once and kept costs one
    however often it is sent.

    Example:
        >>> from tacit.account.atoms import pure_epsilon
        >>> user = randomised_bits(2.0, 1682, Unit.USER, Adjacency.REPLACE_ONE)
        >>> swap = randomised_bits(2.0, 1682, Unit.INTERACTION, Adjacency.REPLACE_ONE)
        >>> [pure_epsilon(event, Adjacency.REPLACE_ONE) for event in (user, swap)]
        [3364.0, 4.0]
    """
    flips = _count("items", items) if unit is Unit.USER else min(items, adjacency.reach)
    once = RandomisedResponse(epsilon, flips, by_item=unit is Unit.USER)
    return once if _count("draws", draws) == 1 else Repeated(once, draws)


def of_one_interaction(event: Event, adjacency: Adjacency) -> Event | None:
    """What the same view tells of one interaction, where answers have a bit for each item; else nothing new.

    All other events stay as they are: what hides a whole history hides one item of it.

    Example:
        >>> whole = randomised_bits(2.0, 1682, Unit.USER, Adjacency.REPLACE_ONE)
        >>> of_one_interaction(whole, Adjacency.REPLACE_ONE)
        RandomisedResponse(epsilon=2.0, flips=2, by_item=True)
    """
    match event:
        case RandomisedResponse(epsilon, flips, True):
            return RandomisedResponse(epsilon, min(flips, adjacency.reach), by_item=True)
        case Repeated(inner, times):
            found = of_one_interaction(inner, adjacency)
            return None if found is None else Repeated(found, times)
        case Sampled(inner, sampling):
            found = of_one_interaction(inner, adjacency)
            return None if found is None else Sampled(found, sampling)
        case Composed(events):
            parts = [of_one_interaction(part, adjacency) for part in events]
            if all(part is None for part in parts):
                return None
            return Composed(tuple(own or whole for own, whole in zip(parts, events, strict=True)))
        case _:
            return None


def _count(name: str, value: int) -> int:
    if value < 1 or value != int(value):
        raise TacitError(f"{name} is {value}", "give a whole number of at least 1")
    return value
