"""HetRec 2011 Last.fm: how often 1,892 people listened to 17,632 artists, with the tags they gave."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tacit.data.archive import Files, Wanted, find, places
from tacit.data.columns import Field, Table, read_columns
from tacit.data.interactions import Dataset, Features, Scale
from tacit.data.published import Published
from tacit.data.source import Download, Log, Request, Source, assembled, located
from tacit.data.spec import Option
from tacit.data.tag_features import tag_features
from tacit.errors import TacitError

CITATION = (
    "Ivan Cantador, Peter Brusilovsky and Tsvi Kuflik. 2011. 2nd Workshop on Information Heterogeneity and "
    "Fusion in Recommender Systems (HetRec 2011). RecSys 2011. Data from Last.fm, http://www.lastfm.com."
)
_WANTED = Wanted(
    ("hetrec2011-lastfm-2k.zip", "lastfm-2k.zip"),
    ("hetrec2011-lastfm-2k", "lastfm-2k"),
    ("user_artists.dat", "artists.dat"),
)


def _body(raw: bytes, header: str, where: str) -> bytes:
    line, _, body = raw.partition(b"\n")
    if line.strip().decode("latin-1") != header.replace(" ", "\t"):
        raise TacitError(f"{where}, line 1: expected the columns {header}", "get the data set again")
    return body


def _read(request: Request) -> Dataset:
    files = request.files
    where = files.where("user_artists.dat")
    body = _body(files.read("user_artists.dat"), "userID artistID weight", where)
    fields = [Field(0, "userID", "whole"), Field(1, "artistID", "whole"), Field(2, "weight", "number")]
    users, items, counts = read_columns(Table(where, body, b"\t", 3, 2), fields, request.progress)
    names = _names(files.text("artists.dat", "utf-8"), files.where("artists.dat"))
    edges = _edges(request.settings["bins"])
    values = np.searchsorted(edges, counts, side="left") + 1.0 if edges else counts.astype(np.float64)
    components = int(request.settings["tags"])

    def features(ids: NDArray[np.int64]) -> Features:
        titles = np.array([names.get(artist, "") for artist in ids.tolist()], dtype=np.str_)
        if not components:
            return Features(texts={"name": titles})
        columns = tag_features(_tags(files, ids).counts, components)
        numbers = {f"tags/{place:02d}": columns[:, place] for place in range(components)}
        return Features(numbers=numbers, texts={"name": titles})

    return assembled(
        "lastfm-2k",
        Log(users, items, values),
        scale=Scale(1, len(edges) + 1, 1) if edges else None,
        item_features=features,
        citation=CITATION,
        notes=(f"ratings are bins of listening counts: above {edges}",)
        if edges
        else ("values are listening counts",),
    )


def _edges(text: str) -> list[int]:
    """The counts up to which each bin but the last goes."""
    if text == "none":
        return []
    parts = text.split("-")
    edges = [int(part) for part in parts if part.isascii() and part.isdigit()]
    if len(edges) != len(parts) or any(low >= high for low, high in itertools.pairwise(edges)):
        raise TacitError(f"lastfm-2k: bins={text} cannot be read", "write rising edges: bins=200-400-600-800")
    return edges


def _names(text: str, where: str) -> dict[int, str]:
    names = {}
    for number, line in enumerate(text.split("\n")[1:], start=2):
        if line.strip():
            fields = line.split("\t")
            if len(fields) != 4 or not fields[0].isdigit():
                raise TacitError(
                    f"{where}, line {number}: expected id, name, url and picture", "get it again"
                )
            names[int(fields[0])] = fields[1]
    return names


@dataclass(frozen=True)
class Tags:
    """How many people gave each item each tag: a row per item of the data set, a column per tag."""

    counts: sp.csr_array
    names: tuple[str, ...]


def tags(dataset: Dataset, data_dir: Path | None = None) -> Tags:
    """The tags of a loaded ``lastfm-2k``, read from the same files.

    Tags of artists nobody listened to are left out.

    Example:
        >>> from tacit.data.load import load
        >>> tags(load("lastfm-2k")).counts.shape  # doctest: +SKIP
        (17632, 11946)
    """
    wanted = Wanted(_WANTED.archives, _WANTED.folders, (*_WANTED.files, "tags.dat", "user_taggedartists.dat"))
    found = (find(wanted, folder) for folder in places(data_dir) if folder.is_dir())
    files = next((files for files in found if files is not None), None)
    if files is None:
        raise TacitError("the tag files of lastfm-2k were not found", "run: tacit data get lastfm-2k")
    return _tags(files, dataset.item_ids.values)


def _tags(files: Files, ids: NDArray[np.int64] | NDArray[np.str_]) -> Tags:
    listed = [
        line.rstrip("\r").split("\t")
        for line in files.text("tags.dat", "latin-1").split("\n")[1:]
        if line.strip()
    ]
    tag_ids = np.array([int(row[0]) for row in listed], dtype=np.int64)
    where = files.where("user_taggedartists.dat")
    body = _body(files.read("user_taggedartists.dat"), "userID artistID tagID day month year", where)
    fields = [Field(1, "artistID", "whole"), Field(2, "tagID", "whole")]
    artists, given = read_columns(Table(where, body, b"\t", 6, 2), fields)
    order = np.argsort(tag_ids)
    rows = located(artists, ids)
    columns = located(given, tag_ids[order])
    kept = (rows >= 0) & (columns >= 0)
    ones = np.ones(int(kept.sum()), dtype=np.int32)
    counts = sp.csr_array((ones, (rows[kept], columns[kept])), shape=(len(ids), len(listed)))
    counts.sum_duplicates()
    return Tags(counts, tuple(listed[at][1] for at in order))


def _published(settings: Mapping[str, str]) -> Published:
    exact = settings.get("bins", "none") == "none"
    return Published(1892, 17_632, 92_834, 4095503333263724517 if exact else None)


SOURCES = (
    Source(
        name="lastfm-2k",
        line="Last.fm (HetRec 2011): 1,892 people, 17,632 artists, 92,834 listening counts, tags",
        read=_read,
        wanted=_WANTED,
        options=(
            Option("bins", "none", "ratings instead of counts: the edges of bins, such as 200-400-600-800"),
            Option(
                "tags", "0", "how many numbers to make of each artist's tags (needs scikit-learn)", least=0
            ),
            Option("check", "yes", "refuse a copy that differs from the published one", ("yes", "no")),
        ),
        published=_published,
        download=Download(
            "https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
            "hetrec2011-lastfm-2k.zip",
            inner={
                "user_artists.dat": "85f04141f44f8ff69953bdbd62728bf5",
                "artists.dat": "83efeb9e14f896d408ddab658052ff52",
                "tags.dat": "42c3c2e41013d8f8ae7d275029698abe",
            },
        ),
        home="https://grouplens.org/datasets/hetrec-2011/",
        citation=CITATION,
        terms="non-commercial use; cite Last.fm and the HetRec 2011 workshop",
    ),
)
