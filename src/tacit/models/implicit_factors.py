"""Preferences as dot products, the user's side in closed form: a vector is a function of history and V."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.kernels.closed_form import closed_form, shared_gram
from tacit.models.matrix_factorisation import DotProducts
from tacit.models.model import Model, Scorer
from tacit.rng import Keys, normals
from tacit.types import Array, Cohort, Floats, Index


@dataclass(frozen=True)
class ImplicitFactors(Model):
    """``score(u, i) = x_u . v_i`` with ``x_u`` the ridge regression of what ``u`` met on the item table.

    Every interaction counts as one, whatever its value; confidence is ``1 + alpha`` where there is one. Item
    vectors start as normal numbers of deviation ``spread``. A newcomer is treated as everybody is.
    """

    dim: int
    alpha: float = 0.0
    reg: float = 1e-6
    spread: float = 0.01
    adapts: ClassVar[bool] = True

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """The item table."""
        own = keys.users(np.arange(catalogue, dtype=np.int32), "init/items")
        return {"items": (self.spread * normals(own, self.dim)).astype(np.float32)}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Nothing known yet; the first round computes it."""
        del keys
        return {"user": np.zeros((len(users), self.dim), dtype=np.float32)}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """The closed form, on each device."""
        items: Floats = shared["items"]
        solved = closed_form(
            cohort.offsets, cohort.items, items, shared_gram(items), alpha=self.alpha, reg=self.reg
        )
        return {"user": solved.factors}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Dot products."""
        return DotProducts(private["user"], shared["items"])
