"""Which items a person has met, from the ids in uploads alone: in one upload, and common to several."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from tacit.local.logistic_factors import LogisticFactors
from tacit.local.neural_epochs import NeuralEpochs
from tacit.protect.pseudo_items import Fillers
from tacit.round import Exchange
from tacit.types import Floats, Index

Mixing = Callable[[int], float]
"""From how many items a person has met to how many an upload names, in the mean; public."""


def mixing_of(exchange: Exchange, catalogue: int) -> Mixing:
    """What the settings say about made-up items: so many per rated one, or draws that may repeat."""
    rho = sum(stage.rho for stage in exchange.protections.stages if isinstance(stage, Fillers))
    local = exchange.local
    draws = (
        local.negatives_per_item * local.epochs if isinstance(local, LogisticFactors | NeuralEpochs) else 0
    )

    def size(rated: int) -> float:
        others = max(1, catalogue - rated)
        drawn = others * (1.0 - (1.0 - 1.0 / others) ** (draws * rated))
        return rated + min(others, rho * rated + drawn)

    return size


def rated_count(support: int, mixing: Mixing, usual: float, catalogue: int) -> int:
    """How many of the items in an upload were really met; the usual number where an upload names all items.

    Example:
        >>> rated_count(30, lambda n: 3.0 * n, usual=50.0, catalogue=100)
        10
    """
    if support >= catalogue:
        return max(1, min(catalogue, round(usual)))
    misses = [abs(mixing(rated) - support) for rated in range(1, support + 1)]
    return 1 + int(np.argmin(misses)) if misses else 0


def from_one_upload(support: Index, popularity: Floats, count: int) -> Index:
    """The most popular ``count`` of the items that an upload names.

    Example:
        >>> from_one_upload(np.array([0, 2, 3], "i4"), np.array([0.1, 0.9, 0.5, 0.7]), count=2).tolist()
        [2, 3]
    """
    order = np.argsort(-popularity[support], kind="stable")
    return np.sort(support[order[:count]])


def in_common(supports: Sequence[Index]) -> Index:
    """The items that all of a person's uploads name: made-up ones that are drawn anew fall out.

    Example:
        >>> in_common([np.array([1, 2, 3]), np.array([2, 3, 4])]).tolist()
        [2, 3]
    """
    found = supports[0]
    for support in supports[1:]:
        found = np.intersect1d(found, support, assume_unique=True)
    return found


def area_under_curve(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, ties counting half.

    Example:
        >>> area_under_curve(np.array([3.0, 1.0, 2.0]), np.array([True, False, True]))
        1.0
    """
    ours, theirs = int(positive.sum()), int((~positive).sum())
    if not ours or not theirs:
        return 0.5
    return float((rankdata(scores)[positive].sum() - ours * (ours + 1) / 2) / (ours * theirs))
