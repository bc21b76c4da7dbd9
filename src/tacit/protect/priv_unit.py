"""PrivUnitG: one local randomiser for several numbers at once, far less noisy than a bit about one of them.

Asi, Feldman, Talwar: Optimal Algorithms for Mean Estimation under Local Differential Privacy, ICML 2022: send
a normal vector that is more likely to lie on the side of the truth. A report is about a few random entries of
a rotated gradient, which look like normal numbers whatever the gradient was.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import PureLocal
from tacit.errors import TacitError
from tacit.kernels.seeded import entries_of, halves, packed
from tacit.protect.one_bit import entry_count, local_claim
from tacit.protect.protection import Draws, Form, Protection
from tacit.rng import Keys, normals_of
from tacit.types import Arrays, Cohort, RoundFacts

_CACHED = 1 << 15  # numbers worked on at a time: they and their intermediates stay in the cache
MOST_EPSILON = 6000.0  # beyond, what is sent would not fit 16 bits


class Cap(NamedTuple):
    """Beyond ``edge`` along the truth with probability ``inside``; ``gain``, ``square``: moments there."""

    edge: float
    inside: float
    gain: float
    square: float

    @property
    def stretch(self) -> float:
        """What multiplies ``u u^T`` in the mean of ``w w^T / gain^2``, which holds the identity besides."""
        return (self.square - 1) / self.gain**2


@lru_cache(maxsize=32)
def best_cap(epsilon: float) -> Cap:
    """The cap with the largest gain among those whose densities differ by exactly ``e^epsilon``.

    Example:
        >>> cap = best_cap(2.5)
        >>> round(cap.gain, 3), round(best_cap(250.0).gain, 1)
        (0.976, 21.9)
    """
    from scipy.special import log_ndtr  # loads on first use

    edges = np.linspace(-2.0, max(4.0, 1.5 * math.sqrt(2.0 * epsilon)), 8001)
    log_rare, log_rest = log_ndtr(-edges), log_ndtr(edges)
    log_odds = epsilon + log_rare - log_rest
    log_in, log_out = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    log_density = -(edges**2) / 2 - math.log(2 * math.pi) / 2
    lean = np.exp(log_density + log_in - log_rare) - np.exp(log_density + log_out - log_rest)
    best = int(np.argmax(lean))
    # E[s^2] of a normal beyond an edge is 1 + edge * (mean beyond it); before the edge likewise.
    square = 1 + edges[best] * lean[best]
    return Cap(float(edges[best]), float(np.exp(log_in[best])), float(lean[best]), float(square))


def radius(coordinates: int) -> float:
    """A length that so many standard normal numbers seldom exceed.

    Example:
        >>> round(radius(16), 2)
        5.41
    """
    return math.sqrt(coordinates) * (1 + math.sqrt(2 / coordinates))


@dataclass(frozen=True)
class PrivUnit(Protection):
    """``reports`` randomised vectors per round, each about ``coordinates`` random rotated entries.

    The values are clipped to length ``radius(coordinates)`` and completed by one more number to exactly that
    length, so that short vectors stay unbiased. What is sent is a normal vector ``w``, drawn beyond the cap's
    edge along the truth with probability ``inside``: its mean is ``gain`` times the truth's direction. A
    report is a 32-bit name of its entries and 16 bits per number.

    Formal guarantees:
        Each report is ``epsilon``-locally private: its density takes two values only, in the ratio
        ``e^epsilon``. Rounding to 16 bits comes after. The stronger clone bound does not cover it.
    """

    epsilon: float
    reports: int
    dim: int
    coordinates: int = 16
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.reports < 1 or self.coordinates < 2 or self.coordinates % 2:
            raise TacitError(
                f"privunit with epsilon={self.epsilon}, reports={self.reports}, "
                f"coordinates={self.coordinates}",
                "give epsilon above 0, at least 1 report and an even number of coordinates",
            )

    @property
    def leaves(self) -> Form:
        """Reports."""
        return Form.REPORTS

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Draw each report's name; its entries follow from it."""
        words = keys.words(cohort.users, "privunit/names", round, self.reports)
        names = (words >> np.uint64(32)).astype(np.uint32)
        entries = entries_of(names, self.coordinates, entry_count(cohort.catalogue, self.dim, rotated=True))
        extras = {**cohort.extras, "names": names, "entries": entries.reshape(len(cohort), -1)}
        return replace(cohort, extras=extras)

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Replace the values by randomised vectors."""
        del bound, state
        values: Any = update["values"]
        names: Any = update["names"]
        shaped = values.reshape(len(values), self.reports, self.coordinates)
        width = self.coordinates + 2
        words = draws.words(self.reports * (width + 2)).reshape(len(values), self.reports, width + 2)
        found = np.empty((*names.shape, 1 + self.coordinates // 2), dtype=np.uint32)
        some = max(1, _CACHED // (self.reports * width))
        for first in range(0, len(values), some):
            part = slice(first, first + some)
            truth = completed(self.scale * shaped[part].astype(np.float64), radius(self.coordinates))
            sent = randomised(truth, words[part], best_cap(self.epsilon))[:, :, : self.coordinates]
            found[part] = packed(names[part], sent)
        return {"reports": found}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """So many local reports, covered by the clone bound that holds for any randomiser."""
        del state
        return local_claim(claim, self.epsilon, self.reports, facts, one_bit=False)


def completed(values: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Vectors clipped to ``length``, with one more number that makes them exactly so long, over ``length``.

    Example:
        >>> completed(np.array([[3.0, 0.0], [30.0, 40.0]]), 5.0)
        array([[0.6, 0. , 0.8],
               [0.6, 0.8, 0. ]])
    """
    norms = np.linalg.norm(values, axis=-1, keepdims=True)
    inside = values / np.maximum(norms, length)
    rest = np.sqrt(np.maximum(0.0, 1.0 - (inside**2).sum(axis=-1, keepdims=True)))
    return np.concatenate([inside, rest], axis=-1)


