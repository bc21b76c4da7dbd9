"""``demo``: a made-up log of film ratings, of any size, the same for the same seed.

People have a taste of a few dimensions that leans on their age, gender and work, and a mood; films have
genres, from which most of their character comes, a quality, and a popularity with a long tail. People
pick mostly what is popular and what they like, a log-normal number of films each, and rate it 1 to 5.
So the log has what methods are compared by: biases, low rank, co-occurrence, genres that tell something.

Everything about a person depends on the seed and the person's number alone, so the first 1,000 people
rate the same in a log of 2,000. Nothing here is taken from real people.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Features, Floats, Interactions, Ints, Scale
from tacit.data.source import Request, Source
from tacit.data.spec import Option
from tacit.errors import TacitError
from tacit.rng import Keyed, SeededKeys, mixed

GENRES = (
    "Action", "Adventure", "Animation", "Comedy", "Crime", "Documentary", "Drama", "Family", "Fantasy",
    "Horror", "Romance", "Science Fiction",
)  # fmt: skip
AGES = ("under 18", "18-24", "25-34", "35-44", "45-49", "50-55", "56+")
GENDERS = ("F", "M")
OCCUPATIONS = (
    "artist",
    "clerk",
    "craftsman",
    "doctor",
    "engineer",
    "lawyer",
    "retired",
    "student",
    "teacher",
    "writer",
)
_FREQUENT = np.array([13, 8, 5, 17, 8, 5, 20, 5, 4, 6, 9, 7], dtype=np.float64)
_AGE_SHARES = np.array([4, 18, 34, 20, 9, 8, 7], dtype=np.float64)
_ADJECTIVES = (
    "Quiet", "Last", "Golden", "Hidden", "Northern", "Broken", "Distant", "Silver", "Restless", "Second",
    "Paper", "Burning", "Winter", "Honest", "Electric", "Lonely", "Crooked", "Velvet", "Early", "Hollow",
    "Borrowed", "Wild",
)  # fmt: skip
_NOUNS = (
    "River", "Harbour", "Letter", "Orchard", "Machine", "Promise", "Station", "Garden", "Island", "Witness",
    "Holiday", "Kingdom", "Mirror", "Bridge", "Summer", "Stranger", "Lantern", "Voyage", "Secret", "Market",
    "Horizon", "Waltz", "Detective",
)  # fmt: skip
_DIM = 5
_CROWD = 1 << 15
_MOST_WITH_TIMES = 10_000_000
_MOST_IDS = 2**31 - 1  # people and items are numbered in four bytes
_OPENING, _YEARS = 1_072_915_200, 3  # the log begins on 1 January 2004
_YEAR_SECONDS = 31_557_600


@dataclass(frozen=True)
class Shape:
    """Sizes and tails of a log; popularity of rank ``r`` falls as ``(r + lead * items) ** -fall``.

    A ``curve`` gives it instead as weights at some ranks (counted from 1), with straight lines between them
    in logarithms.
    """

    users: int
    items: int
    mean: float
    least: int
    spread: float
    lead: float = 0.0
    fall: float = 1.0
    curve: tuple[tuple[float, float], ...] = ()

    def weights(self, ranks: NDArray[np.integer]) -> NDArray[np.float64]:
        """How popular the film of each rank (counted from 0) is."""
        if not self.curve:
            return np.power(ranks + 1.0 + self.lead * self.items, -self.fall).astype(np.float64)
        places, heights = np.log(np.array(self.curve)).T
        return np.exp(np.interp(np.log(ranks + 1.0), places, heights))


# Fitted so that the films of 75,040 people with 60 ratings or more, and of 9,781 films with as many, are
# about as unequal as MovieLens 20M's: the first in 49 of 100 lists, 17.4 million in all, the last about
# 60 times.
_FILMS_20M = (
    (1, 1795.0), (10, 1068.0), (100, 802.5), (450, 314.4),
    (1500, 54.07), (3159, 7.92), (6686, 1.62), (9781, 1.0),
)  # fmt: skip

SHAPES = {
    "small": Shape(1000, 600, 61, 10, 0.9, 0.05, 1.5),
    "ml-1m": Shape(6040, 3706, 165.6, 20, 1.0, 0.03, 1.7),
    "ml-20m": Shape(75_040, 9781, 231.7, 60, 1.0, curve=_FILMS_20M),
}


def _uniforms(keys: Keyed, purpose: int) -> NDArray[np.float64]:
    salt = np.uint64((purpose + 1) * 0x9E3779B97F4A7C15 % 2**64)
    with np.errstate(over="ignore"):
        return (mixed(keys + salt) >> np.uint64(11)).astype(np.float64) / 2.0**53


def _normals(keys: Keyed, purpose: int) -> NDArray[np.float64]:
    radius = np.sqrt(-2.0 * np.log1p(-_uniforms(keys, 2 * purpose)))
    return radius * np.cos(2.0 * np.pi * _uniforms(keys, 2 * purpose + 1))


def _chosen(keys: Keyed, purpose: int, shares: NDArray[np.float64]) -> Ints:
    edges = np.cumsum(shares / shares.sum())[:-1]
    return np.searchsorted(edges, _uniforms(keys, purpose), side="right").astype(np.int32)


@dataclass(frozen=True)
class _Films:
    factors: Floats
    quality: Floats
    weights: NDArray[np.floating]
    features: Features


def _films(shape: Shape, seed: int) -> _Films:
    keys = SeededKeys(seed).users(np.arange(shape.items, dtype=np.int32), "demo film")
    directions = SeededKeys(seed).generator("demo genres").standard_normal((len(GENRES), _DIM))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    flags = np.zeros((shape.items, len(GENRES)), dtype=np.uint8)
    several = _uniforms(keys, 100)
    for nth, share in enumerate((1.0, 0.6, 0.2)):
        rows = np.flatnonzero(several < share)
        flags[rows, _chosen(keys[rows], 101 + nth, _FREQUENT)] = 1
    own = np.stack([_normals(keys, 110 + axis) for axis in range(_DIM)], axis=1)
    factors = flags @ directions
    factors /= np.linalg.norm(factors, axis=1, keepdims=True)
    factors = np.sqrt(0.6) * factors + np.sqrt(0.4 / _DIM) * own
    ranks = np.argsort(np.argsort(_uniforms(keys, 130)))
    quality = 0.38 * _normals(keys, 131) + 0.5 * (0.5 - ranks / shape.items)
    years = np.floor(2003.99 - 45.0 * _uniforms(keys, 140) ** 2.5)
    return _Films(
        np.ascontiguousarray(factors, dtype=np.float32),
        quality.astype(np.float32),
        shape.weights(ranks),
        Features(
            flags={"genres": flags},
            numbers={"year": years.astype(np.float32)},
            texts={"title": _titles(keys, years)},
            labels={"genres": GENRES},
        ),
    )


def _titles(keys: Keyed, years: NDArray[np.float64]) -> NDArray[np.str_]:
    first = np.array(_ADJECTIVES)[(_uniforms(keys, 150) * len(_ADJECTIVES)).astype(np.int64)]
    second = np.array(_NOUNS)[(_uniforms(keys, 151) * len(_NOUNS)).astype(np.int64)]
    pairs = zip(first.tolist(), second.tolist(), years.tolist(), strict=True)
    return np.array([f"The {adjective} {noun} ({year:.0f})" for adjective, noun, year in pairs])


@dataclass(frozen=True)
class _People:
    keys: Keyed
    ages: Ints
    genders: Ints
    jobs: Ints


def _people(first: int, last: int, seed: int) -> _People:
    keys = SeededKeys(seed).users(np.arange(first, last, dtype=np.int32), "demo person")
    even = np.ones(len(OCCUPATIONS))
    return _People(
        keys, _chosen(keys, 0, _AGE_SHARES), _chosen(keys, 1, np.array([0.4, 0.6])), _chosen(keys, 2, even)
    )


def _activity(keys: Keyed, shape: Shape) -> NDArray[np.int64]:
    """How many films each person rates: log-normal above the least, with the mean asked for."""
    beyond = np.exp(shape.spread * _normals(keys, 2) - shape.spread**2 / 2.0) * (shape.mean - shape.least)
    return np.minimum(shape.least + np.rint(beyond).astype(np.int64), shape.items // 2)


def _tastes(people: _People, seed: int) -> Floats:
    """A point in taste space: mostly one's own, a little that of one's age, gender and work."""
    draw = SeededKeys(seed).generator("demo groups")
    shifts = (0.4 * draw.standard_normal((len(AGES), _DIM)), 0.35 * draw.standard_normal((2, _DIM)))
    work = 0.15 * draw.standard_normal((len(OCCUPATIONS), _DIM))
    own = np.stack([_normals(people.keys, 10 + axis) for axis in range(_DIM)], axis=1)
    return (own + shifts[0][people.ages] + shifts[1][people.genders] + work[people.jobs]).astype(np.float32)


def _shape(settings: Mapping[str, str]) -> Shape:
    shape = SHAPES[settings["shape"]]
    given = {name: int(settings[name]) for name in ("users", "items", "mean") if settings[name]}
    for name, number in given.items():
        if number > _MOST_IDS:
            raise TacitError(f"demo: {name}={number} are too many", f"ask for at most {name}={_MOST_IDS}")
    shape = replace(shape, **given)
    if 2 * shape.mean > shape.items:
        raise TacitError(
            f"demo: {shape.mean:g} ratings per person are too many for {shape.items} items",
            f"ask for at most mean={shape.items // 2}, or for more items",
        )
    return replace(shape, least=min(shape.least, max(1, int(shape.mean) // 2)))


def _read(request: Request) -> Dataset:
    shape, seed = _shape(request.settings), int(request.settings["seed"])
    counts = np.concatenate(
        [
            _activity(_people(first, min(first + _CROWD, shape.users), seed).keys, shape)
            for first in range(0, shape.users, _CROWD)
        ]
    )
    total = int(counts.sum())
    timed = request.settings["times"] == "yes" or (
        request.settings["times"] == "auto" and total <= _MOST_WITH_TIMES
    )
    log = Interactions(
        np.repeat(np.arange(shape.users, dtype=np.int32), counts),
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=np.float32),
        np.empty(total, dtype=np.int64) if timed else None,
    )
    films = _films(shape, seed)
    user_features = _drawn(request, shape, seed, films, counts, log)
    return Dataset(
        name="demo" if request.settings["shape"] == "small" else f"demo-{request.settings['shape']}",
        interactions=log,
        user_ids=Ids(np.arange(1, shape.users + 1), "user"),
        item_ids=Ids(np.arange(1, shape.items + 1), "item"),
        scale=Scale(1, 5, 1),
        user_features=user_features,
        item_features=films.features,
        notes=(f"synthetic, seed {seed}: no real person's data", *(() if timed else ("without times",))),
    )


def _drawn(
    request: Request, shape: Shape, seed: int, films: _Films, counts: NDArray[np.int64], log: Interactions
) -> Features:
    """Fill the log, one crowd of people after the other, and tell who they are."""
    # The compiler costs half a second to load, which listing data sets should not pay.
    draws = importlib.import_module("tacit.data.draws")
    shelf = draws.Shelf(films.factors, films.quality, *draws.alias_table(films.weights))
    told: list[_People] = []
    start = 0
    for first in range(0, shape.users, _CROWD):
        people = _people(first, min(first + _CROWD, shape.users), seed)
        offsets = np.concatenate(([0], np.cumsum(counts[first : first + _CROWD])))
        crowd = draws.Crowd(
            people.keys,
            offsets,
            _tastes(people, seed),
            (0.45 * _normals(people.keys, 30)).astype(np.float32),
            _OPENING + (_uniforms(people.keys, 70) * _YEARS * _YEAR_SECONDS).astype(np.int64),
        )
        draws.fill(crowd, shelf, draws.Law(), log, start)
        start += int(offsets[-1])
        told.append(people)
        if request.progress is not None:
            request.progress(start, len(log))
    return Features(
        categories={
            "age": np.concatenate([people.ages for people in told]),
            "gender": np.concatenate([people.genders for people in told]),
            "occupation": np.concatenate([people.jobs for people in told]),
        },
        labels={"age": AGES, "gender": GENDERS, "occupation": OCCUPATIONS},
    )


SOURCES = (
    Source(
        name="demo",
        line="made-up film ratings with tastes, genres, times: 1,000 people, 600 films (or any size)",
        read=_read,
        options=(
            Option("users", "", "how many people", least=1),
            Option("items", "", "how many films", least=2),
            Option("mean", "", "ratings per person on average", least=1),
            Option("seed", "1", "another seed makes another world", least=0),
            Option("shape", "small", "sizes and tails like those of a known data set", tuple(SHAPES)),
            Option("times", "auto", "unix seconds; auto: up to ten million ratings", ("auto", "yes", "no")),
        ),
    ),
)
