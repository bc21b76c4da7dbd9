"""Folders in which servers and proxies keep what is their own."""

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
