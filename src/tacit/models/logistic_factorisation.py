"""How likely a person meets an item: the sigmoid of a dot product; only item vectors are shared."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.models.matrix_factorisation import DotProducts, MatrixFactorisation
from tacit.models.model import Model, Scorer, kept_back
from tacit.models.sub_model import SelectedFirst, Unselected, nothing_chosen_yet
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index

NEWTON_STEPS = 12


@dataclass(frozen=True)
class LogisticFactorisation(Model):
    """``score(u, i) = u . v_i``; vectors start as normal numbers of deviation ``spread``.

    With ``sub_model`` only chosen rows are ever sent; ``unselected`` says where the others are ranked.
    ``negatives`` is how much all unmet items together weigh against an own one, for newcomers. ``memory`` is
    for how many rows a device keeps what it has not sent yet (deep gradient compression).
    """

    dim: int
    spread: float = 0.1
    negatives: int = 4
    sub_model: bool = False
    unselected: Unselected = "last"
    fold_reg: float = 1.0
    memory: int = 0

    def _start(self) -> MatrixFactorisation:
        return MatrixFactorisation(self.dim, "normal", self.spread)

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """The item table, and what is known about a sub-model of it."""
        table = self._start().shared(catalogue, keys)
        return {**table, **nothing_chosen_yet(catalogue)} if self.sub_model else table

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Each person's vector, and what their device keeps back."""
        arrays: dict[str, Array] = {}
        if self.memory:
            remedy = "take a smaller data set or dim, or --protect topk:SHARE, which forgets it"
            arrays = kept_back(len(users), {"items": (self.memory, self.dim)}, remedy)
        return arrays | self._start().private(users, keys)

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A newcomer's vector by logistic regression (Newton) on what they met against all they did not."""
        items: Floats = shared["items"]
        known = np.flatnonzero(shared.get("selected", np.ones(len(items))))
        rows = items[known].astype(np.float64)
        vectors = np.zeros((len(cohort), self.dim), dtype=np.float64)
        for client in range(len(cohort)):
            own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
            vectors[client] = self._fitted(rows, np.isin(known, own))
        return {"user": vectors.astype(np.float32)}

    def _fitted(self, rows: Floats, met: Array) -> Floats:
        weights = np.where(met, 1.0, self.negatives * met.sum() / max(1, int((~met).sum())))
        vector = np.zeros(self.dim)
        for _ in range(NEWTON_STEPS):
            chance = 1 / (1 + np.exp(-np.clip(rows @ vector, -30, 30)))
            slope = rows.T @ (weights * (chance - met)) + self.fold_reg * vector
            curve = (rows.T * (weights * chance * (1 - chance))) @ rows + self.fold_reg * np.eye(self.dim)
            vector = vector - np.linalg.solve(curve, slope)
        return vector

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Dot products; rows that were never sent behind all others."""
        inner = DotProducts(private["user"], shared["items"])
        if "selected" not in shared:
            return inner
        return SelectedFirst(inner, shared["selected"].astype(bool), shared["frequency"], self.unselected)
