"""What one run proves about its own privacy: a certified lower bound, a fit, and the accountant's bound.

Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run, NeurIPS 2023. Each of ``m`` people (or
canaries) is in the run or left out by a fair coin. Whoever sees what an observer sees orders them by a score,
says "in" of the highest and "out" of the lowest, ``r`` guesses together. Against a mechanism that is
(epsilon, delta)-private the number of right guesses W obeys (Theorem 5.2), with ``f(v)`` the chance that a
binomial of ``r`` at ``e^epsilon / (1 + e^epsilon)`` is at least ``v``::

    P[W >= v] <= f(v) + 2 m delta max_{i = 1 .. v} (f(v - i) - f(v)) / i

so the largest epsilon for which this stays below 5 % is certified. The fit takes the scores for two normal
distributions and reads the epsilon off their distance: sharper, and no proof.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.account.gaussian import epsilon_of
from tacit.errors import TacitError
from tacit.types import Floats

GUESSED = (0.1, 0.3)
CONFIDENCE = 0.95
MOST_EPSILON = 64.0
Flags = NDArray[np.bool_]


def chance_of(right: int, guesses: int, people: int, epsilon: float, delta: float) -> float:
    """The largest probability of so many right guesses that (epsilon, delta) allows.

    Example:
        >>> chance_of(10, 10, 10, 0.0, 0.0) == 0.5**10
        True
        >>> chance_of(10, 10, 10, 0.0, 1e-3) > 0.5**10
        True
    """
    from scipy.stats import binom  # loads on first use

    if not 0 <= right <= guesses <= people:
        raise TacitError(f"{right} right of {guesses} guesses about {people} people", "count again")
    odds = 1.0 / (1.0 + math.exp(-epsilon))
    reached = float(binom.sf(right - 1, guesses, odds))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, odds))
    slack = float((below / np.arange(1, right + 1)).max()) if right else 0.0
    return min(1.0, reached + 2.0 * people * delta * slack)


def certified(right: int, guesses: int, people: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """The largest epsilon that so many right guesses refute, at this confidence; zero if none.

    Example:
        >>> round(certified(1000, 1000, 1000, 0.0), 2), certified(500, 1000, 1000, 0.0)
        (5.81, 0.0)
    """
    allowed = 1.0 - confidence
    if chance_of(right, guesses, people, 0.0, delta) > allowed:
        return 0.0
    low, high = 0.0, MOST_EPSILON
    while high - low > 1e-4:
        middle = (low + high) / 2
        if chance_of(right, guesses, people, middle, delta) > allowed:
            high = middle
        else:
            low = middle
    return low


def lower_bound(
    scores: Floats,
    there: Flags,
    delta: float,
    guessed: Sequence[float] = GUESSED,
    confidence: float = CONFIDENCE,
) -> float:
    """The best certified bound over several numbers of guesses, each told with its share of the error.

    Args:
        scores: One per person, higher for those who seem to have been there.
        there: Whether each really was, drawn by independent fair coins.
        delta: The delta of the claim.
        guessed: The shares of people that are guessed about, fixed before anything is seen.
        confidence: How often a bound this high may not be wrong.

    Example:
        >>> there = np.arange(1000) % 2 == 0
        >>> round(lower_bound(there.astype(float), there, 1e-6), 1)  # all of 300 guesses are right
        4.4
    """
    if len(scores) != len(there) or not len(scores):
        raise TacitError("scores and coins of different people", "give one score and one coin for each")
    order = np.argsort(scores, kind="stable")
    each = 1.0 - (1.0 - confidence) / len(guessed)
    found = 0.0
    for share in guessed:
        half = max(1, round(share * len(scores) / 2))
        right = int(np.count_nonzero(~there[order[:half]]) + np.count_nonzero(there[order[-half:]]))
        found = max(found, certified(right, 2 * half, len(scores), delta, each))
    return found


def fitted(scores: Floats, there: Flags, delta: float) -> float:
    """The epsilon of two normal distributions with the scores' means and the leavers' spread; an estimate.

    Example:
        >>> draw, there = np.random.default_rng(0), np.arange(20000) % 2 == 0
        >>> found = fitted(draw.normal(0, 1, 20000) + 0.5 * there, there, 1e-6)
        >>> bool(abs(found - epsilon_of(0.5, 1e-6)) < 0.2)
        True
    """
    inside, outside = scores[there], scores[~there]
    if min(len(inside), len(outside)) < 2:
        return 0.0
    spread = float(outside.std(ddof=1))
    distance = float(inside.mean() - outside.mean())
    if distance <= 0:
        return 0.0
    return MOST_EPSILON if spread == 0 or distance / spread > 12 else epsilon_of(distance / spread, delta)


def found_at(scores: Floats, there: Flags, false_alarms: float) -> float:
    """The share of those who were there that score higher than all but this share of those who were not.

    Example:
        >>> there = np.array([True, True, False, False])
        >>> found_at(np.array([3.0, 1.0, 2.0, 0.0]), there, 0.01)
        0.5
    """
    outside = np.sort(scores[~there])[::-1]
    allowed = math.floor(false_alarms * len(outside))
    return float((scores[there] > outside[allowed]).mean())


def advantage(scores: Floats, there: Flags) -> float:
    """The largest difference between the two shares over all thresholds.

    Example:
        >>> advantage(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False]))
        0.5
    """
    order = np.argsort(-scores, kind="stable")
    inside = np.cumsum(there[order]) / max(1, int(there.sum()))
    outside = np.cumsum(~there[order]) / max(1, int((~there).sum()))
    last = np.append(np.diff(scores[order]) != 0, True)
    return float(max(0.0, (inside - outside)[last].max()))


@dataclass(frozen=True)
class Curve:
    """Pairs (epsilon, delta) that all hold for one run: what an accountant allows an attacker to reach.

    Example:
        >>> curve = Curve(((1.0, 0.0),))
        >>> round(curve.found_at(0.01), 4), round(curve.advantage(), 4)
        (0.0272, 0.4621)
    """

    pairs: tuple[tuple[float, float], ...]

    def found_at(self, false_alarms: float) -> float:
        """The largest true share at this share of false alarms, under every pair at once."""
        reached = [1.0]
        for epsilon, delta in self.pairs:
            grown = math.exp(min(epsilon, 700.0))
            reached += [grown * false_alarms + delta, 1.0 - (1.0 - false_alarms - delta) / grown]
        return max(false_alarms, min(reached))

    def advantage(self) -> float:
        """The largest difference of the two shares, under every pair at once."""
        reached = [1.0]
        for epsilon, delta in self.pairs:
            odds = math.exp(-min(epsilon, 700.0))
            reached.append((1.0 - odds + 2.0 * delta * odds) / (1.0 + odds))
        return max(0.0, min(reached))
