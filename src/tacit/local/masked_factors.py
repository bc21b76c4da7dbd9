"""What a FedMMF client computes: its own model once, then summed gradients on what that leaves over.

With ``r_ui`` the masked rating and ``e_ui = r_ui - q_i . p_u``, for the items ``K_u`` that u rated:
``p_u <- p_u - rate * sum over K_u of (reg p_u - e_ui q_i)`` (Eq. 7 with the sign of Eq. 4), then, from the
*new* ``p_u``, ``reg q_i - e_ui p_u`` for each rated item (Eq. 6; Section 2.2.1, Steps 2 and 3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.kernels.factors import client_step
from tacit.kernels.vectors import padded
from tacit.local.work import Broadcast, Inbox, LocalWork, RowForm, Work
from tacit.models.masked_factorisation import Mask
from tacit.rng import Keys
from tacit.schedule import Decaying
from tacit.types import Array, Cohort, Floats, RankOne, Rows


@dataclass(frozen=True)
class FitsMask(LocalWork):
    """Fits the private model on its device and sends nothing (Algorithm 2, lines 4 to 7)."""

    mask: Mask

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Look at one's own ratings."""
        del received, private, inbox
        return Work({}, self.mask.fitted(cohort, keys))


@dataclass(frozen=True)
class TellsMean(LocalWork):
    """Sends the sum and the number of one's ratings: for the control that takes everybody's mean off."""

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Two numbers."""
        del received, inbox, keys
        owners = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
        sums = np.bincount(owners, weights=cohort.values, minlength=len(cohort))
        told = np.stack([sums, np.diff(cohort.offsets)], axis=1).astype(np.float32)
        return Work({"told": told}, private)


@dataclass(frozen=True)
class MaskedGradients(LocalWork):
    """``MaskedUpdate`` of Algorithm 2, lines 17 to 22."""

    dim: int
    schedule: Decaying
    reg: float
    mask: Mask

    @property
    def row_form(self) -> RowForm:
        """Rows of a squared error's gradient, in the masked rating where something is taken off."""
        return RowForm(self.reg, masked=self.mask.form is not None or self.mask.common)

    def prepared(self, received: Broadcast) -> Broadcast:
        """The item table with rows padded to whole vectors, once for all clients."""
        return replace(received, arrays={**received.arrays, "items": padded(received.arrays["items"])})

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One's own vector first, then the items' gradients with it."""
        del inbox, keys
        table: Floats = received.arrays["items"]
        old: Floats = private["user"]
        over = cohort.values - self.mask.values(received.arrays, private, cohort.offsets, cohort.items)
        counts = np.diff(cohort.offsets)[:, np.newaxis].astype(old.dtype)
        given = cohort.offsets, cohort.items, over, None
        # A step of size one without regulariser leaves the mean of -e q behind, as a difference.
        mean = old - client_step(*given, old, table, self.dim, rate=1.0, reg=0.0).factors
        rate = old.dtype.type(self.schedule.at(received.round))
        new = old - rate * counts * (old.dtype.type(self.reg) * old + mean)
        step = client_step(*given, new, table, self.dim, rate=0.0, reg=0.0)
        rows = Rows(step.starts, step.lengths, step.ids, RankOne(step.coef, new, table, self.reg))
        return Work({"items": rows}, {"user": new})
