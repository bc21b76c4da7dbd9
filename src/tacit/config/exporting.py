"""A finished run's model as a file for another program."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit import __version__
from tacit.config.serving import Served
from tacit.errors import TacitError
from tacit.export.scoring import scoring_graph
from tacit.models.masked_factorisation import MaskedScorer
from tacit.report.words import data_name
from tacit.runtime.checkpoint import written_whole
from tacit.runtime.folder import RunFolder
from tacit.types import Array

CHECKED = 32  # people whose scores are compared
TOLERANCE = 1e-4  # of the largest score: two programs add single-precision numbers in different orders


@dataclass(frozen=True)
class Exported:
    """A written graph: what it takes, and how far its scores are from Tacit's (``None``: not compared)."""

    path: Path
    inputs: dict[str, int]
    items: int
    bytes: int
    difference: float | None


def exported_onnx(served: Served, run: Path, path: Path) -> Exported:
    """Write the scoring graph and, where ONNX Runtime is installed, compare its scores with Tacit's."""
    if served.model is None:
        raise TacitError(
            f"{served.plan.name} is a baseline without a graph", "export a federated method's run"
        )
    drawing, scores = scoring_graph(served.model, served.shared)
    about = {
        **_about(served, run),
        "inputs": "what a device keeps, one row per person, worked out from the history by Tacit's fold-in",
    }
    items = served.plan.dataset.items
    drawing.written(path, scores, items, about)
    return Exported(
        path, drawing.inputs, items, path.stat().st_size, _difference(served, path, list(drawing.inputs))
    )


def exported_safetensors(served: Served, run: Path, path: Path) -> dict[str, tuple[int, ...]]:
    """Write what the server holds as one file that says what it is; the shapes of its arrays."""
    from safetensors.numpy import save_file  # loads on first use

    if served.model is None:
        raise TacitError(
            f"{served.plan.name} is a baseline: it keeps no model", "export a federated method's run"
        )
    arrays = {name: np.ascontiguousarray(array) for name, array in served.shared.items()}
    # one entry only: the format's library writes several in no fixed order
    about = {"tacit": json.dumps(_about(served, run))}
    written_whole(path, lambda draft: save_file(arrays, draft, about))
    return {name: array.shape for name, array in arrays.items()}


def _about(served: Served, run: Path) -> dict[str, str]:
    """What a model file says of itself."""
    result = RunFolder.opened(run).result()
    return {
        "tacit": __version__,
        "method": served.plan.name,
        "data": data_name(str(result["data"])),
        "item_ids": json.dumps(served.plan.dataset.item_ids.values.tolist()),
        "privacy": json.dumps(result["privacy"]),
    }


def device_rows(served: Served, users: Array, names: list[str]) -> dict[str, Array]:
    """What the graph takes of some people: their private arrays, and what they work out themselves."""
    found = {name: served.private[name][users] for name in names if name in served.private}
    if "mask" in names and isinstance(served.scorer, MaskedScorer):
        mask = served.scorer.mask
        own = {name: array[users] for name, array in served.private.items()}
        items = served.plan.dataset.items
        offsets = np.arange(len(users) + 1, dtype=np.int64) * items
        every = np.tile(np.arange(items, dtype=np.int32), len(users))
        found["mask"] = mask.values(served.shared, own, offsets, every).reshape(len(users), items)
    return {name: np.ascontiguousarray(found[name], dtype=np.float32) for name in names}


def _difference(served: Served, path: Path, names: list[str]) -> float | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    users = served.known.people[:CHECKED]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(["scores"], device_rows(served, users, names))
    ours = served.scorer.scores(users)
    difference = float(np.abs(np.asarray(theirs) - ours).max() / max(1.0, float(np.abs(ours).max())))
    if not difference <= TOLERANCE:
        path.unlink()
        raise TacitError(
            f"the graph's scores differ from Tacit's by {difference:.2g} of the largest", "please report this"
        )
    return difference
