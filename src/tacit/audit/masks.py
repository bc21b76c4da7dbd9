"""What masked ratings still say: recovery and ranking, as FedMMF defines them, and stronger forms.

Masked ratings are what is left of a device's ratings after its own model's predictions. Two uploads give them
to the server (:func:`tacit.audit.reconstruction.two_rounds`); the functions here take one person's masked
ratings, with the true ones to score against.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.data.interactions import Scale
from tacit.types import Floats, Index

Guess = Literal["rescaled", "centred", "item-means"]


@dataclass(frozen=True)
class Masked:
    """One person's masked ratings, item by item, in any order."""

    items: Index
    values: Floats


def recovered(masked: Floats, *, low: float, high: float) -> Floats:
    """Masked ratings stretched to the person's own lowest and highest rating, which the attacker knows.

    Example:
        >>> recovered(np.array([-1.0, 0.0, 1.0]), low=1, high=5).tolist()
        [1.0, 3.0, 5.0]
    """
    if not len(masked):
        return masked.astype(np.float64)
    least, most = float(masked.min()), float(masked.max())
    if most == least:
        return np.full(len(masked), (low + high) / 2.0)
    return low + (masked.astype(np.float64) - least) * ((high - low) / (most - least))


def guessed(masked: Masked, how: Guess, truth: Floats, means: Floats, overall: float) -> Floats:
    """The ratings an attacker writes down: stretched, added to the overall mean, or to each item's.

    Example:
        >>> mine = Masked(np.array([0, 1], "i4"), np.array([-1.0, 1.0]))
        >>> guessed(mine, "item-means", np.array([2.0, 5.0]), np.array([3.0, 4.0]), 3.5).tolist()
        [2.0, 5.0]
    """
    if how == "rescaled":
        return recovered(masked.values, low=float(truth.min()), high=float(truth.max()))
    return masked.values + (means[masked.items] if how == "item-means" else overall)


def recovery_rate(guess: Floats, truth: Floats, error: float) -> float:
    """The share of ratings guessed to within ``error`` stars (less than, as published).

    Example:
        >>> recovery_rate(np.array([1.0, 3.0]), np.array([1.0, 5.0]), error=1.0)
        0.5
    """
    return float((np.abs(guess - truth) < error).mean()) if len(truth) else 0.0


def exact_rate(guess: Floats, truth: Floats, scale: Scale) -> float:
    """The share of ratings guessed exactly, after rounding to the scale.

    Example:
        >>> exact_rate(np.array([1.4, 9.0]), np.array([1.0, 5.0]), Scale(1, 5, 1))
        1.0
    """
    steps = np.clip(np.rint((guess - scale.low) / scale.step), 0, scale.levels - 1)
    return float(np.isclose(scale.low + scale.step * steps, truth).mean()) if len(truth) else 0.0


def hit_ratio(masked: Floats, truth: Floats, share: float) -> float:
    """How many of the top ``share`` by masked rating belong to the top by true rating, in the mean over ties.

    Ties among equal true ratings are broken at random: an item among ``t`` tied ones, of which ``p`` find
    place at the top, counts ``p / t``. So even the true order scores below one, and chance scores ``share``.

    Example:
        >>> hit_ratio(np.array([3.0, 2.0, 1.0, 0.0]), np.array([5.0, 4.0, 4.0, 1.0]), share=0.5)
        0.75
    """
    count = max(1, round(share * len(truth)))
    return float(_chances(masked, count) @ _chances(truth, count)) / count


def _chances(values: Floats, count: int) -> Floats:
    """With what chance each value is among the ``count`` largest, ties broken at random."""
    edge = np.sort(values)[-count]
    above, tied = values > edge, values == edge
    return above + tied * ((count - above.sum()) / tied.sum())


def binned(rates: Sequence[float], bins: int = 5) -> Floats:
    """The share of people in each of ``bins`` equal ranges of a rate, the last one closed.

    Example:
        >>> binned([0.1, 0.5, 0.9, 1.0]).tolist()
        [0.25, 0.0, 0.25, 0.0, 0.5]
    """
    places = np.minimum((np.asarray(rates) * bins).astype(int), bins - 1)
    return np.bincount(places, minlength=bins) / max(1, len(rates))
