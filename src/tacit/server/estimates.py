"""Steps that set the model to an estimate: popularity from counts, directions from moments of noisy bits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.server.step import ServerStep
from tacit.types import Array

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class CountedPopularity(ServerStep):
    """The share of people who met an item, from the mean of plus or minus one; and the top ``chosen`` items.

    Estimates below zero stay: they order items as well as others do. Shares of true ``bits`` are what they
    are.

    Example:
        >>> step, mean = CountedPopularity(chosen=1), np.array([0.5, -1.0])
        >>> after, _ = step.step({}, {"counts": {"popularity": mean}}, {}, 0)
        >>> after["popularity"], after["chosen"]
        (array([0.75, 0.  ], dtype=float32), array([0], dtype=int32))
    """

    chosen: int = 0

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Set popularity."""
        del round
        told: Mapping[str, Any] = totals["counts"]
        share = told["bits"] if "bits" in told else (told["popularity"] + 1.0) / 2.0
        share = share.astype(np.float32)
        after = {**shared, "popularity": share}
        if self.chosen:
            after["chosen"] = np.sort(np.argsort(-share, kind="stable")[: self.chosen]).astype(np.int32)
        return after, state


@dataclass(frozen=True)
class Spikes:
    """Directions that stand out of noise: their columns, and the variance each really has."""

    vectors: Doubles
    strengths: Doubles


def spikes(covariance: Doubles, noise: Doubles, reports: int, most: int) -> Spikes:
    """Eigenvectors of a sample covariance beyond what noise alone would give, their variances shrunk.

    Scaled so that each bit's variance is one, noise has eigenvalues below ``(1 + sqrt(bits / reports))^2``; a
    true one of ``l`` appears larger than it is and at an angle to its direction (Baik, Ben Arous, Péché).
    Kept is the part along the true direction (Donoho, Gavish, Johnstone).

    Example:
        >>> found = spikes(np.diag([9.0, 1.0, 1.0]), np.ones(3), reports=10**6, most=2)
        >>> found.vectors.shape, found.strengths.round(2)
        ((3, 1), array([8.]))
    """
    scale = np.sqrt(noise)
    whitened = covariance / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(whitened)
    ratio = len(noise) / max(1, reports)
    order = np.argsort(-values)[:most]
    # The largest noise eigenvalue exceeds the edge by a little; three of its deviations keep it out.
    edge = (1 + math.sqrt(ratio)) ** 2 * (1 + 3 * max(1, reports) ** (-2 / 3))
    order = order[values[order] > edge]
    seen = values[order] + 1 - ratio
    true = (seen + np.sqrt(np.maximum(seen**2 - 4 * values[order], 0.0))) / 2
    along = (1 - ratio / (true - 1) ** 2) / (1 + ratio / (true - 1))
    strengths = (true - 1) * np.maximum(along, 0.0)
    return Spikes(vectors[:, order] * scale[:, np.newaxis], strengths)


@dataclass(frozen=True)
class SpectralStep(ServerStep):
    """Popularity in set-up, then directions of the chosen items from bits kept with odds ``e^epsilon``.

    Bits that never flip are those of an infinite ``epsilon``.
    """

    counts: CountedPopularity
    epsilon: float
    dim: int

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Whichever of the two this exchange brought."""
        if "counts" in totals:
            return self.counts.step(shared, totals, state, round)
        moments: Mapping[str, Any] = totals["bits"]
        chosen: Any = shared["chosen"]
        reports = int(moments["reports"][0])
        slope = math.tanh(self.epsilon / 2)
        mean = moments["single"] / reports
        covariance = moments["pairs"] / reports - np.outer(mean, mean)
        # A bit that was the same for everybody has some variance all the same (Laplace's rule).
        likely = (moments["single"] + 1) / (reports + 2)
        noise = likely * (1 - likely)
        found = spikes(covariance, noise, reports, self.dim)
        directions = np.zeros_like(shared["directions"])
        width = len(found.strengths)
        directions[chosen, :width] = found.vectors * np.sqrt(found.strengths) / slope
        popularity: Any = shared["popularity"].copy()
        popularity[chosen] = (mean - (1 - slope) / 2) / slope
        doubt = np.array([math.sqrt(noise.mean() / reports) / slope], dtype=np.float32)
        return {**shared, "directions": directions, "popularity": popularity, "doubt": doubt}, state


@dataclass(frozen=True)
class VectorSpectralStep(ServerStep):
    """Popularity from randomised histories in set-up, then directions from randomised differences to it.

    ``gains`` are the randomiser's mean along the truth in either exchange; ``stretch`` is how much the second
    one's products enlarge those of the truth.
    """

    gains: tuple[float, float]
    stretch: float
    history: int
    chosen: int
    dim: int

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Whichever of the two this exchange brought."""
        del round
        if "histories" in totals:
            mean: Any = totals["histories"]["single"]
            share = (math.sqrt(self.history) / self.gains[0] * mean).astype(np.float32)
            chosen = np.sort(np.argsort(-share, kind="stable")[: self.chosen]).astype(np.int32)
            expected = np.clip(share[chosen], 0.0, 1.0)
            return {**shared, "popularity": share, "chosen": chosen, "expected": expected}, state
        moments: Mapping[str, Any] = totals["differences"]
        expected: Any = shared["expected"]
        length = float(np.sqrt(np.maximum((expected.astype(np.float64) * (1 - expected)).sum(), 1.0)))
        unit = length / self.gains[1]
        covariance = unit**2 * (moments["pairs"] - np.outer(moments["single"], moments["single"]))
        # What is no direction: the randomiser's noise and each item's own variance, both on the diagonal.
        alone = np.maximum(np.diag(covariance), 0.5 * unit**2)
        found = spikes(covariance, alone, int(moments["reports"][0]), self.dim)
        chosen: Any = shared["chosen"]
        directions = np.zeros_like(shared["directions"])
        directions[chosen, : len(found.strengths)] = found.vectors * np.sqrt(found.strengths / self.stretch)
        # Two estimates of the same share, each weighed by the other's noise.
        first, second = self.history / self.gains[0] ** 2, unit**2
        popularity: Any = shared["popularity"].copy()
        again = expected + unit * moments["single"]
        popularity[chosen] = (second * popularity[chosen] + first * again) / (first + second)
        spread = math.sqrt(first * second / (first + second) / max(1, int(moments["reports"][0])))
        doubt = np.array([spread], dtype=np.float32)
        return {**shared, "directions": directions, "popularity": popularity, "doubt": doubt}, state
