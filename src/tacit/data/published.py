"""What a complete data set holds, as its publisher says; a copy that differs is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tacit.data.interactions import Dataset
from tacit.errors import TacitError
from tacit.rng import mixed


@dataclass(frozen=True)
class Published:
    """Counts over the log (items: those somebody touched), and a fingerprint of its content.

    The fingerprint does not depend on the order of the rows, the line ends or the archive, so a faithful
    copy in any packing passes, and one altered cell does not. ``None`` stands for what nobody stated.

    Example:
        >>> Published(users=943, items=1682, interactions=100_000, histogram={5: 21_201}).fingerprint is None
        True
    """

    users: int | None
    items: int | None
    interactions: int
    fingerprint: int | None = None
    histogram: Mapping[float, int] = field(default_factory=dict)


def fingerprint(dataset: Dataset) -> int:
    """A 64-bit sum over the rows' raw ids, value and time (integer ids only).

    Example:
        >>> from tacit.data.load import load
        >>> tiny = load("demo:users=20,items=30,mean=10")
        >>> fingerprint(tiny) == fingerprint(tiny.keeping(tiny.interactions.take(np.arange(1))))
        False
    """
    log = dataset.interactions
    words = mixed(dataset.user_ids.values.astype(np.int64)[log.users].view(np.uint64))
    columns = [
        dataset.item_ids.values.astype(np.int64)[log.items],
        np.rint(log.values * 1000.0).astype(np.int64),
    ]
    columns += [] if log.times is None else [log.times]
    with np.errstate(over="ignore"):
        for column in columns:
            words = mixed(words + column.view(np.uint64))
        return int(words.sum(dtype=np.uint64))


def verify(dataset: Dataset, published: Published, where: str) -> None:
    """Refuse, in one line, a copy that is cut short or altered.

    Example:
        >>> from tacit.data.load import load
        >>> verify(load("demo:users=20,items=30,mean=10"), Published(20, 30, 10_000), "ratings.dat")
        Traceback (most recent call last):
        tacit.errors.TacitError: ratings.dat is cut short or altered: it holds ... interactions ...
    """
    log = dataset.interactions
    found = {
        "interactions": len(log),
        "users": int(np.count_nonzero(np.bincount(log.users))),
        "items": int(np.count_nonzero(np.bincount(log.items))),
    }
    for what, count in found.items():
        expected = getattr(published, what)
        if expected is not None and count != expected:
            raise _differs(dataset, where, f"{count:,} {what} instead of {expected:,}")
    for value, count in published.histogram.items():
        there = int(np.count_nonzero(log.values == np.float32(value)))
        if there != count:
            raise _differs(dataset, where, f"{there:,} ratings of {value:g} instead of {count:,}")
    if published.fingerprint is not None and fingerprint(dataset) != published.fingerprint:
        raise _differs(dataset, where, "the published counts but other rows")


def _differs(dataset: Dataset, where: str, what: str) -> TacitError:
    return TacitError(
        f"{where} is cut short or altered: it holds {what}",
        f"get {dataset.name} again, or write check=no among its options to use this copy as it is",
    )
