"""Folders in which servers and proxies keep what is their own, and files that appear there whole."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import TacitError


def made(folder: Path) -> Path:
    """The folder, made where it is not there; one clear line if it cannot be.

    Example:
        >>> import tempfile
        >>> made(Path(tempfile.mkdtemp()) / "here" / "proxy").is_dir()
        True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TacitError(f"cannot make {folder} ({error.strerror})", "choose another folder") from error
    return folder


@contextmanager
def appearing(file: Path, mode: int = 0o600) -> Generator[Path]:
    """Where to write what is to be a file: it takes its place when all is written, or never.

    Whatever lay there before lends it neither its permissions nor, as a link, its place.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "key"
        >>> with appearing(file) as draft:
        ...     _ = draft.write_bytes(b"secret")
        ...     file.exists()
        False
        >>> file.read_bytes(), oct(file.stat().st_mode & 0o777)
        (b'secret', '0o600')
    """
    draft = file.with_name(f".{file.name}.part")
    try:
        _removed(draft)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        try:
            yield draft
            _synced(draft)
            draft.replace(file)
            _synced(file.parent)
        finally:
            _removed(draft)
    except OSError as error:
        raise TacitError(f"cannot write {file} ({error.strerror})", "choose another place") from error


def _removed(draft: Path) -> None:
    """Nothing of a draft is left; a database may have had files beside it."""
    for side in ("", "-journal", "-wal", "-shm"):
        draft.with_name(draft.name + side).unlink(missing_ok=True)


def _synced(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
