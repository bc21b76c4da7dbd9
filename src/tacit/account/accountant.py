"""From what an observer saw over a whole run to an epsilon, with who computed it and what it assumes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.account.atoms import Counts, assumptions, atoms, check_adjacency, pure_epsilon
from tacit.account.claim import Adjacency, Claim, Observer
from tacit.account.events import Event, Gaussian, NonPrivate, UnsupportedEvent
from tacit.account.gaussian import check_delta, epsilon_of
from tacit.errors import TacitError


@dataclass(frozen=True)
class Epsilon:
    """An epsilon at a delta; infinite means that nothing was proved, and ``reason`` says why.

    Example:
        >>> Epsilon(math.inf, 1e-6, "none", reason="raw updates").to_json()["epsilon"] is None
        True
    """

    value: float
    delta: float
    accountant: str
    assumes: tuple[str, ...] = ()
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """The number as JSON data; unbounded is ``null``."""
        bounded = math.isfinite(self.value)
        data = {
            "epsilon": self.value if bounded else None,
            "delta": self.delta,
            "accountant": self.accountant,
            "assumes": list(self.assumes),
        }
        return data if bounded else data | {"reason": self.reason}


def epsilon(events: Sequence[Event], delta: float, adjacency: Adjacency) -> Epsilon:
    """The epsilon at ``delta`` of seeing all these events, in any order, each free to depend on earlier ones.

    Equal events are counted, not repeated: a thousand equal rounds cost one self-composition. At
    ``delta=0`` only mechanisms with a pure guarantee have a finite answer.

    Example:
        >>> from tacit.account.events import Gaussian, Poisson, Sampled
        >>> rounds = [Sampled(Gaussian(noise_std=1.18, clip=1.0), Poisson(200 / 4832))] * 300
        >>> spent = epsilon(rounds, 1e-6, Adjacency.ADD_REMOVE)
        >>> round(spent.value, 2), spent.accountant
        (3.97, 'privacy loss distribution')
    """
    if delta != 0:
        check_delta(delta)
    counts = atoms(events)
    check_adjacency(counts, adjacency)
    assumes = assumptions(counts)
    for event in counts:
        if isinstance(event, NonPrivate):
            return Epsilon(math.inf, delta, "none", assumes, event.reason)
    if not counts:
        return Epsilon(0.0, delta, "nothing was seen")
    pure = sum(times * pure_epsilon(event, adjacency) for event, times in counts.items())
    if delta == 0:
        reason = "" if math.isfinite(pure) else "Gaussian-like noise has no epsilon at delta zero"
        return Epsilon(pure, 0.0, "pure composition", assumes, reason)
    value, name = _tightest(counts, delta, adjacency)
    if pure < value:
        return Epsilon(pure, delta, "pure composition", assumes)
    reason = "" if math.isfinite(value) else f"the loss is unbounded with a probability above {delta}"
    return Epsilon(value, delta, name, assumes, reason)


def _tightest(counts: Counts, delta: float, adjacency: Adjacency) -> tuple[float, str]:
    """The exact accountant where it can speak for all events; else Rényi curves; else delta is shared out."""
    if set(map(type, counts)) == {Gaussian}:
        (event,) = counts
        assert isinstance(event, Gaussian)
        return epsilon_of(adjacency.reach * event.clip / event.noise_std, delta), "closed form"
    from tacit.account import losses, renyi  # numerical libraries load on first use

    exact = {event: times for event, times in counts.items() if losses.supported(event, adjacency)}
    if len(exact) == len(counts):
        return losses.epsilon(counts, delta, adjacency), "privacy loss distribution"
    rest = {event: times for event, times in counts.items() if event not in exact}
    if not exact:
        return renyi.epsilon(counts, delta, adjacency), "Rényi"
    try:
        together = renyi.epsilon(counts, delta, adjacency)
    except UnsupportedEvent:
        together = math.inf  # what has no curve still has its loss distribution, below
    apart = losses.epsilon(exact, delta / 2, adjacency) + renyi.epsilon(rest, delta / 2, adjacency)
    if together <= apart:
        return together, "Rényi"
    return apart, "half of delta each: privacy loss distribution, Rényi"


def epsilon_of_claims(claims: Sequence[Claim], observer: Observer, delta: float) -> Epsilon:
    """What one observer learned over a run, from the claim of each exchange.

    Example:
        >>> epsilon_of_claims([Claim.unbounded("raw updates")] * 3, Observer.SERVER, 1e-6).reason
        'raw updates'
    """
    if not claims:
        return Epsilon(0.0, delta, "nothing was seen")
    units = {(claim.unit, claim.adjacency) for claim in claims}
    if len(units) > 1:
        raise TacitError(
            "claims about different units or adjacencies cannot be added up",
            "make every exchange claim the same",
        )
    total = epsilon([claim.event(observer) for claim in claims], delta, claims[0].adjacency)
    stated = dict.fromkeys(line for claim in claims for line in claim.assumes.get(observer, ()))
    assumes = tuple(dict.fromkeys((*total.assumes, *stated)))
    return Epsilon(total.value, total.delta, total.accountant, assumes, total.reason)