def randomised(truth: NDArray[np.float64], words: NDArray[np.uint64], cap: Cap) -> NDArray[np.float64]:
    """A normal vector per unit vector of ``truth``, its part along the truth drawn beyond or before the edge.

    ``words`` holds an even number of random words per vector, at least as many as it has numbers, and two
    more: for the side and for the part along the truth.

    Example:
        >>> from tacit.rng import stream
        >>> words = stream(np.arange(4000, dtype="u8"), 4)
        >>> sent = randomised(np.tile([0.6, 0.8], (4000, 1)), words, best_cap(2.5))
        >>> bool(np.abs(sent.mean(axis=0) / best_cap(2.5).gain - [0.6, 0.8]).max() < 0.06)
        True
    """
    from scipy.special import log_ndtr, ndtri, ndtri_exp  # loads on first use

    width = truth.shape[-1]
    flat = words.reshape(-1, words.shape[-1])
    free = normals_of(flat[:, :-2])[:, :width]
    uniforms = (flat[:, -2:] >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    beyond = uniforms[:, 0] < cap.inside
    # Each tail from its own side: beyond a far edge the probability is too small to be taken from one.
    along = np.where(
        beyond,
        -ndtri_exp(log_ndtr(-cap.edge) + np.log(uniforms[:, 1])),
        ndtri(np.exp(log_ndtr(cap.edge)) * uniforms[:, 1]),
    )
    unit = truth.reshape(-1, width)
    turned = free + (along - (free * unit).sum(axis=1))[:, np.newaxis] * unit
    return turned.reshape(truth.shape)


@dataclass(frozen=True)
class PrivUnitVector(Protection):
    """One randomised vector per person: ``vector`` (length at most one, else scaled down) becomes a report.

    Formal guarantees:
        ``epsilon``-locally private for a person's whole history, once per round. Shuffling a single report of
        so large an epsilon gains nothing that is claimed here.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= MOST_EPSILON:
            raise TacitError(f"privunit with epsilon={self.epsilon}", f"give 0 to {MOST_EPSILON:g}")

    @property
    def leaves(self) -> Form:
        """Reports."""
        return Form.REPORTS

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Replace the vector by a randomised one."""
        del bound, state
        vector: Any = update["vector"]
        truth = completed(vector.astype(np.float64), 1.0)
        width = truth.shape[1] + truth.shape[1] % 2
        sent = randomised(truth, draws.words(width + 2), best_cap(self.epsilon))
        return {"reports": halves(sent[:, np.newaxis, : vector.shape[1]])}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """One local report."""
        del state, facts
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE)
        for observer in (Observer.SERVER, Observer.RELEASE):
            claim = claim.with_event(observer, PureLocal(self.epsilon))
        return claim
