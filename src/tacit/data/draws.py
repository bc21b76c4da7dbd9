"""The inner loop of the synthetic log: what each person picks, how they like it, and when.

Compiled, and keyed by person: a person's rows are the same in whatever group they are drawn.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.data.interactions import Floats, Interactions, Times
from tacit.rng import Keyed
from tacit.types import Long

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_PATIENCE = (
    60  # tries per wanted item before the rest is taken in order: a person who wants half of everything
)
_SESSION = 0.08  # chance that a rating opens a new session
_DAY = 86_400.0


@dataclass(frozen=True)
class Shelf:
    """The items: their factors and quality, and an alias table over their popularity."""

    factors: Floats
    quality: Floats
    keep: Floats
    alias: NDArray[np.int32]


@dataclass(frozen=True)
class Crowd:
    """Some people: their keys, how many items each wants, tastes, moods, and when each begins."""

    keys: Keyed
    offsets: Long
    tastes: Floats
    moods: Floats
    begins: Times


@dataclass(frozen=True)
class Law:
    """How a taste turns into picks and ratings."""

    pull: float = 3.2
    centre: float = 2.97
    strength: float = 0.8
    noise: float = 0.75


def alias_table(weights: NDArray[np.floating]) -> tuple[Floats, NDArray[np.int32]]:
    """Walker's table: draw a slot evenly, stay with chance ``keep[slot]``, else go to ``alias[slot]``.

    Example:
        >>> keep, alias = alias_table(np.array([3.0, 1.0]))
        >>> keep.tolist(), alias.tolist()
        ([1.0, 0.5], [0, 0])
    """
    scaled = weights * (len(weights) / weights.sum())
    keep, alias = _alias(scaled)
    return keep.astype(np.float32), alias


@njit(cache=True)
def _alias(scaled):  # noqa: ANN001, ANN202 - compiled
    slots = len(scaled)
    keep, alias = np.ones(slots), np.arange(slots).astype(np.int32)
    small, large = np.empty(slots, np.int32), np.empty(slots, np.int32)
    few = many = 0
    for slot in range(slots):
        if scaled[slot] < 1.0:
            small[few] = slot
            few += 1
        else:
            large[many] = slot
            many += 1
    while few and many:
        few -= 1
        low, high = small[few], large[many - 1]
        keep[low], alias[low] = scaled[low], high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            many -= 1
            small[few] = high
            few += 1
    return keep, alias


@njit(inline="always")
def _word(state):  # noqa: ANN001, ANN202 - compiled
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))


@njit(inline="always")
def _even(word):  # noqa: ANN001, ANN202 - compiled
    return float(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def _bell(word):  # noqa: ANN001, ANN202 - compiled
    part = np.uint64(0xFFFF)
    total = (
        float(word & part)
        + float((word >> np.uint64(16)) & part)
        + float((word >> np.uint64(32)) & part)
        + float(word >> np.uint64(48))
    )
    return (total / 65536.0 - 2.0) * 1.7320508


@njit(nogil=True, cache=True)
def _fill(  # noqa: ANN202 - compiled
    keys, offsets, tastes, moods, begins, factors, quality, keep, alias, pull, centre, strength, noise,  # noqa: ANN001
    items, values, times, start,  # noqa: ANN001
):  # fmt: skip
    shelf, dim = factors.shape
    taken = np.full(shelf, -1, np.int32)
    longest = 0
    for person in range(len(keys)):
        longest = max(longest, offsets[person + 1] - offsets[person])
    rows, clock = np.empty(longest, np.int64), np.empty(longest, np.int64)
    with_times = len(times) > 0
    for person in range(len(keys)):
        state = keys[person]
        wanted = offsets[person + 1] - offsets[person]
        now = float(begins[person])
        got, tries, limit = 0, 0, wanted * _PATIENCE
        while got < wanted:
            state += _GOLDEN
            word = _word(state)
            slot = np.int64((word >> np.uint64(32)) * np.uint64(shelf) >> np.uint64(32))
            if tries < limit:
                if float(word & np.uint64(0xFFFFFFFF)) * (1.0 / 4294967296.0) >= keep[slot]:
                    slot = np.int64(alias[slot])
            else:
                while taken[slot] == person:
                    slot = slot + 1 if slot + 1 < shelf else 0
            tries += 1
            if taken[slot] == person:
                continue
            liking = 0.0
            for axis in range(dim):
                liking += tastes[person, axis] * factors[slot, axis]
            state += _GOLDEN
            word = _word(state)
            if tries <= limit and _even(word) * (1.0 + np.exp(-pull * liking)) >= 1.0:
                continue
            taken[slot] = person
            state += _GOLDEN
            felt = centre + moods[person] + quality[slot] + strength * liking + noise * _bell(_word(state))
            stars = min(max(int(np.floor(felt + 0.5)), 1), 5)
            rows[got] = (np.int64(slot) << 32) | (got << 4) | stars
            if with_times:
                state += _GOLDEN
                word = _word(state)
                if got > 0:
                    now += 15.0 + 120.0 * _even(_word(word))
                    if _even(word) < _SESSION:
                        now += -np.log(1.0 - _even(_word(word ^ _FIRST))) * 20.0 * _DAY
                clock[got] = np.int64(now)
            got += 1
        rows[:wanted].sort()
        at = start + offsets[person]
        for row in range(wanted):
            items[at + row] = rows[row] >> 32
            values[at + row] = rows[row] & 15
            if with_times:
                times[at + row] = clock[(rows[row] & 0xFFFFFFFF) >> 4]


def fill(crowd: Crowd, shelf: Shelf, law: Law, log: Interactions, start: int) -> None:
    """Write the crowd's rows into ``log`` from row ``start`` on, items in rising order within a person."""
    times = np.empty(0, dtype=np.int64) if log.times is None else log.times
    _fill(
        crowd.keys, crowd.offsets, crowd.tastes, crowd.moods, crowd.begins,
        shelf.factors, shelf.quality, shelf.keep, shelf.alias,
        law.pull, law.centre, law.strength, law.noise,
        log.items, log.values, times, start,
    )  # fmt: skip
