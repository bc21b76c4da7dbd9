"""Netflix 5K x 5K: an implicit subset in three copies, as used in work on one-class recommendation."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.archive import Files, Wanted, find, places
from tacit.data.columns import Field, Progress, Table, read_columns
from tacit.data.interactions import Dataset, Interactions, ordered
from tacit.data.published import Published
from tacit.data.source import Log, Request, Source, assembled, located
from tacit.data.spec import Option
from tacit.errors import TacitError, nearest

_PARTS = ("train", "valid", "test")
_COPIES = ("1", "2", "3")


def _file(copy: str, part: str) -> str:
    return f"NF5kUsers5kItemsHalfHalf-copy{copy}-{part}"


_WANTED = Wanted(
    ("netflix5k5k.zip", "Netflix5K5K-TXT-FORAMT.zip"),
    ("Netflix5K5K-TXT-FORAMT", "netflix5k5k"),
    tuple(_file(copy, part) for copy in _COPIES for part in _PARTS),
)


def _pairs(
    files: Files, copy: str, part: str, progress: Progress | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    name = _file(copy, part)
    fields = [Field(0, "user", "whole"), Field(1, "item", "whole")]
    users, items = read_columns(Table(files.where(name), files.read(name), b" ", 2), fields, progress)
    return users, items


def _read(request: Request) -> Dataset:
    copy = request.settings["copy"]
    columns = [_pairs(request.files, copy, part, request.progress) for part in _PARTS]
    users, items = (np.concatenate([part[at] for part in columns]) for at in range(2))
    return assembled(
        "netflix5k5k",
        Log(users, items, np.ones(len(users))),
        scale=None,
        notes=(
            f"copy {copy}: its train, valid and test parts are joined (the copies differ in these alone)",
        ),
    )


def published_parts(dataset: Dataset, copy: str, data_dir: Path | None = None) -> tuple[Interactions, ...]:
    """The train, valid and test parts that the publisher cut copy ``copy`` into, for comparison runs.

    Example:
        >>> from tacit.data.load import load
        >>> [len(part) for part in published_parts(load("netflix5k5k"), "1")]  # doctest: +SKIP
        [73320, 4616, 77936]
    """
    found = (find(_WANTED, folder) for folder in places(data_dir) if folder.is_dir())
    files = next((files for files in found if files is not None), None)
    if files is None:
        raise TacitError(
            "netflix5k5k was not found", "put netflix5k5k.zip into the folder given with --data-dir"
        )
    if copy not in _COPIES:
        raise TacitError(f"netflix5k5k has no copy {copy!r}", nearest(copy, _COPIES))
    parts = []
    for part in _PARTS:
        users, items = _pairs(files, copy, part, None)
        columns = located(users, dataset.user_ids.values), located(items, dataset.item_ids.values)
        parts.append(ordered(Interactions(*columns, np.ones(len(users), dtype=np.float32))))
    return tuple(parts)


SOURCES = (
    Source(
        name="netflix5k5k",
        line="Netflix 5K x 5K: implicit feedback of 5,000 people on 5,000 films, three copies",
        read=_read,
        wanted=_WANTED,
        options=(
            Option("copy", "1", "which of the three copies", _COPIES),
            Option("check", "yes", "refuse a copy that differs from the published one", ("yes", "no")),
        ),
        published=lambda _: Published(4843, 3586, 155_872, 842616256070270905),
        home="http://csse.szu.edu.cn/staff/panwk/publications/",
        terms="research use only; Netflix withdrew the data it comes from, do not pass it on",
    ),
)
