"""The server of a sub-model method: it chooses rows from what people reported; the rest is any other step."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.models.sub_model import chosen, estimated_frequencies
from tacit.server.step import ServerStep
from tacit.types import Array, Floats


@dataclass(frozen=True)
class Choosing(ServerStep):
    """Reads the total ``reports`` (how often each item was reported) if there is one; ``inner`` steps.

    With ``epsilon`` the reports are taken as randomised answers and turned into the likeliest frequencies;
    without, they are used as they are (the paper's ablation, or true reports). Without ``threshold`` those
    above the mean are chosen: the likeliest one given all answers, not the mean of estimates that are held
    above zero, which is too large.
    """

    inner: ServerStep
    epsilon: float | None
    threshold: float | None = None

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The inner optimiser's arrays."""
        return self.inner.init(shared)

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Step on the gradients, then choose what the next round is about."""
        rows = np.flatnonzero(shared["selected"])
        gradients = {
            into: {name: _among(rows, gradient, shared[name]) for name, gradient in total.items()}
            for into, total in totals.items()
            if into != "reports"
        }
        after, state = self.inner.step(shared, gradients, state, round)
        if "reports" in totals:
            told: Floats = totals["reports"]["bits"]
            mean = told.mean(keepdims=True)
            found, limit = (
                share if self.epsilon is None else estimated_frequencies(share, self.epsilon)
                for share in (told, mean)
            )
            above = float(limit[0]) if self.threshold is None else self.threshold
            after["frequency"] = found.astype(np.float32)
            after["selected"] = chosen(found, above).astype(np.uint8)
        return after, state


def _among(rows: Array, gradient: Array, whole: Array) -> Array:
    """The gradient of some rows as that of all: zeros for the others, which a step leaves where they are."""
    if gradient.shape == whole.shape:
        return gradient
    found = np.zeros(whole.shape, dtype=gradient.dtype)
    found[rows] = gradient
    return found
