"""What a client's history is to a network on features: a weight and a target per group of equal items."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.types import Cohort, Index, Long, Segment


@dataclass(frozen=True)
class Counts:
    """``weights[c, g]`` samples of client ``c`` fall on group ``g``, with mean target ``targets[c, g]``."""

    weights: NDArray[np.float32]
    targets: NDArray[np.float32]


@dataclass(frozen=True)
class Reading:
    """How a history becomes samples.

    ``ratings``: every interaction is a sample with its rating as target. ``implicit``: interactions rated
    above ``liked`` are positives, and for each of them there are ``negatives`` unseen items; interactions
    rated lower are left out, or negatives too (``low="negative"``, the literal PrivRec).

    Example:
        >>> one = Cohort(np.zeros(1, "i4"), np.array([0, 2]), np.array([0, 2], "i4"), np.ones(2, "f4"), 4)
        >>> found = Reading(negatives=1.0).counts(one, np.arange(4, dtype="i4"))
        >>> found.weights.tolist(), found.targets.tolist()
        ([[1.0, 1.0, 1.0, 1.0]], [[1.0, 0.0, 1.0, 0.0]])
    """

    kind: Literal["implicit", "ratings"] = "implicit"
    negatives: float = 4.0
    liked: float = 0.0
    low: Literal["ignore", "negative"] = "ignore"

    def base(self, head: Literal["sigmoid", "linear"]) -> float:
        """The score that says how many of the samples are positives; it is known before anybody trains.

        Example:
            >>> round(Reading(negatives=4.0).base("sigmoid"), 4)
            -1.3863
        """
        known = self.kind == "implicit" and head == "sigmoid" and self.negatives > 0
        return -math.log(self.negatives) if known else 0.0

    def counts(self, cohort: Cohort, groups: Index, drawn: Segment | None = None) -> Counts:
        """The cohort's samples; without ``drawn`` negatives, what drawing them would give on average."""
        size = int(groups.max()) + 1
        clients = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
        cells = clients * size + groups[cohort.items]
        shape = len(cohort), size
        if self.kind == "ratings":
            weights = _summed(cells, None, shape)
            return _mean(weights, _summed(cells, cohort.values, shape))
        liked = cohort.values > self.liked
        positive = _summed(cells[liked], None, shape)
        if drawn is None:
            negative = self._expected(cohort, groups, _summed(cells, None, shape), positive)
        else:
            negative = _summed(_cells_of(drawn, groups, size), None, shape)
        if self.low == "negative":
            negative = negative + _summed(cells[~liked], None, shape)
        return _mean(positive + negative, positive)

    def _expected(
        self, cohort: Cohort, groups: Index, seen: NDArray[np.float64], positive: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Each unseen item equally likely, ``negatives`` per positive but no more than there are."""
        unseen = np.bincount(groups, minlength=seen.shape[1]) - seen
        there = np.maximum(cohort.catalogue - np.diff(cohort.offsets), 1)
        wanted = np.minimum(self.negatives * positive.sum(axis=1), there)
        return unseen * (wanted / there)[:, np.newaxis]


def _summed(cells: Long, values: NDArray[np.float32] | None, shape: tuple[int, int]) -> NDArray[np.float64]:
    return np.bincount(cells, values, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _cells_of(drawn: Segment, groups: Index, size: int) -> Long:
    ends = np.cumsum(drawn.lengths)
    clients = np.repeat(np.arange(len(drawn.lengths)), drawn.lengths)
    places = np.arange(len(clients)) + np.repeat(drawn.starts - (ends - drawn.lengths), drawn.lengths)
    return clients * size + groups[drawn.ids[places]]


def _mean(weights: NDArray[np.float64], sums: NDArray[np.float64]) -> Counts:
    targets = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    return Counts(weights.astype(np.float32), targets.astype(np.float32))
