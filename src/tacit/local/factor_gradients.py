"""What a FedRec client computes: one step on its own vector, one gradient row per item it sends.

With ``e_ui = U_u . V_i - r_ui`` and everything from the same old U and V:
gradient of V_i for client u: ``e_ui U_u + reg V_i`` (Eq. 3); of U_u: the mean of ``e_ui V_i + reg U_u`` over
the rated items (Eq. 7, ``user_step="rated"``) or over rated and filler items (``"all"``, FedRec).
A filler's rating is the client's mean rating (average filling), and after round ``t_predict`` its own
prediction after ``t_local`` private steps (hybrid filling, Eq. 1; rounds count from 0, the test is strict).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.factors import ClientStep, Fill, UserStep, client_step
from tacit.kernels.fold import fold
from tacit.kernels.vectors import padded
from tacit.local.work import Broadcast, Inbox, Letters, LocalWork, RowForm, Work
from tacit.rng import Keys
from tacit.schedule import Decaying
from tacit.types import Array, Cohort, Floats, RankOne, Rows


@dataclass(frozen=True)
class FactorGradients(LocalWork):
    """Rated and filler rows to the server; filler rows also to a peer where ``letters`` says so."""

    dim: int
    schedule: Decaying
    reg: float
    user_step: Literal["rated", "all"] = "rated"
    filling: Literal["average", "hybrid"] = "hybrid"
    t_predict: int = 10
    t_local: int = 10
    letters: Literal["none", "fillers"] = "none"

    @property
    def row_form(self) -> RowForm:
        """Eq. 3."""
        return RowForm(self.reg)

    @property
    def writes_letters(self) -> bool:
        """Filler rows to a peer."""
        return self.letters != "none"

    def prepared(self, received: Broadcast) -> Broadcast:
        """The item table with rows padded to whole vectors, once for all clients."""
        return replace(received, arrays={"items": padded(received.arrays["items"])})

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One synchronous step of every client in the cohort."""
        del inbox, keys
        step, rows = self.step(received, private, cohort)
        if self.letters == "none" or cohort.fillers is None:
            return Work({"items": rows}, {"user": step.factors})
        noise = replace(
            rows, starts=rows.starts + step.rated_lengths, lengths=rows.lengths - step.rated_lengths
        )
        peers = cohort.extras["peer"]
        return Work({"items": rows}, {"user": step.factors}, Letters(peers, noise))

    def step(
        self, received: Broadcast, private: Mapping[str, Array], cohort: Cohort
    ) -> tuple[ClientStep, Rows]:
        """The new vectors, and the gradient rows they leave behind."""
        table: Floats = received.arrays["items"]
        factors: Floats = private["user"]
        predicting = self.filling == "hybrid" and received.round > self.t_predict
        filled = Fill.PREDICTED if predicting else Fill.AVERAGE
        step = client_step(
            cohort.offsets,
            cohort.items,
            cohort.values,
            cohort.fillers,
            factors,
            table,
            self.dim,
            rate=self.schedule.at(received.round),
            reg=self.reg,
            fill=filled if cohort.fillers else Fill.NONE,
            local_steps=self.t_local if predicting else 0,
            user_step=UserStep.ALL if self.user_step == "all" else UserStep.RATED,
        )
        return step, Rows(step.starts, step.lengths, step.ids, RankOne(step.coef, factors, table, self.reg))


@dataclass(frozen=True)
class Denoising(LocalWork):
    """A denoising client: its own rated gradients minus the filler rows it was sent (Eq. 9, negated).

    Its message is *added* at the server, so Eq. 5's subtraction becomes a sum of negated rows; each row's
    count says how many people it adds: 1 if the denoiser rated the item, less those who only filled it.
    """

    own: FactorGradients
    grid: int = 0

    def prepared(self, received: Broadcast) -> Broadcast:
        """As for the denoiser's own gradients."""
        return self.own.prepared(received)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Fold the letters into the denoiser's own rows, and take its own step."""
        del keys
        if inbox is None:
            raise TacitError("a denoiser without letters", "run it after an exchange that sends them")
        if _on_grid(inbox.rows) != (self.grid > 0):
            raise TacitError(
                "a denoiser and its letters disagree about whole numbers", "use --set sums=grid for both"
            )
        step, mine = self.own.step(received, private, cohort)
        noise = fold(
            inbox.rows,
            mine,
            inbox.offsets,
            inbox.members,
            catalogue=cohort.catalogue,
            bits=self.grid or None,
            precise=not self.grid,
        )
        assert not isinstance(noise.values, RankOne)
        assert noise.counts is not None
        sent = -noise.values if self.grid else -noise.values.astype(step.factors.dtype)
        rows = replace(noise, values=sent, counts=-noise.counts)
        return Work({"items": rows}, {"user": step.factors})


def _on_grid(rows: Rows) -> bool:
    if isinstance(rows.values, RankOne):
        return rows.values.grid > 0
    return bool(np.issubdtype(rows.values.dtype, np.integer))
