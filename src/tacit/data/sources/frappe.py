"""Frappe: which apps 957 people used how often, and in what situation."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.archive import Files, Wanted, find, places
from tacit.data.columns import Field, Progress, Table, read_columns
from tacit.data.interactions import Dataset, Features, Ints
from tacit.data.published import Published
from tacit.data.source import Log, Request, Source, assembled, codes, located
from tacit.data.spec import Option
from tacit.errors import TacitError

CITATION = (
    "Linas Baltrunas, Karen Church, Alexandros Karatzoglou and Nuria Oliver. 2015. Frappe: Understanding the "
    "Usage and Perception of Mobile App Recommendations In-The-Wild. arXiv:1505.03014."
)
CONTEXTS = ("daytime", "weekday", "isweekend", "homework", "cost", "weather", "country", "city")
_COSTS = ("free", "paid")
_COLUMNS = ("user", "item", "cnt", *CONTEXTS)
_META = (
    "item", "package", "category", "downloads", "developer", "icon", "language", "description", "name",
    "price", "rating", "short desc",
)  # fmt: skip
_WANTED = Wanted(("frappe.zip", "Mobile_Frappe.zip"), ("frappe",), ("frappe.csv", "meta.csv"))


@dataclass(frozen=True)
class Contexts:
    """The log row by row, not summed over situations: positions of user and item, count, context codes.

    ``codes[name]`` gives each row's code; ``labels[name]`` says what the codes mean.
    """

    users: Ints
    items: Ints
    counts: NDArray[np.int64]
    codes: Mapping[str, Ints]
    labels: Mapping[str, tuple[str, ...]]


def contexts(dataset: Dataset, data_dir: Path | None = None) -> Contexts:
    """The 96,203 rows behind a loaded ``frappe``, each with its situation.

    Example:
        >>> from tacit.data.load import load
        >>> contexts(load("frappe")).labels["isweekend"]  # doctest: +SKIP
        ('weekend', 'workday')
    """
    found = (find(_WANTED, folder) for folder in places(data_dir) if folder.is_dir())
    files = next((files for files in found if files is not None), None)
    if files is None:
        raise TacitError("frappe was not found", "put frappe.zip into the folder given with --data-dir")
    rows = _rows(files, None)
    coded = {name: np.unique(rows.contexts[name], return_inverse=True) for name in CONTEXTS}
    return Contexts(
        located(rows.users, dataset.user_ids.values),
        located(rows.items, dataset.item_ids.values),
        rows.counts,
        {name: inverse.astype(np.int32) for name, (_, inverse) in coded.items()},
        {name: tuple(map(str, labels.tolist())) for name, (labels, _) in coded.items()},
    )


@dataclass(frozen=True)
class _Rows:
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    counts: NDArray[np.int64]
    contexts: Mapping[str, NDArray[np.str_] | NDArray[np.int64]]


def _rows(files: Files, progress: Progress | None) -> _Rows:
    where = files.where("frappe.csv")
    line, _, body = files.read("frappe.csv").partition(b"\n")
    if tuple(line.strip().decode("utf-8", "replace").split("\t")) != _COLUMNS:
        raise TacitError(
            f"{where}, line 1: expected the columns {' '.join(_COLUMNS)}", "get the data set again"
        )
    fields = [Field(at, name, "whole" if at < 3 else "id") for at, name in enumerate(_COLUMNS)]
    users, items, counts, *rest = read_columns(Table(where, body, b"\t", len(_COLUMNS), 2), fields, progress)
    return _Rows(users, items, counts, dict(zip(CONTEXTS, rest, strict=True)))


def _read(request: Request) -> Dataset:
    rows = _rows(request.files, request.progress)
    pairs, inverse = np.unique(rows.users << 32 | rows.items, return_inverse=True)
    totals = np.bincount(inverse, weights=rows.counts.astype(np.float64))
    meta = _meta(request.files)
    return assembled(
        "frappe",
        Log(pairs >> 32, pairs & 0xFFFFFFFF, totals.astype(np.float64)),
        scale=None,
        item_features=lambda ids: _item_features(ids, rows, meta),
        citation=CITATION,
        notes=(
            "values are counts summed over situations; sources.frappe.contexts gives the rows behind them",
        ),
    )


def _meta(files: Files) -> dict[int, list[str]]:
    """The app's description by id. Quotes in it are part of long texts nobody needs here: tabs decide."""
    lines = files.text("meta.csv", "utf-8").split("\n")
    where = files.where("meta.csv")
    if tuple(lines[0].strip("\r").split("\t")) != _META:
        raise TacitError(
            f"{where}, line 1: expected the columns {', '.join(_META)}", "get the data set again"
        )
    known = {}
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            fields = line.rstrip("\r").split("\t")
            if len(fields) != len(_META) or not fields[0].isdigit():
                raise TacitError(
                    f"{where}, line {number}: expected an id and {len(_META) - 1} fields",
                    "get the data set again",
                )
            known[int(fields[0])] = fields
    return known


def _item_features(ids: NDArray[np.int64], rows: _Rows, meta: Mapping[int, list[str]]) -> Features:
    """What is public about an app: whether it costs (all of its rows agree), and its store entry."""
    cost = np.full(len(ids), -1, dtype=np.int32)
    cost[located(rows.items, ids)] = codes(rows.contexts["cost"].astype(np.str_), _COSTS)
    blank = [""] * len(_META)
    store = {
        name: np.array([meta.get(app, blank)[at] for app in ids.tolist()]) for at, name in enumerate(_META)
    }
    sorts = {
        name: tuple(sorted(set(store[name].tolist()) - {"unknown", ""})) for name in ("category", "language")
    }
    return Features(
        categories={
            "cost": cost,
            **{name: codes(store[name], labels) for name, labels in sorts.items()},
        },
        numbers={"rating": np.array([_number(text) for text in store["rating"]], dtype=np.float32)},
        texts={"title": store["name"], "package": store["package"]},
        labels={"cost": _COSTS, **sorts},
        from_log=("count",),
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _published(settings: Mapping[str, str]) -> Published:
    del settings
    return Published(957, 4082, 18_842, 7417781226588836886)


SOURCES = (
    Source(
        name="frappe",
        line="Frappe: 957 people, 4,082 apps, 18,842 pairs with usage counts, situations, store entries",
        read=_read,
        wanted=_WANTED,
        options=(Option("check", "yes", "refuse a copy that differs from the published one", ("yes", "no")),),
        published=_published,
        home="https://www.baltrunas.info/context-aware/frappe",
        citation=CITATION,
        terms="research use; acknowledge; do not pass on, deanonymise or use commercially",
    ),
)
