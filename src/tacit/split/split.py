"""Splits by name: which part of a log a model may learn from, and which part it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Dataset, Interactions, Ints, ordered
from tacit.errors import TacitError, nearest
from tacit.rng import digest
from tacit.split.by_time import later
from tacit.split.by_user import strangers
from tacit.split.leave_one_out import any_of_each, last_of_each
from tacit.split.per_user import share_of_each
from tacit.split.rating_folds import fold_of_each, random_share

Task: TypeAlias = Literal["ratings", "ranking", "none"]
Mask: TypeAlias = NDArray[np.bool_]

_FOLDS = 5
_TRAINING_SHARE = 0.8
_STRANGERS = 0.2
_PER_USER = 0.2


@dataclass(frozen=True)
class Split:
    """A log in parts, each in order of user, then item.

    ``train`` is all that may be learned from and ``test`` what is asked for. ``support`` is what test
    people show before they are asked (``by-user`` only); nobody trains on it. ``kind`` is the task the
    protocol is made for. ``users`` and ``items`` are the sizes of the whole data set. ``dropped`` counts
    rows in no part, and ``notes`` says why.

    Example:
        >>> from tacit.data.load import load
        >>> parts = split(load("demo:users=40,items=50,mean=10"), "leave-one-out", seed=1)
        >>> parts.kind, len(parts.test), len(parts.test_users)
        ('ranking', 40, 40)
    """

    name: str
    kind: Task
    train: Interactions
    test: Interactions
    users: int
    items: int
    support: Interactions | None = None
    dropped: int = 0
    notes: tuple[str, ...] = ()

    @property
    def train_users(self) -> Ints:
        """The users with something to learn from, rising."""
        return _present(self.train, self.users)

    @property
    def test_users(self) -> Ints:
        """The users who are asked for something, rising."""
        return _present(self.test, self.users)


def _present(log: Interactions, users: int) -> Ints:
    there = np.zeros(users, dtype=np.bool_)
    there[log.users] = True
    return np.flatnonzero(there).astype(np.int32)


@dataclass(frozen=True)
class _Cut:
    """Masks over the rows; what none of them marks is for training."""

    test: Mask
    support: Mask | None = None
    dropped: Mask | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Whole:
    """What is to be cut: the log in order, how many users there are, and the draws."""

    log: Interactions
    users: int
    draw: np.random.Generator


@dataclass(frozen=True)
class _Protocol:
    """A way to cut, for the test part (``cut``) and again for validation with another share (``again``)."""

    kind: Task
    cut: Callable[[_Whole, int], _Cut]
    again: Callable[[_Whole, float], _Cut]
    needs_times: bool = False


def _nothing(whole: _Whole) -> _Cut:
    told = "everything trains and nothing is held out: this run measures no accuracy"
    return _Cut(np.zeros(len(whole.log), dtype=np.bool_), notes=(told,))


def _fold(whole: _Whole, number: int) -> _Cut:
    return _Cut(fold_of_each(whole.log, _FOLDS, whole.draw) == number - 1)


def _any_one(whole: _Whole) -> _Cut:
    return _Cut(any_of_each(whole.log, whole.users, whole.draw))


def _last_one(whole: _Whole) -> _Cut:
    test, ties = last_of_each(whole.log, whole.users, whole.draw)
    told = f"{ties} users have several interactions at their latest time; one of them was drawn"
    return _Cut(test, notes=(told,) if ties else ())


def _time(whole: _Whole, share: float) -> _Cut:
    found = later(whole.log, share)
    if found is None:
        raise TacitError("all interactions carry the same time", "use another split, such as leave-one-out")
    test, dropped = found
    count = int(dropped.sum())
    told = f"{count} later interactions of users or items unknown before the cut were left out"
    return _Cut(test, dropped=dropped, notes=(told,) if count else ())


def _people(whole: _Whole, share: float) -> _Cut:
    halves = strangers(whole.log, whole.users, share, whole.draw)
    return _Cut(halves.query, support=halves.support)


def _each(whole: _Whole, share: float) -> _Cut:
    counts = np.bincount(whole.log.users, minlength=whole.users)
    wanted = np.minimum(np.floor(share * counts + 0.5).astype(np.int64), np.maximum(counts - 1, 0))
    return _Cut(share_of_each(whole.log, wanted, whole.draw))


_PROTOCOLS: Mapping[str, _Protocol] = {
    "ratings-5fold": _Protocol(
        "ratings", _fold, lambda whole, share: _Cut(random_share(whole.log, share, whole.draw))
    ),
    "leave-one-out": _Protocol("ranking", lambda whole, _: _any_one(whole), lambda whole, _: _any_one(whole)),
    "leave-last-out": _Protocol(
        "ranking", lambda whole, _: _last_one(whole), lambda whole, _: _last_one(whole), needs_times=True
    ),
    "by-time": _Protocol(
        "ranking",
        lambda whole, _: _time(whole, _TRAINING_SHARE),
        lambda whole, share: _time(whole, 1.0 - share),
        needs_times=True,
    ),
    "by-user": _Protocol("ranking", lambda whole, _: _people(whole, _STRANGERS), _people),
    "per-user-8020": _Protocol("ranking", lambda whole, _: _each(whole, _PER_USER), _each),
    "all": _Protocol("none", lambda whole, _: _nothing(whole), _each),
}

NAMES = tuple(name for name, protocol in _PROTOCOLS.items() if protocol.kind != "none")  # they hold out


def _named(name: str) -> tuple[_Protocol, str, int]:
    base, colon, fold = name.partition(":")
    protocol = _PROTOCOLS.get(base)
    if protocol is None:
        raise TacitError(f"no split is called {name!r}", nearest(base, _PROTOCOLS))
    if not colon:
        return protocol, base, 1
    if base != "ratings-5fold":
        raise TacitError(f"{base} takes nothing after a colon", f"write {base}")
    if fold not in {"1", "2", "3", "4", "5"}:
        raise TacitError(f"ratings-5fold has no fold {fold!r}", "write ratings-5fold:1 to ratings-5fold:5")
    return protocol, base, int(fold)


def split(dataset: Dataset, name: str, *, seed: int) -> Split:
    """Cut a data set's log by a named protocol; the same seed always cuts the same way.

    - ``ratings-5fold`` or ``ratings-5fold:k``: a random fifth of all ratings (the five ``k`` of one seed
      are disjoint and make up the log).
    - ``leave-one-out``, ``leave-last-out``: one interaction per user, any or the latest.
    - ``by-time``: one cut through the common time line after 80 %; later rows of users or items that
      the training period does not know are left out and counted.
    - ``by-user``: 80 % of the users train; the others' interactions are halved into support and test.
    - ``per-user-8020``: a random fifth of each user's interactions, to the nearest whole.
    - ``all``: everything trains and nothing is held out, for a model that will be used.

    Users with one interaction only train, in every per-user protocol. The result depends on the set of
    interactions, not on their order.

    Example:
        >>> from tacit.data.load import load
        >>> data = load("demo:users=40,items=50,mean=10")
        >>> parts = split(data, "ratings-5fold:2", seed=1)
        >>> len(parts.train) + len(parts.test) == len(data.interactions)
        True
    """
    protocol, base, fold = _named(name)
    if protocol.needs_times and dataset.interactions.times is None:
        raise TacitError(
            f"{base} needs times, which {dataset.name} does not have",
            "use leave-one-out, or give data with a timestamp column",
        )
    whole = _Whole(
        ordered(dataset.interactions), dataset.users, np.random.default_rng(digest(seed, "split", base))
    )
    cut = protocol.cut(whole, fold)
    full_name = f"{base}:{fold}" if base == "ratings-5fold" else base
    return _assembled(full_name, protocol.kind, whole, cut, dataset.items)


def validation_part(parts: Split, seed: int, share: float = 0.1) -> Split:
    """Cut the training part once more by the same protocol, to choose settings on.

    The original test part cannot be reached from the result. ``share`` is the part of the ratings, of the
    time line, of the users or of each user's rows; the leave-out protocols hold out one per user again.

    Example:
        >>> from tacit.data.load import load
        >>> parts = split(load("demo:users=40,items=50,mean=10"), "per-user-8020", seed=1)
        >>> tuning = validation_part(parts, seed=1, share=0.2)
        >>> len(tuning.train) + len(tuning.test) == len(parts.train)
        True
    """
    if not 0.0 < share < 1.0:
        raise TacitError(f"a validation share of {share:g} leaves one part empty", "use a share such as 0.1")
    protocol, _, _ = _named(parts.name.partition("/")[0])
    draw = np.random.default_rng(digest(seed, "validation", parts.name))
    whole = _Whole(parts.train, parts.users, draw)
    cut = protocol.again(whole, share)
    return _assembled(f"{parts.name}/validation", protocol.kind, whole, cut, parts.items)


def _assembled(name: str, kind: Task, whole: _Whole, cut: _Cut, items: int) -> Split:
    held = cut.test.copy()
    for other in (cut.support, cut.dropped):
        if other is not None:
            held |= other
    made = Split(
        name=name,
        kind=kind,
        train=whole.log.take(~held) if held.any() else whole.log,  # a long log is not copied for nothing
        test=whole.log.take(cut.test),
        users=whole.users,
        items=items,
        support=None if cut.support is None else whole.log.take(cut.support),
        notes=cut.notes,
    )
    for part, log in (("training", made.train), ("test", made.test)):
        if not len(log) and not (kind == "none" and part == "test"):
            raise TacitError(
                f"{name} leaves the {part} part of {len(whole.log)} interactions empty",
                "use another split or more data",
            )
    dropped = 0 if cut.dropped is None else int(cut.dropped.sum())
    return replace(made, dropped=dropped)
