"""Whom a model serves well: people of little and of much activity, popular and rare items."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.data.interactions import Interactions, Scale
from tacit.evaluate.beyond_accuracy import activity_groups, by_popularity, popular_items
from tacit.evaluate.protocol import Evaluation, parse_metric
from tacit.evaluate.ratings import rating_errors
from tacit.evaluate.scorer import Rater, Scorer
from tacit.split import Split
from tacit.types import Floats

ACTIVITIES = ("light users", "middling users", "heavy users")
CUT = 10


@dataclass(frozen=True)
class GroupLine:
    """A metric within one group: its value, its standard error over users, and who belongs to it."""

    metric: str
    group: str
    value: float
    error: float | None
    users: int
    meaning: str

    def to_json(self) -> dict[str, Any]:
        """One entry of ``groups`` in a run's result."""
        rounded = {
            "value": round(self.value, 6),
            "error": None if self.error is None else round(self.error, 6),
        }
        return {**asdict(self), **rounded}


def grouped(final: Evaluation, scorer: Scorer, split: Split, scale: Scale | None) -> tuple[GroupLine, ...]:
    """The first metric of ratings and the first of rankings, by activity of people and popularity of items.

    People are sorted into three groups of equal size up to ties by their training interactions (those known
    by a support part alone, by that); the popular items are the fifth of the catalogue with the most
    training interactions.
    """
    lines: list[GroupLine] = []
    names = [parse_metric(name) for name in final.per_user]
    known = split.train if split.support is None else _both(split.train, split.support)
    for kind in (True, False):
        metric = next((name.text for name in names if name.of_ratings is kind), None)
        if metric is None:
            continue
        lines += _by_activity(metric, final, known)
        if kind and scale is not None and isinstance(scorer, Rater):
            lines += _rated(metric, scorer, split, scale)
    if "full" in final.ranks:
        for found in by_popularity(final.ranks["full"], split.train, CUT):
            if found.users:
                name = "popular items" if found.group == "head" else "rare items"
                lines.append(
                    GroupLine(f"recall@{CUT}", name, found.mean, found.error, found.users, found.meaning)
                )
    return tuple(lines)


def _both(one: Interactions, other: Interactions) -> Interactions:
    def joined(left: Any, right: Any) -> Any:
        return np.concatenate([left, right])

    return Interactions(
        joined(one.users, other.users), joined(one.items, other.items), joined(one.values, other.values)
    )


def _by_activity(metric: str, final: Evaluation, known: Interactions) -> Iterator[GroupLine]:
    found = final.per_user[metric]
    activity = np.bincount(known.users, minlength=int(found.users.max()) + 1)[found.users]
    group = activity_groups(activity, len(ACTIVITIES))
    for number, name in enumerate(ACTIVITIES):
        inside = group == number
        if not inside.any():
            continue
        meaning = f"{activity[inside].min()} to {activity[inside].max()} training interactions"
        weights = np.ones(int(inside.sum())) if found.weights is None else found.weights[inside].astype(float)
        value, error = _pooled(metric, found.values[inside], weights)
        yield GroupLine(metric, name, value, error, int(inside.sum()), meaning)


def _pooled(metric: str, values: Floats, weights: Floats) -> tuple[float, float | None]:
    """A mean over ratings from means per user (``rmse``: of squares), with its linearised standard error."""
    parts = values.astype(np.float64) ** 2 if metric == "rmse" else values.astype(np.float64)
    mean = float((parts * weights).sum() / weights.sum())
    many = len(values)
    residual = weights * (parts - mean)
    error = float(np.sqrt(many / (many - 1) * (residual**2).sum()) / weights.sum()) if many > 1 else None
    if metric == "rmse":
        root = float(np.sqrt(mean))
        return root, None if error is None or root == 0 else error / (2 * root)
    return mean, error


def _rated(metric: str, scorer: Rater, split: Split, scale: Scale) -> Iterator[GroupLine]:
    """The same error over the ratings of popular and of rare items."""
    catalogue = 1 + max(int(split.train.items.max(initial=0)), int(split.test.items.max(initial=0)))
    popular, edge = popular_items(split.train, catalogue)
    chosen = popular[split.test.items]
    for name, inside, meaning in (
        ("popular items", chosen, f"items with {edge} or more training interactions"),
        ("rare items", ~chosen, f"items with fewer than {edge}"),
    ):
        part: Interactions = split.test.take(inside)
        if not len(part):
            continue
        found = rating_errors(scorer, part, scale)
        both = {"rmse": (found.rmse, found.rmse_error), "mae": (found.mae, found.mae_error)}
        value, error = both[metric]
        told = error if len(found.users) > 1 else None
        yield GroupLine(metric, name, value, told, len(found.users), meaning)
