"""How many neighbours, how many shares, how many votes: computed from stated rates, or refused.

The graph is a ring of all clients in an order that nobody could choose, everyone tied to the ``degree / 2``
nearest on either side (everyone to everyone where that is not enough). With ``degree = k`` and
``threshold = t``, suppose that at most ``c`` neighbours of any honest client are corrupt:

* ``t > k/2 + c``: of the two secrets of a client at most one can be put together (``2t > k + c``), and the
  honest survivors cannot be split into groups with sums of their own. For whoever is last of a group along
  the ring, all ``k/2`` on one side would have to be gone or corrupt, so at most ``k/2 + c`` hold shares of
  the seed that would have to be opened.
* ``k - t`` neighbours may drop out before a secret can no longer be put together.
* more than ``(N + C) / 2`` people must have voted for one roster and its lists before anyone opens a share,
  ``C`` of the ``N`` who were *invited* being corrupt: no two of them can both have that many, as the
  ``N - C`` honest people vote once each.

Whose keys come to stand on the roster is the server's word: it can keep all of the corrupt and leave honest
people out. So ``C`` is the stated share of those invited, however few the roster names, and quorum and
minimum do not shrink with it. ``c`` and the drop-outs among neighbours are hypergeometric; the plan prints
both failure probabilities. A server may try many rosters until it likes one: the first is multiplied by
``2**grinding``.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import TacitError
from tacit.types import Long


@dataclass(frozen=True)
class Rates:
    """What is assumed of a cohort, whoever chose it: shares that drop out and that work for the server.

    ``crowd`` is the least number of people whose sum may be opened. ``secrecy`` and ``success`` are the
    failure probabilities accepted, as powers of one half; ``grinding`` is the binary logarithm of how many
    rosters a server can try.

    Example:
        >>> Rates(dropout=0.6, adversary=0.5)
        Traceback (most recent call last):
        tacit.errors.TacitError: 60% drop-outs and 50% adversaries leave nobody; their sum must stay below 1
    """

    dropout: float = 0.1
    adversary: float = 0.05
    crowd: int = 2
    secrecy: int = 40
    success: int = 20
    grinding: int = 40

    def __post_init__(self) -> None:
        for name in ("dropout", "adversary"):
            if not 0 <= getattr(self, name) < 1:
                raise TacitError(f"a rate {name}={getattr(self, name)}", "give a share from 0 to below 1")
        if self.dropout + self.adversary >= 1:
            raise TacitError(
                f"{self.dropout:.0%} drop-outs and {self.adversary:.0%} adversaries leave nobody",
                "their sum must stay below 1",
            )
        if self.crowd < 2:
            raise TacitError(f"a crowd of {self.crowd}", "a sum of one person hides nothing: give at least 2")


@dataclass(frozen=True)
class Plan:
    """The numbers one sum is run with, and how likely it is that they do not hold.

    ``corrupt`` is how many of those invited may work for the server, ``dropped`` how many of the ``clients``
    on the roster may still leave.
    """

    clients: int
    degree: int
    threshold: int
    quorum: int
    minimum: int
    corrupt: int
    dropped: int
    secrecy_failure: float
    success_failure: float

    @property
    def honest(self) -> int:
        """How many honest people at least stand behind a sum that is opened."""
        return self.minimum - self.corrupt

    def __str__(self) -> str:
        return (
            f"{self.clients} clients, {self.degree} neighbours, threshold {self.threshold}, "
            f"quorum {self.quorum}, at least {self.minimum} survivors; "
            f"secrecy fails with probability below {self.secrecy_failure:.1e}, "
            f"the sum with {self.success_failure:.1e}"
        )


@lru_cache(maxsize=256)
def plan_for(invited: int, rates: Rates, clients: int | None = None) -> Plan:
    """The cheapest safe plan for so many invited, of whom ``clients`` are on the roster (all by default).

    Example:
        >>> plan = plan_for(1000, Rates(dropout=0.1, adversary=0.05))
        >>> plan.degree, plan.threshold, plan.quorum
        (166, 126, 526)
        >>> fewer = plan_for(1000, Rates(dropout=0.1, adversary=0.05), clients=900)
        >>> fewer.degree, fewer.threshold, fewer.quorum
        (168, 128, 526)
        >>> plan_for(3, Rates(dropout=0.5, adversary=0.3))
        Traceback (most recent call last):
        tacit.errors.TacitError: no safe sum: 3 clients, 50% drop-outs, 30% adversaries; ask more people
    """
    clients = invited if clients is None else clients
    corrupt = math.ceil(rates.adversary * invited)
    quorum = (invited + corrupt) // 2 + 1
    minimum = max(quorum, rates.crowd, corrupt + 2)
    if invited < 3 or minimum > invited - math.ceil(rates.dropout * invited):
        raise _refused(f"{invited} clients", rates)
    if not minimum <= clients <= invited:
        raise _refused(f"{clients} of {invited} clients, at least {minimum} are needed", rates)
    dropped = min(math.ceil(rates.dropout * clients), clients - minimum)
    found = _ring(clients, corrupt, dropped, rates) or _complete(clients, corrupt, dropped)
    if found is None:
        raise _refused(f"{invited} clients", rates)
    degree, threshold, leaks, fails = found
    return Plan(clients, degree, threshold, quorum, minimum, corrupt, dropped, leaks, fails)


def _refused(clients: str, rates: Rates) -> TacitError:
    crowd = f", in crowds of {rates.crowd}" if rates.crowd > 2 else ""
    return TacitError(
        f"no safe sum: {clients}, {rates.dropout:.0%} drop-outs, {rates.adversary:.0%} adversaries{crowd}",
        "ask more people",
    )


def _ring(clients: int, corrupt: int, dropped: int, rates: Rates) -> tuple[int, int, float, float] | None:
    """The smallest even degree for which both tails are thin enough."""
    for degree in range(2, clients - 1, 2):
        bad = _tails(clients - 1, corrupt, degree)
        gone = _tails(clients - 1, dropped, degree)
        leaks = np.minimum(1.0, clients * 2.0**rates.grinding * bad)
        allowed = int(np.flatnonzero(leaks <= 2.0**-rates.secrecy)[0])
        threshold = degree // 2 + allowed + 1
        if threshold <= degree and clients * gone[degree - threshold] <= 2.0**-rates.success:
            return degree, threshold, float(leaks[allowed]), float(clients * gone[degree - threshold])
    return None


def _complete(clients: int, corrupt: int, dropped: int) -> tuple[int, int, float, float] | None:
    """Everyone tied to everyone: nothing is left to chance, and there are no groups to be split into."""
    degree = clients - 1
    threshold = (degree + corrupt) // 2 + 1
    return (degree, threshold, 0.0, 0.0) if threshold <= degree - dropped else None


def _tails(population: int, marked: int, drawn: int) -> np.ndarray:
    """``P(more than x of the drawn are marked)`` for ``x = 0 .. drawn``, hypergeometric."""
    lgamma = math.lgamma
    chances = np.zeros(drawn + 1)
    whole = lgamma(population + 1) - lgamma(drawn + 1) - lgamma(population - drawn + 1)
    for hits in range(max(0, drawn - population + marked), min(drawn, marked) + 1):
        ways = lgamma(marked + 1) - lgamma(hits + 1) - lgamma(marked - hits + 1)
        others = population - marked
        ways += lgamma(others + 1) - lgamma(drawn - hits + 1) - lgamma(others - drawn + hits + 1)
        chances[hits] = math.exp(ways - whole)
    tails = np.zeros(drawn + 1)
    tails[:-1] = np.cumsum(chances[:0:-1])[::-1]
    return tails


@dataclass(frozen=True)
class Graph:
    """Who is tied to whom: a ring in an order that the roster's digest decides.

    Example:
        >>> graph = Graph.drawn(b"digest of a roster", clients=6, degree=2)
        >>> all(p in graph.neighbours(q) for p in range(6) for q in graph.neighbours(p))
        True
    """

    order: tuple[int, ...]
    places: tuple[int, ...]
    degree: int

    @classmethod
    def drawn(cls, digest: bytes, clients: int, degree: int) -> "Graph":
        """Sort the positions by hashes that cover everybody's fresh keys."""
        ranks = [hashlib.sha256(digest + position.to_bytes(4, "big")).digest() for position in range(clients)]
        order = sorted(range(clients), key=ranks.__getitem__)
        places = [0] * clients
        for place, position in enumerate(order):
            places[position] = place
        return cls(tuple(order), tuple(places), degree)

    def neighbours(self, position: int) -> tuple[int, ...]:
        """The neighbours of a position on the roster, in rising order."""
        clients = len(self.order)
        if self.degree >= clients - 1:
            return tuple(other for other in range(clients) if other != position)
        place, half = self.places[position], self.degree // 2
        steps = (step for step in range(-half, half + 1) if step)
        return tuple(sorted(self.order[(place + step) % clients] for step in steps))


def members(bitmap: bytes, clients: int) -> Long:
    """The positions that a bitmap over the roster names.

    Example:
        >>> members(as_bitmap([0, 2], 5), 5).tolist()
        [0, 2]
    """
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    if len(bitmap) != -(-clients // 8) or bits[clients:].any():
        raise TacitError(f"a list of people over a roster of {clients} has the wrong size", "it is refused")
    return np.flatnonzero(bits[:clients])


def as_bitmap(positions: "Long | list[int]", clients: int) -> bytes:
    """A list of positions as one bit per person on the roster."""
    bits = np.zeros(clients, dtype=np.uint8)
    bits[positions] = 1
    return np.packbits(bits, bitorder="little").tobytes()
