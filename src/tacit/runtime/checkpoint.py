"""The state of a run between rounds, written so that a kill at any moment leaves a whole one."""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.types import Array

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """Arrays by group and name (``shared/items``), and facts that fit into JSON."""

    arrays: Mapping[str, Array]
    facts: Mapping[str, Any]

    def group(self, name: str) -> dict[str, Array]:
        """The arrays of one group."""
        prefix = name + "/"
        return {
            key.removeprefix(prefix): array for key, array in self.arrays.items() if key.startswith(prefix)
        }


def written_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write through a temporary neighbour and rename, so that readers see the old file or the new one.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> written_whole(target, lambda path: path.write_text("done"))
        >>> target.read_text()
        'done'
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(draft)
        with draft.open("rb") as handle:
            os.fsync(handle.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # where a folder could not be made, there is no draft either
            draft.unlink()
        raise told(error, path) from error


def told(error: OSError, path: Path) -> TacitError:
    """A failed write as one clear line."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return TacitError(f"no space left to write {path}", "free some space, then continue with --resume")
    return TacitError(f"cannot write {path} ({error.strerror or error})", "choose another folder with --out")


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint as one file."""
    from safetensors.numpy import save_file  # loads on first use

    arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()}
    # one entry only: the format's library writes several in no fixed order
    metadata = {"tacit": json.dumps({"format": FORMAT, "facts": dict(checkpoint.facts)})}
    written_whole(path, lambda draft: _guarded(lambda: save_file(arrays, draft, metadata)))


def _guarded(write: Callable[[], object]) -> None:
    """The format's library reports a full disk in its own type: bring it back to OSError."""
    try:
        write()
    except OSError:
        raise
    except Exception as error:
        number = errno.ENOSPC if "space" in str(error).lower() else errno.EIO
        raise OSError(number, str(error)) from error


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; one clear line for a file of another version."""
    from safetensors import SafetensorError, safe_open  # loads on first use

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError) as error:
        raise TacitError(
            f"{path} cannot be read as a checkpoint", "start the run anew without --resume"
        ) from error
    told_by_us = json.loads(metadata.get("tacit", "{}"))
    if told_by_us.get("format") != FORMAT:
        raise TacitError(
            f"{path} is of another version of Tacit (format {told_by_us.get('format')}, here {FORMAT})",
            "continue with the version that wrote it, or start anew without --resume",
        )
    return Checkpoint(arrays, told_by_us["facts"])


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as one safetensors file."""
    save(path, Checkpoint(arrays, {}))
