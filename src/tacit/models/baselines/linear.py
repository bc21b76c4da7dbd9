"""EASE: a linear item-to-item model in closed form."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from tacit.errors import TacitError
from tacit.models.baselines.fitted import Known, Scores, chosen_rows, within
from tacit.types import Index


@dataclass(frozen=True)
class ItemWeights:
    """Scores are the user's history times a matrix of item-to-item weights.

    Example:
        >>> weights = np.array([[0, 2], [1, 0]], "f4")
        >>> ItemWeights(sparse.csr_array(np.array([[1, 0]], "f4")), weights).scores(
        ...     np.array([0], "i4")
        ... ).tolist()
        [[0.0, 2.0]]
    """

    history: sparse.csr_array
    weights: Scores

    def scores(self, users: Index) -> Scores:
        """One row per user; someone without history gets zeros, so all candidates tie."""
        return np.asarray(chosen_rows(self.history, users) @ self.weights, dtype=np.float32)


def ease(known: Known, *, reg: float = 300.0, most_items: int = 20_000) -> ItemWeights:
    """Fit EASE (Steck 2019): ``P = (X^T X + reg I)^-1`` and ``B = I - P diag(1 / diag P)``, zero diagonal.

    Every training interaction counts as a positive, whatever its rating. The inverse is dense: a catalogue of
    n items takes about 20 n^2 bytes (8 GB at 20,000 items), and time grows with n^3.

    Args:
        known: Weights come from training, histories from training and support.
        reg: The ridge, 0.001 to 1,000,000; hundreds suit data sets of the MovieLens size.
        most_items: Larger catalogues are refused.

    Returns:
        The item-to-item weights with everyone's history.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 0], "i4"), np.array([0, 1], "i4"), np.ones(2, "f4"))
        >>> ease(Known(log, users=1, items=2, keys=SeededKeys(0)), reg=1.0).weights.tolist()
        [[0.0, 0.5], [0.5, 0.0]]
    """
    within("reg", reg, 1e-3, 1e6)
    if known.items > most_items:
        raise TacitError(
            f"EASE on {known.items} items needs about {20 * known.items**2 / 1e9:.0f} GB",
            f"filter the catalogue, raise most_items (now {most_items}), or use ials",
        )
    met = known.learned().astype(np.float64)
    gram = (met.T @ met).toarray()
    gram[np.diag_indices_from(gram)] += reg
    factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    inverse = linalg.cho_solve(factor, np.eye(known.items), overwrite_b=True, check_finite=False)
    weights = (inverse / -np.diag(inverse)).astype(np.float32)
    weights[np.diag_indices_from(weights)] = 0
    return ItemWeights(known.history(), weights)
