"""The run folder: everything resolved, what was measured, what the ledgers hold."""

import json
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.runtime.checkpoint import Checkpoint, load, save, save_arrays, told, written_whole
from tacit.types import Array

LAYOUT = 1
CONFIG = "config.toml"
OWN_DATA = "run:"
"""What ``data`` in a configuration begins with where the table lies in the run folder itself."""


def own_data(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A configuration whose ``data`` can be loaded from anywhere: a table in the run folder gets its path.

    Example:
        >>> own_data({"data": "run:table.csv:scale=1-5"}, Path("runs/mine"))
        {'data': 'runs/mine/table.csv:scale=1-5'}
    """
    data = config.get("data")
    if not isinstance(data, str) or not data.startswith(OWN_DATA):
        return dict(config)
    return {**config, "data": str(folder / data.removeprefix(OWN_DATA))}


def refuse_other_layout(layout: Any, path: Path) -> None:
    """A run of another version of Tacit cannot be gone on with, nor repeated to the same numbers."""
    if layout != LAYOUT:
        raise TacitError(
            f"{path} is of another version of Tacit (layout {layout}, here {LAYOUT})",
            "use the version that wrote it, or run it again",
        )


@dataclass(frozen=True)
class RunFolder:
    """Where a run lives. Lines are appended and counted, so that a resumed run can cut what was cut short."""

    path: Path

    @property
    def checkpoint_file(self) -> Path:
        """The newest whole state."""
        return self.path / "checkpoint.safetensors"

    @classmethod
    def created(cls, path: Path, config: Mapping[str, Any]) -> "RunFolder":
        """A new folder holding only its configuration."""
        import tomli_w  # loads on first use

        if (path / CONFIG).exists() or (path.exists() and not path.is_dir()):
            raise TacitError(f"{path} exists already", "choose another --out, or continue it with --resume")
        text = tomli_w.dumps({"layout": LAYOUT, **config})
        written_whole(path / CONFIG, lambda draft: draft.write_text(text, encoding="utf-8"))
        return cls(path)

    @classmethod
    def opened(cls, path: Path) -> "RunFolder":
        """An existing folder; one clear line if it is none of ours."""
        folder = cls(path)
        folder.config()
        return folder

    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        file = self.path / CONFIG
        if not file.is_file():
            raise TacitError(
                f"{self.path} is not a run folder (it has no config.toml)",
                "give the folder that a run printed",
            )
        try:
            config = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TacitError(
                f"{file} cannot be read: {error}", "restore it, or start the run anew"
            ) from error
        refuse_other_layout(config.pop("layout", None), self.path)
        return own_data(config, self.path)

    def append(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Add JSON lines to a file of the folder."""
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        try:
            with (self.path / name).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise told(error, self.path / name) from error

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The JSON lines of a file."""
        file = self.path / name
        if not file.exists():
            return []
        with readable(file):
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    def size(self, name: str) -> int:
        """How long a file is now."""
        file = self.path / name
        return file.stat().st_size if file.exists() else 0

    def cut(self, name: str, size: int) -> None:
        """Forget what was appended after a checkpoint; what was there then must still be there."""
        file = self.path / name
        if self.size(name) < size:
            raise TacitError(
                f"{file} is shorter than it was at the checkpoint", "restore it, or start the run anew"
            )
        if file.exists():
            try:
                with file.open("r+b") as handle:
                    handle.truncate(size)
            except OSError as error:
                raise told(error, file) from error

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the newest state."""
        save(self.checkpoint_file, checkpoint)

    def checkpoint(self) -> Checkpoint | None:
        """The newest whole state, if there is one."""
        return load(self.checkpoint_file) if self.checkpoint_file.exists() else None

    def save_model(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> None:
        """``model/`` for what the server holds, ``private/`` for what only devices would hold."""
        save_arrays(self.path / "model" / "shared.safetensors", shared)
        save_arrays(self.path / "private" / "devices.safetensors", private)

    def model(self) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """Shared and private arrays of a finished run."""
        files = self.path / "model" / "shared.safetensors", self.path / "private" / "devices.safetensors"
        if not all(file.exists() for file in files):
            raise TacitError(f"{self.path} holds no finished model", "finish the run with --resume first")
        return load(files[0]).arrays, load(files[1]).arrays

    def save_text(self, name: str, text: str) -> None:
        """Write one whole file."""
        written_whole(self.path / name, lambda draft: draft.write_text(text, encoding="utf-8"))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """``result.json``; it says the run is finished."""
        self.save_text("result.json", json.dumps(result, indent=1))

    def result(self) -> dict[str, Any]:
        """The result of a finished run."""
        file = self.path / "result.json"
        if not file.exists():
            raise TacitError(f"{self.path} has no result yet", "finish the run with --resume first")
        with readable(file):
            return json.loads(file.read_text("utf-8"))


@contextmanager
def readable(file: Path) -> Generator[None]:
    """Text that is no JSON was not written by a run."""
    try:
        yield
    except ValueError as error:
        raise TacitError(f"{file} is damaged ({error})", "restore it, or start the run anew") from error
