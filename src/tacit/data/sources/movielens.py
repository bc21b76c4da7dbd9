"""MovieLens: 100K, 1M, 10M, 20M and latest-small, in the layouts of GroupLens' archives."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.archive import Wanted
from tacit.data.columns import Field, Table, read_columns
from tacit.data.interactions import Dataset, Features, Scale
from tacit.data.published import Published
from tacit.data.source import Download, Log, Request, Source, assembled, codes, located
from tacit.data.spec import Option
from tacit.errors import TacitError

CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5(4), 19."
)
TERMS = "research use; acknowledge GroupLens; do not pass on or use commercially without their permission"
AGES = ("under 18", "18-24", "25-34", "35-44", "45-49", "50-55", "56+")
_AGE_STARTS = np.array([18, 25, 35, 45, 50, 56])
_OCCUPATIONS = (
    "other", "academic/educator", "artist", "clerical/admin", "college/grad student", "customer service",
    "doctor/health care", "executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer",
    "programmer", "retired", "sales/marketing", "scientist", "self-employed", "technician/engineer",
    "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip
_RATING = (
    Field(0, "user", "whole"),
    Field(1, "item", "whole"),
    Field(2, "rating", "number"),
    Field(3, "timestamp", "whole"),
)
_CHECK = Option("check", "yes", "refuse a copy that differs from the published one", ("yes", "no"))
_CATALOGUE = Option(
    "catalogue",
    "rated",
    "items to know of: those rated, those listed in the item file, or every id up to the last",
    ("rated", "listed", "ids"),
)
_YEAR = re.compile(r"\((\d{4})\)\s*$")


def _log(request: Request, file: str, delimiter: bytes, *, header: str = "") -> Log:
    raw, first = request.files.read(file), 1
    where = request.files.where(file)
    if header:
        line, _, raw = raw.partition(b"\n")
        first = 2
        if line.strip().decode("latin-1") != header:
            raise TacitError(f"{where}, line 1: expected the header {header}", "get the data set again")
    users, items, ratings, times = read_columns(
        Table(where, raw, delimiter, 4, first), _RATING, request.progress
    )
    return Log(users, items, ratings.astype(np.float64), times.astype(np.int64))


def _rows(text: str, delimiter: str, fields: int, where: str) -> list[list[str]]:
    lines = (line.rstrip("\r") for line in text.split("\n"))
    rows = [line.split(delimiter) for line in lines if line]
    return _checked(rows, fields, where)


def _checked(rows: list[list[str]], fields: int, where: str) -> list[list[str]]:
    """Rows of the right width that begin with an id."""
    for number, row in enumerate(rows, start=1):
        if len(row) != fields:
            raise TacitError(
                f"{where}, row {number}: expected {fields} fields, found {len(row)}", "get the data set again"
            )
        if not (row[0].isascii() and row[0].isdigit()):
            raise TacitError(
                f"{where}, row {number}: expected an id, found {row[0]!r}", "get the data set again"
            )
    return rows


@dataclass(frozen=True)
class _Films:
    """The item file: what is known of each id, ids rising, to be looked up for any catalogue."""

    ids: NDArray[np.int64]
    titles: NDArray[np.str_]
    years: NDArray[np.float32]
    genres: NDArray[np.uint8]
    labels: tuple[str, ...]

    def features(self, ids: NDArray[np.int64]) -> Features:
        """Titles, years (``nan``: unknown) and genre flags of these ids; blank for ids not in the file."""
        rows = located(ids, self.ids)
        there = rows >= 0
        return Features(
            flags={"genres": np.where(there[:, None], self.genres[rows], np.uint8(0))},
            numbers={"year": np.where(there, self.years[rows], np.float32(np.nan))},
            texts={"title": np.where(there, self.titles[rows], "")},
            labels={"genres": self.labels},
        )


def _films(ids: list[str], titles: list[str], years: list[float], genres: list[set[str]]) -> _Films:
    numbers = np.array(ids, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    labels = tuple(sorted(set[str]().union(*genres)))
    flags = np.array([[label in own for label in labels] for own in genres], dtype=np.uint8)
    return _Films(
        numbers[order],
        np.array(titles, dtype=np.str_)[order],
        np.array(years, dtype=np.float32)[order],
        flags.reshape(len(ids), len(labels))[order],
        labels,
    )


def _year(title: str) -> float:
    found = _YEAR.search(title)
    return float(found[1]) if found else float("nan")


def _listed_films(rows: list[list[str]]) -> _Films:
    """Films of the layouts with id, title and genres joined by ``|``."""
    genres = [set(row[2].split("|")) - {"(no genres listed)", ""} for row in rows]
    titles = [row[1] for row in rows]
    return _films([row[0] for row in rows], titles, [_year(title) for title in titles], genres)


def _catalogue(films: _Films, log: Log, choice: str) -> NDArray[np.int64] | None:
    if choice == "rated":
        return None
    if choice == "listed":
        return films.ids
    return np.arange(1, max(int(films.ids[-1]), int(log.items.max())) + 1)


@dataclass(frozen=True)
class _People:
    """The user file: what is known of each id, ids rising."""

    ids: NDArray[np.int64]
    codes: Mapping[str, NDArray[np.int32]]
    labels: Mapping[str, tuple[str, ...]]
    zips: NDArray[np.str_]
    years: NDArray[np.float32] | None

    def features(self, ids: NDArray[np.int64]) -> Features:
        """Age group, gender, occupation and zip of these ids, and age in years where it was published."""
        rows = located(ids, self.ids)
        there = rows >= 0
        unknown = np.float32(np.nan)
        return Features(
            categories={
                name: np.where(there, column[rows], -1).astype(np.int32)
                for name, column in self.codes.items()
            },
            numbers={} if self.years is None else {"age": np.where(there, self.years[rows], unknown)},
            texts={"zip": np.where(there, self.zips[rows], "")},
            labels=self.labels,
        )


@dataclass(frozen=True)
class _UserFile:
    """Which field of the user file holds what, and how occupations are written and called."""

    age: int
    gender: int
    written: tuple[str, ...]
    called: tuple[str, ...]
    ages_are_years: bool


def _people(rows: list[list[str]], layout: _UserFile, where: str) -> _People:
    for number, row in enumerate(rows, start=1):
        if not row[layout.age].isdigit():
            raise TacitError(
                f"{where}, row {number}: expected an age, found {row[layout.age]!r}", "get the data set again"
            )
    rows = sorted(rows, key=lambda row: int(row[0]))
    ages = np.array([int(row[layout.age]) for row in rows], dtype=np.float32)
    return _People(
        np.array([int(row[0]) for row in rows], dtype=np.int64),
        {
            "age": np.searchsorted(_AGE_STARTS, ages, side="right").astype(np.int32),
            "gender": codes(np.array([row[layout.gender] for row in rows]), ("F", "M")),
            "occupation": codes(np.array([row[3] for row in rows]), layout.written),
        },
        {"age": AGES, "gender": ("F", "M"), "occupation": layout.called},
        np.array([row[4] for row in rows]),
        ages if layout.ages_are_years else None,
    )


def _dataset(
    request: Request,
    name: str,
    log: Log,
    films: _Films,
    scale: Scale,
    people: _People | None = None,
) -> Dataset:
    outside = np.flatnonzero((log.values < scale.low) | (log.values > scale.high))
    if len(outside):
        raise TacitError(
            f"{name}: rating {log.values[outside[0]]:g} in row {outside[0] + 1} lies outside "
            f"{scale.low:g} to {scale.high:g}",
            "get the data set again",
        )
    return assembled(
        name,
        log,
        scale=scale,
        catalogue=_catalogue(films, log, request.settings["catalogue"]),
        user_features=people.features if people else None,
        item_features=films.features,
        citation=CITATION,
    )


def _read_100k(request: Request) -> Dataset:
    """Tab-separated ratings; Latin-1 films with one column per genre; people with their age in years."""
    files = request.files
    log = _log(request, "u.data", b"\t")
    genre_rows = [line.split("|") for line in files.text("u.genre", "latin-1").splitlines() if "|" in line]
    names = [row[0] for row in genre_rows]
    rows = _rows(files.text("u.item", "latin-1"), "|", 5 + len(names), files.where("u.item"))
    films = _films(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [float(row[2][-4:]) if row[2][-4:].isdigit() else _year(row[1]) for row in rows],
        [
            {name for name, flag in zip(names, row[5:], strict=True) if flag == "1"} - {"unknown"}
            for row in rows
        ],
    )
    people = _rows(files.text("u.user", "latin-1"), "|", 5, files.where("u.user"))
    jobs = tuple(sorted({row[3] for row in people}))
    known = _people(people, _UserFile(1, 2, jobs, jobs, ages_are_years=True), files.where("u.user"))
    return _dataset(request, "ml-100k", log, films, Scale(1, 5, 1), known)


def _read_1m(request: Request) -> Dataset:
    """``::`` between fields, Latin-1 titles, people with codes for age and occupation."""
    files = request.files
    log = _log(request, "ratings.dat", b"::")
    films = _listed_films(_rows(files.text("movies.dat", "latin-1"), "::", 3, files.where("movies.dat")))
    people = _rows(files.text("users.dat", "latin-1"), "::", 5, files.where("users.dat"))
    numbers = tuple(str(code) for code in range(len(_OCCUPATIONS)))
    layout = _UserFile(2, 1, numbers, _OCCUPATIONS, ages_are_years=False)
    known = _people(people, layout, files.where("users.dat"))
    return _dataset(request, "ml-1m", log, films, Scale(1, 5, 1), known)


def _read_10m(request: Request) -> Dataset:
    """``::`` between fields, half-star ratings, UTF-8 titles, nothing about people."""
    files = request.files
    log = _log(request, "ratings.dat", b"::")
    films = _listed_films(_rows(files.text("movies.dat", "utf-8"), "::", 3, files.where("movies.dat")))
    return _dataset(request, "ml-10m", log, films, Scale(0.5, 5, 0.5))


def _read_csv(name: str) -> Callable[[Request], Dataset]:
    """The layout of 20M and the later sets: comma separated, header, UTF-8, quoted titles."""

    def read(request: Request) -> Dataset:
        files = request.files
        log = _log(request, "ratings.csv", b",", header="userId,movieId,rating,timestamp")
        rows = list(csv.reader(io.StringIO(files.text("movies.csv", "utf-8"), newline="")))[1:]
        films = _listed_films(_checked([row for row in rows if row], 3, files.where("movies.csv")))
        return _dataset(request, name, log, films, Scale(0.5, 5, 0.5))

    return read


def _source(
    name: str,
    line: str,
    read: Callable[[Request], Dataset],
    folder: str,
    files: tuple[str, ...],
    published: Published,
    md5: str | None,
    inner: Mapping[str, str],
) -> Source:
    return Source(
        name=name,
        line=line,
        read=read,
        wanted=Wanted((f"{name}.zip", f"{folder}.zip"), (folder, name), files),
        options=(_CATALOGUE, _CHECK),
        published=lambda _: published,
        download=Download(
            f"https://files.grouplens.org/datasets/movielens/{name}.zip", f"{name}.zip", md5, inner
        ),
        home="https://grouplens.org/datasets/movielens/",
        citation=CITATION,
        terms=TERMS,
    )


SOURCES = (
    _source(
        "ml-100k",
        "MovieLens 100K: 943 people, 1,682 films, 100,000 ratings of 1 to 5",
        _read_100k,
        "ml-100k",
        ("u.data", "u.item", "u.user", "u.genre"),
        Published(
            943, 1682, 100_000, 17638495204730393572, {1: 6110, 2: 11370, 3: 27145, 4: 34174, 5: 21201}
        ),
        "0e33842e24a9c977be4e0107933c0723",
        {},
    ),
    _source(
        "ml-1m",
        "MovieLens 1M: 6,040 people, 3,706 films, 1,000,209 ratings of 1 to 5",
        _read_1m,
        "ml-1m",
        ("ratings.dat", "movies.dat", "users.dat"),
        Published(
            6040, 3706, 1_000_209, 4062552013076371607, {1: 56174, 2: 107557, 3: 261197, 4: 348971, 5: 226310}
        ),
        "c4d9eecfca2ab87c1945afe126590906",
        {},
    ),
    _source(
        "ml-10m",
        "MovieLens 10M: 69,878 people, 10,677 films, 10,000,054 ratings in half stars",
        _read_10m,
        "ml-10M100K",
        ("ratings.dat", "movies.dat"),
        Published(69_878, 10_677, 10_000_054),
        "ce571fd55effeba0271552578f2648bd",
        {},
    ),
    _source(
        "ml-20m",
        "MovieLens 20M: 138,493 people, 26,744 films, 20,000,263 ratings in half stars",
        _read_csv("ml-20m"),
        "ml-20m",
        ("ratings.csv", "movies.csv"),
        Published(138_493, 26_744, 20_000_263),
        "cd245b17a1ae2cc31bb14903e1204af3",
        {},
    ),
    _source(
        "ml-latest-small",
        "MovieLens latest-small: 610 people, 9,724 films, 100,836 ratings in half stars",
        _read_csv("ml-latest-small"),
        "ml-latest-small",
        ("ratings.csv", "movies.csv"),
        Published(610, 9724, 100_836, 3893173684569134774),
        None,
        {"ratings.csv": "325a6f09399d1c45671f187505e1a100"},
    ),
)
