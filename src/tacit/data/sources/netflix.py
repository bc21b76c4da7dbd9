"""Netflix 5K x 5K: an implicit subset in three copies, as used in work on one-class recommendation."""

from collections.abc import Mapping

import numpy as np

from tacit.data.archive import Wanted
from tacit.data.columns import Field, Table, read_columns
from tacit.data.interactions import Dataset
from tacit.data.published import Published
from tacit.data.source import Log, Request, Source, assembled
from tacit.data.spec import Option

_PARTS = ("train", "valid", "test")
_COPIES = ("1", "2", "3")


def _file(copy: str, part: str) -> str:
    return f"NF5kUsers5kItemsHalfHalf-copy{copy}-{part}"


def _read(request: Request) -> Dataset:
    fields = [Field(0, "user", "whole"), Field(1, "item", "whole")]
    columns = []
    for part in _PARTS:
        name = _file(request.settings["copy"], part)
        table = Table(request.files.where(name), request.files.read(name), b" ", 2)
        columns.append(read_columns(table, fields, request.progress))
    users, items = (np.concatenate([part[at] for part in columns]) for at in range(2))
    return assembled(
        "netflix5k5k",
        Log(users, items, np.ones(len(users))),
        scale=None,
        notes=(f"copy {request.settings['copy']}: its train, valid and test parts are joined",),
    )


def _published(settings: Mapping[str, str]) -> Published:
    return _EXPECTED[settings["copy"]]


_EXPECTED = {copy: Published(None, None, 155_872) for copy in _COPIES}

SOURCES = (
    Source(
        name="netflix5k5k",
        line="Netflix 5K x 5K: implicit feedback of 5,000 people on 5,000 films, three copies",
        read=_read,
        wanted=Wanted(
            ("netflix5k5k.zip", "Netflix5K5K-TXT-FORAMT.zip"),
            ("Netflix5K5K-TXT-FORAMT", "netflix5k5k"),
            tuple(_file(copy, part) for copy in _COPIES for part in _PARTS),
        ),
        options=(
            Option("copy", "1", "which of the three copies", _COPIES),
            Option("check", "yes", "refuse a copy that differs from the published one", ("yes", "no")),
        ),
        published=_published,
        home="http://csse.szu.edu.cn/staff/panwk/",
        terms="research use only; Netflix withdrew the data it comes from, do not pass it on",
    ),
)
