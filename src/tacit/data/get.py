"""Fetch a data set from its publisher: resumed where it broke off, verified before it appears."""

import hashlib
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from tacit.data.archive import cache_folder
from tacit.data.columns import Progress
from tacit.data.source import Download, sources
from tacit.errors import TacitError, nearest

_BLOCK = 1 << 18


def get(
    name: str,
    target_dir: Path | None = None,
    *,
    url: str | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 30.0,
) -> Path:
    """Download a data set's archive into ``target_dir`` (the user's cache when not given); its path.

    The terms are the publisher's; see ``sources()[name].terms``. An archive that is there already is
    kept. ``url`` names a mirror; what it serves must still have the publisher's checksum.

    Example:
        >>> from tacit.data.get import get
        >>> get("ml-1m")  # doctest: +SKIP
        PosixPath('~/.cache/tacit/data/ml-1m.zip')
    """
    source = sources().get(name)
    if source is None:
        raise TacitError(f"no data set is called {name!r}", nearest(name, sources()))
    folder = target_dir if target_dir is not None else cache_folder()
    if source.wanted is None:
        raise TacitError(f"{name} is made, not downloaded", f"use it directly: --data {name}")
    if source.download is None:
        raise TacitError(
            f"{name} cannot be downloaded automatically",
            f"see {source.home} and put {source.wanted.archives[0]} into {folder}",
        )
    target = folder / source.download.archive
    if target.exists():
        return target
    return fetch(source.download, target, url=url, progress=progress, attempts=attempts, timeout=timeout)


def fetch(
    download: Download,
    target: Path,
    *,
    url: str | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 30.0,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """Download to ``target``, by way of ``target.part``, which a later call continues.

    The final name only ever holds a complete, verified archive. A resumed download that turns out wrong
    is started once more from nothing, since the earlier piece may be of another version.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     there = Path(folder) / "there.zip"
        ...     with zipfile.ZipFile(there, "w") as archive:
        ...         archive.writestr("a.txt", "a")
        ...     wanted = Download(there.as_uri(), "a.zip", hashlib.md5(there.read_bytes()).hexdigest())
        ...     fetch(wanted, Path(folder) / "a.zip").name
        'a.zip'
    """
    address = url or download.url
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists() and part.stat().st_size > 0
        _transfer(address, part, progress, attempts, timeout, pause)
        problem = _problem(part, download)
        if problem and resumed:
            part.unlink()
            _transfer(address, part, progress, attempts, timeout, pause)
            problem = _problem(part, download)
        if problem:
            part.unlink()
            raise TacitError(f"what {address} serves is not {target.name}: {problem}", "try again later")
        Path(part).replace(target)
    except OSError as error:
        raise TacitError(
            f"cannot write {target} ({error.strerror or error})", "choose another folder"
        ) from error
    return target


class _Unreachable(Exception):
    """The server could not be reached or broke off."""


def _transfer(
    address: str,
    part: Path,
    progress: Progress | None,
    attempts: int,
    timeout: float,
    pause: Callable[[float], None],
) -> None:
    for attempt in range(1, attempts + 1):
        try:
            return _continue(address, part, progress, timeout)
        except _Unreachable as error:
            if attempt == attempts:
                name = part.name.removesuffix(".part")
                raise TacitError(
                    f"cannot reach {address} ({error})",
                    f"download {name} yourself from there and put it into {part.parent}",
                ) from error
        pause(2.0**attempt / 4)
    return None


def _continue(address: str, part: Path, progress: Progress | None, timeout: float) -> None:
    """Append what is missing; a server that ignores the range sends all, so all is written anew."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"User-Agent": "tacit"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            appending = getattr(answer, "status", None) == 206
            there = there if appending else 0
            length = answer.headers.get("Content-Length")
            total = there + int(length) if length else 0
            done = _store(answer.read, part, there, total, progress, appending=appending)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is missing, or the piece is too long: the checksum decides
            return
        raise _Unreachable(f"the server answered {error.code}") from error
    except urllib.error.URLError as error:
        raise _Unreachable(str(error.reason)) from error
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise _Unreachable(str(error) or type(error).__name__) from error
    if total and done < total:
        raise _Unreachable(f"the connection broke off after {done:,} of {total:,} bytes")


def _store(
    read: Callable[[int], bytes],
    part: Path,
    there: int,
    total: int,
    progress: Progress | None,
    *,
    appending: bool,
) -> int:
    done = there
    with part.open("ab" if appending else "wb") as file:
        while block := read(_BLOCK):
            file.write(block)
            done += len(block)
            if progress is not None:
                progress(done, total)
    return done


def _problem(part: Path, download: Download) -> str | None:
    """What is wrong with an archive that arrived, or nothing."""
    if download.md5 is not None:
        with part.open("rb") as file:
            found = hashlib.file_digest(file, "md5").hexdigest()
        return None if found == download.md5 else f"its MD5 is {found}, the publisher's is {download.md5}"
    try:
        with zipfile.ZipFile(part) as archive:
            names = {Path(name).name: name for name in archive.namelist() if not name.endswith("/")}
            for name, md5 in download.inner.items():
                if name not in names:
                    return f"it holds no {name}"
                if hashlib.md5(archive.read(names[name]), usedforsecurity=False).hexdigest() != md5:
                    return f"{name} in it differs from the published one"
    except (zipfile.BadZipFile, zlib.error) as error:
        return str(error)
    return None
