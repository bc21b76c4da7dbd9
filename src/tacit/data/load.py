"""A data set by name or path."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tacit.data.archive import Files, find, places
from tacit.data.columns import Progress
from tacit.data.interactions import Dataset
from tacit.data.published import verify
from tacit.data.source import Request, Source, sources
from tacit.data.sources.tables import OPTIONS, SUFFIXES, read_table
from tacit.data.spec import parsed, settled
from tacit.errors import TacitError, nearest


class Known(NamedTuple):
    """A data set that can be named, and whether it could be loaded right now."""

    name: str
    line: str
    available: bool


def load(spec: str, data_dir: Path | None = None, *, progress: Progress | None = None) -> Dataset:
    """Load ``demo``, a published data set by name, or a table by path.

    Published sets are looked for in ``data_dir``, then ``$TACIT_DATA``, then the user's cache, as the
    publisher's zip or the folder it unpacks to. Options follow a colon: ``ml-1m:catalogue=ids``,
    ``demo:users=5000,items=800``, ``log.csv:duplicates=last``. ``progress`` is called with (done, total).

    The log comes in order of user, then item; ids are numbered in rising order of the raw ids.

    Example:
        >>> from tacit.data.load import load
        >>> data = load("demo:users=50,items=40,mean=12")
        >>> data.users, data.items, data.scale.high
        (50, 40, 5)
    """
    name, given = (spec, {}) if Path(spec).is_file() else parsed(spec)
    source = sources().get(name)
    if source is None:
        return _from_path(name, given, progress)
    settings = settled(source.name, source.options, given)
    files = _files(source, data_dir)
    dataset = source.read(Request(files, settings, progress))
    if source.published is not None and settings.get("check", "yes") == "yes":
        verify(dataset, source.published(settings), str(files.root))
    return dataset


def known(data_dir: Path | None = None) -> list[Known]:
    """Every data set that has a name, in a fixed order, ``demo`` first.

    Example:
        >>> known()[0].name, known()[0].available
        ('demo', True)
    """
    listed = [Known(source.name, source.line, _available(source, data_dir)) for source in sources().values()]
    return sorted(listed, key=lambda entry: (entry.name != "demo", entry.name))


def _from_path(name: str, given: Mapping[str, str], progress: Progress | None) -> Dataset:
    path = Path(name).expanduser()
    if path.is_file() and path.suffix.lower() == ".zip":
        raise TacitError(
            f"{name} is an archive", "name the data set (such as ml-1m) and give its folder with --data-dir"
        )
    looks_like_path = path.suffix.lower() in SUFFIXES or "/" in name or "\\" in name
    if path.is_file():
        return read_table(path, settled(path.name, OPTIONS, given), progress)
    if looks_like_path:
        what = "is a folder, not a table" if path.is_dir() else "does not exist"
        raise TacitError(f"{name} {what}", "give the path of a CSV, TSV, Parquet or .inter file")
    known_head = name.partition(":")[0]
    if known_head in sources():
        raise TacitError(
            f"cannot read the options in {name!r}", f"write {known_head}:option=value,option=value"
        )
    raise TacitError(f"no data set is called {name!r}", nearest(name, sources()))


def _foreign(source: Source) -> frozenset[str]:
    others = (other.wanted for other in sources().values() if other is not source)
    return frozenset(folder for wanted in others if wanted is not None for folder in wanted.folders)


def _files(source: Source, data_dir: Path | None) -> Files:
    if source.wanted is None:
        return Files()
    searched = places(data_dir)
    for folder in searched:
        if folder.is_dir():
            found = find(source.wanted, folder, _foreign(source))
            if found is not None:
                return found
    where = ", ".join(f"{folder}" if folder.is_dir() else f"{folder} (no such folder)" for folder in searched)
    remedy = (
        f"run: tacit data get {source.name}" if source.download else f"see {source.home} for how to obtain it"
    )
    raise TacitError(
        f"{source.name} was not found; looked for {source.wanted.archives[0]} in {where}", remedy
    )


def _available(source: Source, data_dir: Path | None) -> bool:
    try:
        _files(source, data_dir)
    except TacitError:
        return False
    return True
