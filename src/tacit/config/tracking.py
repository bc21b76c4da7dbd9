"""Runs logged to MLflow, where MLflow is configured (``MLFLOW_TRACKING_URI``) and installed; nowhere else.

What is logged is what the run folder's public half holds: settings, metrics per evaluated round,
claims, bytes, the report and what the server holds. Nobody's private state and no data are sent.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.runtime.listener import Listener

VARIABLE = "MLFLOW_TRACKING_URI"
FILES = ("config.toml", "result.json", "metrics.jsonl", "ledger.jsonl", "report.html", "README.md")


def tracked(inner: Listener, settings: Mapping[str, Any], name: str) -> "Tracking | None":
    """A listener that also logs, or none where nothing is configured; called before anything is trained.

    Example:
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, {VARIABLE: ""}):
        ...     tracked(Listener(), {}, "mine") is None
        True
    """
    if not os.environ.get(VARIABLE):
        return None
    try:
        import mlflow
    except ImportError:
        inner.warn(f"{VARIABLE} is set, but MLflow is not installed (pip install 'tacit[tracking]')")
        return None
    try:
        client = mlflow.MlflowClient()
        wanted = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "tacit"
        found = client.get_experiment_by_name(wanted)
        experiment = client.create_experiment(wanted) if found is None else found.experiment_id
        parent = mlflow.active_run()
        tags = {} if parent is None else {"mlflow.parentRunId": parent.info.run_id}
        run = client.create_run(experiment, run_name=name, tags=tags).info.run_id
        for key, value in _flat(settings).items():
            client.log_param(run, key, str(value)[:500])
    except Exception as error:  # whatever a tracking server raises: say it once, before hours of training
        raise TacitError(
            f"MLflow at {os.environ[VARIABLE]} cannot be used ({_first_line(error)})",
            f"correct or unset {VARIABLE}",
        ) from error
    return Tracking(inner, client, run)


class Tracking(Listener):
    """Passes everything on and logs it. A server that fails later is told of once; the run goes on."""

    def __init__(self, inner: Listener, client: Any, run: str) -> None:
        self._inner, self._client, self._run = inner, client, run
        self._training, self._broken = False, False

    def stage(self, name: str, total: int) -> None:
        """A stage begins."""
        self._training = name == "training"
        self._inner.stage(name, total)

    def step(self, done: int, facts: Mapping[str, float]) -> None:
        """Log what was measured after a round."""
        self._inner.step(done, facts)
        if self._training:
            self._log({f"curve.{name}": value for name, value in facts.items()}, done)

    def warn(self, line: str) -> None:
        """Pass it on."""
        self._inner.warn(line)

    def stopping(self) -> bool:
        """Whether the user asked to stop."""
        return self._inner.stopping()

    def finished(self, result: Mapping[str, Any], folder: Path) -> None:
        """Log the result and the public files of the run folder."""
        numbers = {**result["metrics"], **{f"traffic.{k}": v for k, v in _numbers(result["traffic"]).items()}}
        numbers |= {f"seconds.{name}": value for name, value in _numbers(result["seconds"]).items()}
        for line in result["privacy"]:
            name, value = promise_name(line), line["epsilon"]
            if value is not None:
                numbers[name] = value
            told = "unbounded" if value is None else f"{value:.6g}"
            self._try(lambda c, r, n=name, t=told: c.set_tag(r, n, t))
        self._log(numbers, int(result["rounds"]))
        for file in FILES:
            if (folder / file).exists():
                self._try(lambda c, r, f=folder / file: c.log_artifact(r, str(f)))
        if (folder / "model").is_dir():
            self._try(lambda c, r: c.log_artifacts(r, str(folder / "model"), "model"))
        self.closed("FINISHED")

    def closed(self, status: str) -> None:
        """The run is over, however it ended."""
        self._try(lambda c, r: c.set_terminated(r, status))

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._try(lambda c, r, n=name, v=value: c.log_metric(r, metric_name(n), float(v), step=step))

    def _try(self, do: Callable[[Any, str], object]) -> None:
        if self._broken:
            return
        try:
            do(self._client, self._run)
        except Exception as error:  # whatever a tracking server raises must not cost the training
            self._broken = True
            self._inner.warn(f"MLflow stopped answering ({_first_line(error)}): the run goes on without it")


def metric_name(name: str) -> str:
    """A metric's name in the letters that MLflow takes.

    Example:
        >>> metric_name("ndcg@10[99]")
        'ndcg_at_10_99'
    """
    return re.sub(r"[^\w.\-/ ]+", "_", name.replace("@", "_at_")).strip("_")


def promise_name(line: Mapping[str, Any]) -> str:
    """What a promise is logged under: whole people by observer, single interactions apart.

    Example:
        >>> promise_name({"observer": "server", "unit": "user"})
        'epsilon.server'
        >>> promise_name({"observer": "server", "unit": "interaction", "adjacency": "add-remove"})
        'epsilon.server.interaction.add-remove'
    """
    whole = f"epsilon.{line['observer']}"
    return whole if line["unit"] == "user" else f"{whole}.{line['unit']}.{line['adjacency']}"


def _numbers(table: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in table.items() if isinstance(value, int | float)}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat.update(
            {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {name: value}
        )
    return flat


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
