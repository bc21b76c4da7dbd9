"""A run from its configuration to its result, in its folder."""

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tacit.config.experiment import Experiment, resolved
from tacit.config.tracking import tracked
from tacit.data.frames import written_table
from tacit.data.interactions import Dataset
from tacit.data.spec import parsed
from tacit.errors import TacitError
from tacit.runtime.checkpoint import told
from tacit.runtime.folder import CONFIG, OWN_DATA, RunFolder
from tacit.runtime.listener import Listener
from tacit.runtime.run import Interrupted, Plan, execute
from tacit.runtime.simulate import Execution

ROOM_NEEDED = 64 << 20
TABLE = "table.csv"


@dataclass(frozen=True)
class Session:
    """An experiment with its plan and its folder."""

    experiment: Experiment
    plan: Plan
    folder: RunFolder
    made: tuple[Path, ...] | None = None  # a new run's folders, the innermost first

    def finished(self, listener: Listener, loaded: float) -> dict[str, Any] | None:
        """Run to the end, write the result and its report; ``None`` if asked to stop (all is saved)."""
        return self._tracked(listener, loaded, report=True)

    def trained(self, listener: Listener, loaded: float) -> dict[str, Any] | None:
        """The same without a report."""
        return self._tracked(listener, loaded, report=False)

    def _tracked(self, listener: Listener, loaded: float, *, report: bool) -> dict[str, Any] | None:
        tracking = tracked(listener, self.experiment.to_mapping(), self.folder.path.name)
        try:
            result = self._executed(tracking or listener, loaded)
        except BaseException:
            if tracking is not None:
                tracking.closed("FAILED")
            raise
        if result is not None and report:
            from tacit.report.page import write_report  # plotting loads on first use

            write_report(self.folder.path)
        if tracking is not None:
            tracking.closed("KILLED") if result is None else tracking.finished(result, self.folder.path)
        return result

    def _executed(self, listener: Listener, loaded: float) -> dict[str, Any] | None:
        try:
            found = execute(self.plan, self.folder, listener, {"load": round(loaded, 4)})
        except Interrupted:
            return None
        except TacitError:
            self._leave_nothing_empty()
            raise
        result = {
            "method": self.experiment.method,
            "data": self.experiment.data,
            "split": self.experiment.split,
            "seed": self.experiment.seed,
            "rounds": found["rounds"],
            "settings": dict(self.experiment.settings),
            **found,
            "versions": versions(),
            "run": str(self.folder.path),
        }
        self.folder.write_result(result)
        return result

    def _leave_nothing_empty(self) -> None:
        """A run that was refused before it had done anything leaves no folder behind."""
        if self.made is None or {file.name for file in self.folder.path.iterdir()} - {CONFIG, TABLE}:
            return
        for name in (CONFIG, TABLE):
            (self.folder.path / name).unlink(missing_ok=True)
        for folder in self.made:
            with suppress(OSError):  # somebody else's run may have begun beside it
                folder.rmdir()


def started(
    experiment: Experiment,
    out: Path | None,
    data_dir: Path | None,
    threads: int,
    dataset: Dataset | None = None,
) -> Session:
    """A new run. Everything is checked before anything is written.

    A ``dataset`` in memory is kept in the run folder as a table, so that the run can be opened again.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TacitError(f"{out} exists already", "choose another --out, or continue it with --resume")
    complete, plan = resolved(experiment, data_dir, dataset)
    path = out or _unused(Path("runs") / _name(complete))
    _refuse_full_disk(path)
    made = tuple(folder for folder in (path, *path.parents) if not folder.exists())
    if dataset is not None:
        complete = replace(complete, data=_kept(dataset, path))
    folder = RunFolder.created(path, complete.to_mapping())
    return Session(complete, replace(plan, execution=Execution(threads)), folder, made)


def continued(path: Path, data_dir: Path | None, threads: int) -> Session:
    """A run that was stopped or killed, from its last checkpoint to the same final numbers."""
    folder = RunFolder.opened(path)
    complete, plan = resolved(Experiment.from_mapping(folder.config()), data_dir)
    return Session(complete, replace(plan, execution=Execution(threads)), folder)


def _kept(dataset: Dataset, path: Path) -> str:
    try:
        path.mkdir(parents=True, exist_ok=True)
        options = written_table(dataset, path / TABLE)
    except OSError as error:
        raise told(error, path) from error
    return f"{OWN_DATA}{TABLE}" + (f":{options}" if options else "")


def versions() -> dict[str, str]:
    """What the run was computed with.

    Example:
        >>> "numpy" in versions()
        True
    """
    import platform
    from importlib.metadata import version

    from tacit import __version__

    libraries = {name: version(name) for name in ("numpy", "numba", "scipy", "torch", "dp-accounting")}
    return {"tacit": __version__, "python": platform.python_version(), **libraries}


def _name(experiment: Experiment) -> str:
    head, _ = parsed(experiment.data)
    data = Path(head).name + experiment.data.removeprefix(head)
    now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return re.sub(r"[^\w.+-]+", "-", f"{experiment.method}-{data}-seed{experiment.seed}-{now}")


def _unused(path: Path) -> Path:
    candidate, number = path, 2
    while candidate.exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate


def _refuse_full_disk(path: Path) -> None:
    nearest = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    free = shutil.disk_usage(nearest).free
    if free < ROOM_NEEDED:
        raise TacitError(
            f"only {free >> 20} MiB free where {path} would be written", "free some space, or give --out"
        )
