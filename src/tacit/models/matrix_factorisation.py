"""A rating is a dot product: item vectors are shared, user vectors never leave their devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.kernels.pairs import predict_pairs
from tacit.models.model import Model, Scorer
from tacit.rng import Keys, normals, uniforms
from tacit.types import Array, Cohort, Floats, Index


@dataclass(frozen=True)
class DotProducts:
    """Scores people by their vectors, row by row."""

    factors: Floats
    items: Floats

    def scores(self, users: Index) -> Floats:
        """One row of scores per user."""
        return self.factors[users] @ self.items.T

    def predict(self, users: Index, items: Index) -> Floats:
        """One dot product per pair."""
        return predict_pairs(self.factors, self.items, users, items, self.factors.shape[1])


@dataclass(frozen=True)
class MatrixFactorisation(Model):
    """``rating(u, i) = U_u . V_i``, with ``dim`` numbers per person and per item.

    ``spread`` is the half-width of a uniform start or the standard deviation of a normal one. It moves
    accuracy more than most settings: a start near zero is a saddle that takes rounds to leave.
    """

    dim: int
    init: Literal["uniform", "normal"] = "uniform"
    spread: float = 0.005
    fold_reg: float = 1.0
    precision: Literal["float32", "float64"] = "float32"

    def _started(self, users: Index, purpose: str, keys: Keys) -> Floats:
        own = keys.users(users, purpose)
        draw = normals(own, self.dim) if self.init == "normal" else 2.0 * uniforms(own, self.dim) - 1.0
        return (self.spread * draw).astype(self.precision)

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """The item table."""
        return {"items": self._started(np.arange(catalogue, dtype=np.int32), "init/items", keys)}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Each person's vector."""
        return {"user": self._started(users, "init/user", keys)}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A newcomer's vector by ridge regression on what they rated: computed on their device."""
        items: Floats = shared["items"]
        vectors = np.zeros((len(cohort), self.dim), dtype=np.float64)
        for client in range(len(cohort)):
            mine = slice(cohort.offsets[client], cohort.offsets[client + 1])
            known = items[cohort.items[mine]].astype(np.float64)
            gram = known.T @ known + self.fold_reg * np.eye(self.dim)
            vectors[client] = np.linalg.solve(gram, known.T @ cohort.values[mine])
        return {"user": vectors.astype(self.precision)}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Dot products."""
        return DotProducts(private["user"], shared["items"])
