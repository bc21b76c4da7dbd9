"""From raw histories to the cohort a run's client code works on: positions are made here, on the device."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.config.top import refuse_off_scale
from tacit.data.interactions import Features
from tacit.deploy.about import RunAbout
from tacit.deploy.history import History
from tacit.errors import TacitError
from tacit.federation.federation import Federation


class Owner(NamedTuple):
    """What a device holds of one person: their history, and what it knows of them."""

    history: History
    profile: Mapping[str, Any] = {}


def federation_held(about: RunAbout, owners: Sequence[Owner]) -> Federation:
    """The people a device hosts, as the federation of a run: a cohort of it goes into ``client_side``.

    Entries about items outside the catalogue take no part. Positions of people are those in ``owners``.

    Example:
        >>> about = RunAbout("r", {"method": "fedrec"}, items=("7", "42"), people=3)
        >>> held = federation_held(about, [Owner(History.of([("42", 4.0, None), ("?", 1.0, None)]))])
        >>> held.items, held.values
        (array([1], dtype=int32), array([4.], dtype=float32))
    """
    places = about.positions()
    offsets, items, values = [0], [], []
    for owner in owners:
        found = np.array([places.get(raw, -1) for raw in owner.history.items], dtype=np.int32)
        order = np.argsort(found, kind="stable")[int((found < 0).sum()) :]
        mine = owner.history.values[order]
        refuse_off_scale(about.scale, mine, "the history")
        items.append(found[order])
        values.append(mine)
        offsets.append(offsets[-1] + len(order))
    return Federation(
        np.array(offsets, dtype=np.int64),
        np.concatenate([np.zeros(0, "i4"), *items], dtype=np.int32),
        np.concatenate([np.zeros(0, "f4"), *values], dtype=np.float32),
        len(about.items),
        about.scale,
        people_features(about.about_people, [owner.profile for owner in owners]),
        about.features,
    )


def people_features(about: Features, profiles: Sequence[Mapping[str, Any]]) -> Features:
    """What devices know of their owners, in the run's codes; what is not known stays unknown.

    Example:
        >>> labels = {"age": ("young", "old")}
        >>> about = Features(categories={"age": np.zeros(0, "i4")}, labels=labels)
        >>> people_features(about, [{"age": "old"}, {}]).categories["age"]
        array([ 1, -1], dtype=int32)
    """
    categories = {
        name: np.array([_code(about.labels.get(name, ()), name, p) for p in profiles], dtype=np.int32)
        for name in about.categories
    }
    numbers = {
        name: np.array([_number(name, profile) for profile in profiles], dtype=np.float32)
        for name in about.numbers
    }
    flags = {
        name: np.array(
            [
                [label in profile.get(name, ()) for label in about.labels.get(name, ())]
                for profile in profiles
            ],
            dtype=np.uint8,
        )
        for name in about.flags
    }
    return Features(categories=categories, flags=flags, numbers=numbers, labels=about.labels)


def _code(labels: Sequence[str], name: str, profile: Mapping[str, Any]) -> int:
    """The code of what a person said; a whole number where the feature has no labels."""
    said = profile.get(name)
    if said is None:
        return -1
    if str(said) in labels:
        return list(labels).index(str(said))
    if not labels and str(said).isdigit():
        return int(said)
    known = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
    raise TacitError(f"{name} = {said!r} is not among the run's labels", f"known: {known}")


def _number(name: str, profile: Mapping[str, Any]) -> float:
    try:
        return float(profile.get(name, 0.0))
    except (TypeError, ValueError) as error:
        raise TacitError(f"{name} = {profile[name]!r} is not a number", "correct it") from error


def profile_of(features: Features, row: int) -> dict[str, Any]:
    """One person's row of a data set's features, in labels: the inverse of :func:`people_features`.

    Example:
        >>> column = {"age": np.array([1, -1], "i4")}
        >>> profile_of(Features(categories=column, labels={"age": ("young", "old")}), 0)
        {'age': 'old'}
    """
    said: dict[str, Any] = {}
    for name, codes in features.categories.items():
        labels, code = features.labels.get(name, ()), int(codes[row])
        if code >= 0:
            said[name] = labels[code] if code < len(labels) else code
    for name, flags in features.flags.items():
        said[name] = [
            label for label, on in zip(features.labels.get(name, ()), flags[row], strict=True) if on
        ]
    return said | {name: float(column[row]) for name, column in features.numbers.items()}
