"""Where a data set's files lie: in the publisher's zip, or in the folder it unpacks to, at any depth."""

import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tacit.errors import TacitError


@dataclass(frozen=True)
class Files:
    """The files of one data set, by name, wherever they were found.

    Example:
        >>> Files().where("ratings.dat")
        'ratings.dat'
    """

    root: Path = Path()
    members: Mapping[str, str] = field(default_factory=dict)
    zipped: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def where(self, name: str) -> str:
        """The file as a person would look for it."""
        return f"{self.root.name}/{name}" if self.root.name else name

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        if name not in self.members:
            raise TacitError(f"{self.root} holds no file {name}", "get the complete data set again")
        try:
            if not self.zipped:
                return (self.root / self.members[name]).read_bytes()
            with zipfile.ZipFile(self.root) as archive:
                return archive.read(self.members[name])
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise TacitError(
                f"{self.root} is damaged at {name} ({error})", "get the archive again"
            ) from error
        except OSError as error:
            raise TacitError(
                f"cannot read {self.root / name} ({error.strerror})", "check the file"
            ) from error

    def text(self, name: str, encoding: str) -> str:
        """A whole file as text."""
        try:
            return self.read(name).decode(encoding)
        except UnicodeDecodeError as error:
            raise TacitError(
                f"{self.where(name)} is not {encoding} text", "get the data set again"
            ) from error


@dataclass(frozen=True)
class Wanted:
    """What to look for: zips and folders by their usual names, and the files that must be inside.

    Example:
        >>> Wanted(("ml-1m.zip",), ("ml-1m",), ("ratings.dat",)).files
        ('ratings.dat',)
    """

    archives: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]


def cache_folder() -> Path:
    """The user's own place for data sets: ``$XDG_CACHE_HOME/tacit/data`` or ``~/.cache/tacit/data``.

    Example:
        >>> cache_folder().name
        'data'
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tacit" / "data"


def places(data_dir: Path | None = None) -> list[Path]:
    """The folders that are searched, in order: the one given, ``$TACIT_DATA``, the user's cache.

    Example:
        >>> places(Path("mine"))[0]
        PosixPath('mine')
    """
    named = os.environ.get("TACIT_DATA")
    found = [data_dir] if data_dir is not None else []
    found += [Path(named)] if named else []
    return list(dict.fromkeys([*found, cache_folder()]))


def find(wanted: Wanted, folder: Path, foreign: frozenset[str] = frozenset()) -> Files | None:
    """The data set's files under a folder, or nothing.

    ``foreign`` are folder names of other data sets, which are left alone when files are looked for by
    name only (several data sets have a ``ratings.csv``).

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     (Path(folder) / "any").mkdir()
        ...     _ = (Path(folder) / "any" / "log.dat").write_text("1 2")
        ...     find(Wanted(("log.zip",), ("log",), ("log.dat",)), Path(folder)).read("log.dat")
        b'1 2'
    """
    for archive in wanted.archives:
        if (folder / archive).is_file():
            return _in_zip(folder / archive, wanted.files)
    walked = _walk(folder)
    zips = [Path(where) / name for where, _, names in walked for name in wanted.archives if name in names]
    if zips:
        return _in_zip(zips[0], wanted.files)
    for where, below, _ in walked:
        for name in wanted.folders:
            inner = _by_name(Path(where) / name, wanted.files) if name in below else None
            if inner is not None:
                return inner
    if folder.name in wanted.folders and (found := _by_name(folder, wanted.files)) is not None:
        return found
    return _loose(folder, walked, wanted.files, foreign - set(wanted.folders))


def _walk(folder: Path) -> list[tuple[str, list[str], list[str]]]:
    """Every folder below, shallow ones first."""
    found = []
    for where, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "__MACOSX")
        found.append((where, list(below), names))
    return sorted(found, key=lambda entry: (entry[0].count(os.sep), entry[0]))


def _in_zip(path: Path, files: Sequence[str]) -> Files:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
    except (zipfile.BadZipFile, OSError) as error:
        raise TacitError(
            f"{path} is not a readable zip archive ({error})", "get the archive again"
        ) from error
    members = _shallowest(names)
    for name in files:
        if name not in members:
            raise TacitError(f"{path} holds no file {name}", "get the complete archive again")
    return Files(path, members, zipped=True)


def _shallowest(names: Iterable[str]) -> dict[str, str]:
    members: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        if not name.endswith("/"):
            members.setdefault(PurePosixPath(name).name, name)
    return members


def _by_name(folder: Path, files: Sequence[str]) -> Files | None:
    names = [
        (Path(where) / name).relative_to(folder).as_posix()
        for where, _, found in _walk(folder)
        for name in found
    ]
    members = _shallowest(names)
    return Files(folder, members) if all(name in members for name in files) else None


def _loose(
    folder: Path,
    walked: Sequence[tuple[str, list[str], list[str]]],
    files: Sequence[str],
    foreign: frozenset[str],
) -> Files | None:
    """Files that lie together in some folder of any name."""
    found = [
        Path(where)
        for where, _, names in walked
        if set(files) <= set(names)
        and foreign.isdisjoint(Path(where).relative_to(folder).parts)
        and Path(where).name not in foreign
    ]
    if len(found) > 1:
        raise TacitError(
            f"{files[0]} lies in both {found[0]} and {found[1]}",
            "name the folder with --data-dir, or remove one",
        )
    return _by_name(found[0], files) if found else None
