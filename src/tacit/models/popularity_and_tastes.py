"""A shared popularity, and a few shared directions in which people differ from it; tastes stay private."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.models.model import Model, Scorer
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index


@dataclass(frozen=True)
class PopularityAndTastes:
    """Scores: everybody's popularity plus one's own part along the shared directions."""

    popularity: Floats
    directions: Floats
    tastes: Floats

    def scores(self, users: Index) -> Floats:
        """One row per user."""
        return self.popularity + self.tastes[users] @ self.directions.T

    def predict(self, users: Index, items: Index) -> Floats:
        """One number per pair."""
        return self.popularity[items] + np.einsum("ud,ud->u", self.tastes[users], self.directions[items])


@dataclass(frozen=True)
class PopularityModel(Model):
    """``x_i = popularity_i + directions_i . z + e_i``: whether an item was met, with a normal ``z``.

    A device estimates its owner's ``z`` from its true history; no directions (``dim=0``): popularity alone.
    ``chosen`` items are those that directions may touch. ``doubt`` is the standard deviation of the noise in
    their popularity: an item's own variance is that of a share of at least two of them, else those whose
    estimate happens to lie at zero would seem to vary so little that they alone would say who somebody is.
    """

    dim: int
    chosen: int = 0
    adapts: ClassVar[bool] = True

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """Nothing known: all items alike, no directions."""
        del keys
        arrays: dict[str, Any] = {
            "popularity": np.zeros(catalogue, dtype=np.float32),
            "directions": np.zeros((catalogue, self.dim), dtype=np.float32),
        }
        if not self.chosen:
            return arrays
        chosen = np.arange(min(self.chosen, catalogue), dtype=np.int32)
        expected, doubt = np.zeros(len(chosen), dtype=np.float32), np.zeros(1, dtype=np.float32)
        return {**arrays, "chosen": chosen, "expected": expected, "doubt": doubt}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Tastes not known yet."""
        del keys
        return {"taste": np.zeros((len(users), self.dim), dtype=np.float32)}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """Each client's mean ``z`` given its history, on its device.

        With ``e`` independent of variance ``Psi`` and ``L`` the directions it is
        ``(I + L^T Psi^-1 L)^-1 L^T Psi^-1 (x - popularity)``.
        """
        if self.dim == 0:
            return {"taste": np.zeros((len(cohort), 0), dtype=np.float32)}
        weighted, inverse, everywhere = self._fold(shared)
        clients = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
        right = np.repeat(-everywhere[np.newaxis], len(cohort), axis=0)
        np.add.at(right, clients, weighted[cohort.items])
        return {"taste": (right @ inverse).astype(np.float32)}

    def _fold(self, shared: Mapping[str, Array]) -> tuple[Floats, Floats, Floats]:
        """``Psi^-1 L``, the inverse, and ``L^T Psi^-1 popularity``: the same for everybody."""
        doubt = float(shared["doubt"][0]) if "doubt" in shared else 0.0
        least = min(max(1e-4, 2 * doubt), 0.5)
        popularity = np.asarray(shared["popularity"], dtype=np.float64)
        directions = np.asarray(shared["directions"], dtype=np.float64)
        likely = np.clip(popularity, least, 0.99)
        variance = likely * (1 - likely)
        rest = np.maximum(variance - (directions**2).sum(axis=1), 0.1 * variance)
        weighted = directions / rest[:, np.newaxis]
        inverse = np.linalg.inv(np.eye(self.dim) + directions.T @ weighted)
        return weighted, inverse, weighted.T @ popularity

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Popularity plus tastes."""
        return PopularityAndTastes(shared["popularity"], shared["directions"], private["taste"])
