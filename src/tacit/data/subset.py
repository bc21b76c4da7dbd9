"""Smaller data sets out of larger ones: a dense core, or randomly chosen people and items."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Features, Interactions
from tacit.errors import TacitError
from tacit.rng import SeededKeys

Mask = NDArray[np.bool_]


def core(dataset: Dataset, least: int) -> Dataset:
    """Only people and items with at least ``least`` interactions among those kept (applied until stable).

    Example:
        >>> from tacit.data.load import load
        >>> dense = core(load("demo:users=60,items=40,mean=12"), 8)
        >>> log = dense.interactions
        >>> bool(np.bincount(log.users).min() >= 8 and np.bincount(log.items).min() >= 8)
        True
    """
    log = dataset.interactions
    users, items = np.ones(dataset.users, dtype=np.bool_), np.ones(dataset.items, dtype=np.bool_)
    while True:
        kept = users[log.users] & items[log.items]
        many = np.bincount(log.users[kept], minlength=dataset.users) >= least
        often = np.bincount(log.items[kept], minlength=dataset.items) >= least
        if (many == users).all() and (often == items).all():
            break
        users, items = many, often
    if not users.any():
        raise TacitError(
            f"nobody in {dataset.name} has {least} interactions with such items", "ask for fewer"
        )
    return narrowed(dataset, users, items, f"core of {least}")


def sampled(dataset: Dataset, users: int, items: int, seed: int) -> Dataset:
    """Randomly chosen people and items, with the interactions among them.

    Example:
        >>> from tacit.data.load import load
        >>> small = sampled(load("demo:users=60,items=40,mean=12"), 20, 15, seed=1)
        >>> small.users, small.items
        (20, 15)
    """
    if not (0 < users <= dataset.users and 0 < items <= dataset.items):
        raise TacitError(
            f"{users} people and {items} items out of {dataset.users} and {dataset.items}", "ask for fewer"
        )
    draw = SeededKeys(seed).generator("subset")
    people, things = np.zeros(dataset.users, dtype=np.bool_), np.zeros(dataset.items, dtype=np.bool_)
    people[draw.permutation(dataset.users)[:users]] = True
    things[draw.permutation(dataset.items)[:items]] = True
    return narrowed(dataset, people, things, f"{users} people and {items} items drawn with seed {seed}")


def narrowed(dataset: Dataset, users: Mask, items: Mask, note: str) -> Dataset:
    """The marked people and items only, numbered anew in the same order.

    Example:
        >>> from tacit.data.load import load
        >>> whole = load("demo:users=30,items=20,mean=5")
        >>> half = narrowed(whole, np.arange(30) < 15, np.ones(20, dtype=bool), "the first half")
        >>> half.users, half.user_ids.raw(3) == whole.user_ids.raw(3)
        (15, True)
    """
    log = dataset.interactions
    kept = users[log.users] & items[log.items]
    taken = log.take(kept)
    new_user, new_item = (np.cumsum(mask, dtype=np.int32) - np.int32(1) for mask in (users, items))
    narrow = replace(
        dataset,
        user_ids=Ids(dataset.user_ids.values[users], "user"),
        item_ids=Ids(dataset.item_ids.values[items], "item"),
        user_features=_rows(dataset.user_features, users),
        item_features=_rows(dataset.item_features, items),
        notes=(*dataset.notes, note),
    )
    log = Interactions(new_user[taken.users], new_item[taken.items], taken.values, taken.times)
    counted = any(name in dataset.item_features.numbers for name in dataset.item_features.from_log)
    return narrow.keeping(log) if counted else replace(narrow, interactions=log)


def _rows(features: Features, mask: Mask) -> Features:
    def cut(group: Any) -> dict[str, Any]:
        return {name: array[mask] for name, array in group.items()}

    return Features(
        cut(features.categories),
        cut(features.flags),
        cut(features.numbers),
        cut(features.texts),
        features.labels,
        features.from_log,
    )
