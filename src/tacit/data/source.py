"""What a data set's file in ``sources/`` states: how to recognise, read, fetch and verify it."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.archive import Files, Wanted
from tacit.data.columns import Progress
from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Features, Interactions, Ints, Scale, ordered
from tacit.data.published import Published
from tacit.data.spec import Option


@dataclass(frozen=True)
class Request:
    """What a reader is given: the files, every option's value, and whom to tell how far it is.

    Example:
        >>> Request(Files(), {"seed": "1"}).settings["seed"]
        '1'
    """

    files: Files
    settings: Mapping[str, str]
    progress: Progress | None = None


@dataclass(frozen=True)
class Download:
    """Where the publisher serves the archive, and how to know that it arrived whole.

    ``md5`` is the publisher's checksum of the archive; where none is given, ``inner`` holds checksums of
    files in it.

    Example:
        >>> Download("https://example.org/log.zip", "log.zip", md5="0" * 32).archive
        'log.zip'
    """

    url: str
    archive: str
    md5: str | None = None
    inner: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """One data set that can be named. A module in ``sources/`` lists its own in ``SOURCES``; that is all.

    Example:
        >>> known = sources()
        >>> known["ml-1m"].download.url
        'https://files.grouplens.org/datasets/movielens/ml-1m.zip'
    """

    name: str
    line: str
    read: Callable[[Request], Dataset]
    wanted: Wanted | None = None
    options: tuple[Option, ...] = ()
    published: Callable[[Mapping[str, str]], Published] | None = None
    download: Download | None = None
    home: str = ""
    citation: str = ""
    terms: str = ""


@cache
def sources() -> Mapping[str, Source]:
    """Every data set known by name, found by looking through the modules of ``sources/``.

    Example:
        >>> "demo" in sources()
        True
    """
    package = importlib.import_module("tacit.data.sources")
    found: dict[str, Source] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        content = importlib.import_module(f"{package.__name__}.{module.name}")
        found.update({source.name: source for source in getattr(content, "SOURCES", ())})
    return found


@dataclass(frozen=True)
class Numbered:
    """Raw ids in rising order, and for each row the position of its id."""

    ids: NDArray[np.int64] | NDArray[np.str_]
    positions: Ints


def numbered(column: NDArray[Any]) -> Numbered:
    """Number the ids of a column from 0, in rising order of the raw ids.

    Example:
        >>> numbered(np.array([40, 7, 40])).positions
        array([1, 0, 1], dtype=int32)
    """
    if column.dtype.kind == "i" and len(column):
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if span <= max(4 * len(column), 1 << 20):
            present = np.zeros(span, dtype=np.bool_)
            present[column - low] = True
            positions = (np.cumsum(present, dtype=np.int32) - 1)[column - low]
            return Numbered(np.flatnonzero(present) + low, positions.astype(np.int32))
    ids, inverse = np.unique(column, return_inverse=True)
    return Numbered(ids, inverse.astype(np.int32))


def located(ids: NDArray[Any], catalogue: NDArray[Any]) -> Ints:
    """Where each id stands in a rising catalogue; ``-1`` where it does not.

    Example:
        >>> located(np.array([5, 9]), np.array([3, 5]))
        array([ 1, -1], dtype=int32)
    """
    if not len(catalogue):
        return np.full(len(ids), -1, dtype=np.int32)
    places = np.minimum(np.searchsorted(catalogue, ids), len(catalogue) - 1)
    return np.where(catalogue[places] == ids, places, -1).astype(np.int32)


def codes(texts: NDArray[np.str_], labels: tuple[str, ...]) -> Ints:
    """The place of each text among the labels, ``-1`` where it is none of them.

    Example:
        >>> codes(np.array(["M", "F", "?"]), ("F", "M"))
        array([ 1,  0, -1], dtype=int32)
    """
    place = {label: code for code, label in enumerate(labels)}
    return np.array([place.get(text, -1) for text in texts.tolist()], dtype=np.int32)


@dataclass(frozen=True)
class Log:
    """Raw columns of a log before its ids are numbered."""

    users: NDArray[Any]
    items: NDArray[Any]
    values: NDArray[np.floating]
    times: NDArray[np.int64] | None = None


def assembled(
    source_name: str,
    log: Log,
    *,
    scale: Scale | None,
    catalogue: NDArray[np.int64] | None = None,
    user_features: Callable[[NDArray[Any]], Features] | None = None,
    item_features: Callable[[NDArray[Any]], Features] | None = None,
    citation: str = "",
    notes: tuple[str, ...] = (),
) -> Dataset:
    """A data set out of raw columns; features are looked up for the ids that are kept, in their order.

    A ``catalogue`` adds items to know of beside those in the log.

    Example:
        >>> log = Log(np.array([8, 3]), np.array([50, 40]), np.array([1.0, 2.0]))
        >>> data = assembled("toy", log, scale=None, catalogue=np.array([40, 45]))
        >>> data.item_ids.values.tolist(), data.interactions.items.tolist(), data.interactions.values.tolist()
        ([40, 45, 50], [0, 2], [2.0, 1.0])
    """
    people, things = numbered(log.users), numbered(log.items)
    items, item_ids = things.positions, things.ids
    if catalogue is not None:
        item_ids = np.union1d(catalogue, things.ids)
        items = np.searchsorted(item_ids, things.ids).astype(np.int32)[items]
    columns = Interactions(people.positions, items, log.values.astype(np.float32), log.times)
    return Dataset(
        name=source_name,
        interactions=ordered(columns),
        user_ids=Ids(people.ids, "user"),
        item_ids=Ids(item_ids, "item"),
        scale=scale,
        user_features=user_features(people.ids) if user_features else Features(),
        item_features=item_features(item_ids) if item_features else Features(),
        citation=citation,
        notes=notes,
    )
