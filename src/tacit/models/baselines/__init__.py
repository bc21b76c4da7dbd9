"""Centralised baselines every federated method is compared with.

All share one shape: ``fit_baseline(name, known, **settings)`` returns a frozen object with ``scores(users)``
and, where it predicts ratings, ``predict(users, items)``. In ranking, every interaction counts as a positive.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tacit.errors import TacitError, nearest
from tacit.models.baselines.counting import popularity, random_order
from tacit.models.baselines.fitted import Fitted, Known
from tacit.models.baselines.library import implicit_als, item_neighbours
from tacit.models.baselines.linear import ease
from tacit.models.baselines.means import biases, global_mean, user_mean

__all__ = ["BASELINES", "Baseline", "Fitted", "Known", "fit_baseline"]


@dataclass(frozen=True)
class Baseline:
    """A baseline by name: what it is, and the function that fits it.

    Example:
        >>> BASELINES["ease"].settings
        {'reg': 300.0, 'most_items': 20000}
    """

    name: str
    summary: str
    fit: Callable[..., Fitted]
    predicts_ratings: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings with their defaults."""
        parameters = inspect.signature(self.fit).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


BASELINES: Mapping[str, Baseline] = {
    one.name: one
    for one in (
        Baseline("random", "a keyed random order: what chance achieves", random_order),
        Baseline("pop", "the number of training interactions of an item", popularity),
        Baseline("itemknn", "cosine neighbours of the items a user met", item_neighbours),
        Baseline("ials", "matrix factorisation of implicit feedback by least squares", implicit_als),
        Baseline("ease", "linear item-to-item weights in closed form", ease),
        Baseline("global-mean", "the mean of all ratings", global_mean, predicts_ratings=True),
        Baseline("user-mean", "the mean of a user's ratings", user_mean, predicts_ratings=True),
        Baseline("bias", "global mean plus damped user and item biases", biases, predicts_ratings=True),
    )
}


def fit_baseline(name: str, known: Known, **settings: Any) -> Fitted:
    """Fit a baseline by its name.

    Args:
        name: One of ``BASELINES``.
        known: What it may look at.
        **settings: Its settings; an unknown one is refused.

    Returns:
        The fitted baseline, ready to be evaluated.

    Example:
        >>> import numpy as np
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.arange(3, dtype="i4"), np.array([1, 1, 0], "i4"), np.ones(3, "f4"))
        >>> known = Known(log, users=3, items=2, keys=SeededKeys(0))
        >>> fit_baseline("pop", known).scores(np.array([0], "i4")).tolist()
        [[1.0, 2.0]]
    """
    if name not in BASELINES:
        raise TacitError(f"no baseline is called {name!r}", nearest(name, BASELINES))
    baseline = BASELINES[name]
    for setting in settings:
        if setting not in baseline.settings:
            known_settings = (
                nearest(setting, baseline.settings) if baseline.settings else "it has no settings"
            )
            raise TacitError(f"{name} has no setting {setting!r}", known_settings)
    return baseline.fit(known, **settings)
