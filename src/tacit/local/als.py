"""What a client of implicit factorisation computes: its own vector in closed form, then the items' gradient.

``x = (V^T C V + reg I)^-1 V^T C p`` and, for item ``i``, ``-2 c_i (p_i - x . v_i) x``: as a whole (for
everybody who may see it) or only the entries that a randomiser asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.closed_form import closed_form, rated_coefficients, shared_gram
from tacit.kernels.reports import entry_values
from tacit.kernels.rotation import rotated_table, rotated_values
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, RankOne, Rows


def _with_gram(received: Broadcast) -> Broadcast:
    items: Floats = received.arrays["items"]
    return replace(received, arrays={**received.arrays, "gram": shared_gram(items)})


@dataclass(frozen=True)
class ClosedFormGradient(LocalWork):
    """The client's gradient of the whole item table.

    ``upload="dense"`` sends it as published: one number per item and factor. ``"compact"`` sends the same
    gradient as its rated rows and the upper half of ``x x^T``, from which the sum over clients follows
    exactly; it is smaller and it shows the server no more than the dense form does.
    """

    alpha: float
    reg: float
    upload: Literal["compact", "dense"] = "compact"

    def prepared(self, received: Broadcast) -> Broadcast:
        """Adds ``V^T V``, the same for all clients."""
        return _with_gram(received)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """The vector, then the gradient it leaves behind."""
        del private, inbox, keys
        table: Floats = received.arrays["items"]
        gram: NDArray[np.float64] = received.arrays["gram"]
        x = closed_form(cohort.offsets, cohort.items, table, gram, alpha=self.alpha, reg=self.reg).factors
        coef = rated_coefficients(cohort.offsets, cohort.items, table, x, alpha=self.alpha)
        if self.upload == "dense":
            clients = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
            residuals = 2.0 * (x @ table.T)
            residuals[clients, cohort.items] += coef
            return Work({"items": residuals[:, :, np.newaxis] * x[:, np.newaxis]}, {"user": x})
        starts = cohort.offsets[:-1]
        rows = Rows(starts, np.diff(cohort.offsets), cohort.items, RankOne(coef, x, table, 0.0))
        upper = np.triu_indices(table.shape[1])
        return Work({"items": rows, "gram": x[:, upper[0]] * x[:, upper[1]]}, {"user": x})


@dataclass(frozen=True)
class ClosedFormEntries(LocalWork):
    """Only the entries of the gradient that a randomiser asked for in ``cohort.extras["entries"]``.

    With ``rotated`` these are entries of the gradient clipped to norm ``clip``, turned by a public random
    rotation and multiplied by ``sqrt(entries) / clip``: about standard normal for a user at the clip.
    """

    alpha: float
    reg: float
    rotated: bool = False
    clip: float = 1.0

    def prepared(self, received: Broadcast) -> Broadcast:
        """Adds what is the same for all clients: ``V^T V``, and the rotated table."""
        received = _with_gram(received)
        if not self.rotated:
            return received
        items: Floats = received.arrays["items"]
        turned = rotated_table(items, received.round)
        return replace(received, arrays={**received.arrays, "turned": turned})

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """The vector, then the entries."""
        del private, inbox, keys
        if "entries" not in cohort.extras:
            raise TacitError(
                "local work was asked for no entries", "put a randomiser such as one-bit on the exchange"
            )
        entries: Array = cohort.extras["entries"]
        table: Floats = received.arrays["items"]
        gram: NDArray[np.float64] = received.arrays["gram"]
        solved = closed_form(
            cohort.offsets, cohort.items, table, gram, alpha=self.alpha, reg=self.reg, norms=self.rotated
        )
        x = solved.factors
        if not self.rotated:
            values = entry_values(cohort.offsets, cohort.items, entries, x, table, alpha=self.alpha)
            return Work({"entries": entries, "values": values}, {"user": x})
        norms = 2.0 * np.sqrt(solved.squares) * np.linalg.norm(x, axis=1)
        scales = (1.0 / np.maximum(norms, self.clip)).astype(np.float32)
        values = rotated_values(
            cohort.offsets, cohort.items, entries, x, table, received.arrays["turned"], scales,
            received.round, alpha=self.alpha,
        )  # fmt: skip
        names = {"names": cohort.extras["names"]} if "names" in cohort.extras else {}
        return Work({"entries": entries, "values": values, **names}, {"user": x})
