"""A data set in numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Dataset, Features

_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def gini(counts: NDArray[np.integer]) -> float:
    """How unequal counts are: 0 when all are the same, towards 1 when one has everything.

    Example:
        >>> gini(np.array([5, 5, 5])), round(gini(np.array([0, 0, 0, 8])), 2)
        (0.0, 0.75)
    """
    total, number = float(counts.sum()), len(counts)
    if not total:
        return 0.0
    ranks = np.arange(1, number + 1)
    return float(2.0 * (ranks * np.sort(counts)).sum() / (number * total) - (number + 1) / number)


def _quantiles(counts: NDArray[np.integer]) -> dict[str, float]:
    if not len(counts):
        return {}
    return {
        f"{100 * share:g}%": float(value)
        for share, value in zip(_QUANTILES, np.quantile(counts, _QUANTILES), strict=True)
    }


def _histogram(dataset: Dataset) -> dict[str, int]:
    scale, values = dataset.scale, dataset.interactions.values
    if scale is None:
        return {}
    levels = np.rint((values - np.float32(scale.low)) / np.float32(scale.step)).astype(np.int64)
    counts = np.bincount(levels, minlength=scale.levels)
    return {f"{scale.low + level * scale.step:g}": int(count) for level, count in enumerate(counts)}


def _span(times: NDArray[np.int64] | None) -> dict[str, str] | None:
    if times is None or not len(times):
        return None
    ends = {"first": times.min(), "last": times.max()}
    return {name: str(np.datetime64(int(when), "s")) + "Z" for name, when in ends.items()}


def _features(features: Features) -> dict[str, str]:
    """Each feature's name with what it is and how much of it is known."""
    told = {}
    for name, column in features.categories.items():
        told[name] = f"{len(features.labels.get(name, ()))} categories, {np.mean(column >= 0):.0%} known"
    for name, matrix in features.flags.items():
        told[name] = f"{matrix.shape[1]} flags, {matrix.sum(axis=1).mean():.1f} on average"
    for name, column in features.numbers.items():
        told[name if name not in told else f"{name} (number)"] = (
            f"numbers, {np.mean(~np.isnan(column)):.0%} known"
        )
    for name, column in features.texts.items():
        told[name] = f"text, {np.mean(column != ''):.0%} known"
    return told


def describe(dataset: Dataset) -> dict[str, Any]:
    """Sizes, density, ratings, activity, popularity, time span and features, ready for JSON.

    Popularity counts every item of the catalogue; the Gini is given over the catalogue as well.

    Example:
        >>> from tacit.data.load import load
        >>> told = describe(load("demo:users=50,items=40,mean=12"))
        >>> told["users"], told["items"], sum(told["ratings"].values()) == told["interactions"]
        (50, 40, True)
    """
    log = dataset.interactions
    per_user = np.bincount(log.users, minlength=dataset.users)
    per_item = np.bincount(log.items, minlength=dataset.items)
    cells = dataset.users * dataset.items
    return {
        "name": dataset.name,
        "users": dataset.users,
        "items": dataset.items,
        "items_touched": int(np.count_nonzero(per_item)),
        "interactions": len(log),
        "density": len(log) / cells if cells else 0.0,
        "kind": "implicit" if dataset.scale is None else "ratings",
        "mean_value": float(log.values.mean(dtype=np.float64)) if len(log) else None,
        "ratings": _histogram(dataset),
        "per_user": _quantiles(per_user),
        "per_item": _quantiles(per_item),
        "popularity_gini": gini(per_item),
        "most_popular_share": float(per_item.max() / max(dataset.users, 1)) if len(per_item) else 0.0,
        "time": _span(log.times),
        "user_features": _features(dataset.user_features),
        "item_features": _features(dataset.item_features),
        "citation": dataset.citation,
        "notes": list(dataset.notes),
    }
