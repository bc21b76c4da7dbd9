"""Item neighbours and implicit-feedback ALS through the library ``implicit`` (the extra ``baselines``)."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit.errors import TacitError
from tacit.models.baselines.fitted import Known, Scores, chosen_rows, within
from tacit.types import Index


@dataclass(frozen=True)
class ItemNeighbours:
    """Scores are the summed similarities of an item to what the user met.

    Example:
        >>> history = sparse.csr_array(np.array([[1, 1, 0]], "f4"))
        >>> similar = sparse.csr_array(np.array([[1, 0, 0.5], [0, 1, 0.25], [0, 0, 1]], "f4"))
        >>> ItemNeighbours(history, similar).scores(np.array([0], "i4")).tolist()
        [[1.0, 1.0, 0.75]]
    """

    history: sparse.csr_array
    similar: sparse.csr_array

    def scores(self, users: Index) -> Scores:
        """One row per user; items that neighbour nothing in the history score 0 and tie."""
        return (chosen_rows(self.history, users) @ self.similar).toarray().astype(np.float32, copy=False)


@dataclass(frozen=True)
class Factors:
    """Scores are products of a user's and an item's vector.

    Example:
        >>> Factors(np.array([[1, 2]], "f4"), np.array([[3, 0], [0, 1]], "f4")).scores(
        ...     np.array([0], "i4")
        ... ).tolist()
        [[3.0, 2.0]]
    """

    user: Scores
    item: Scores

    def scores(self, users: Index) -> Scores:
        """One row per user."""
        return self.user[users] @ self.item.T


def item_neighbours(known: Known, *, neighbours: int = 100, threads: int = 0) -> ItemNeighbours:
    """Cosine item-to-item neighbours; every interaction counts as a positive, whatever its rating.

    Args:
        known: Similarities come from training, histories from training and support.
        neighbours: How many similar items each item passes a user's interest on to, 1 to 100,000.
        threads: How many cores may work, 0 for all; the result is the same.

    Returns:
        The kept similarities with everyone's history.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 0, 1], "i4"), np.array([0, 1, 1], "i4"), np.ones(3, "f4"))
        >>> known = Known(log, users=2, items=2, keys=SeededKeys(0))
        >>> item_neighbours(known, threads=1).similar.toarray().round(3)
        array([[1.   , 0.707],
               [0.707, 1.   ]], dtype=float32)
    """
    within("neighbours", neighbours, 1, 100_000)
    within("threads", threads, 0, 1024)
    # The most similar item is the item itself, hence one more than asked for.
    kept = min(neighbours + 1, known.items)
    model = _module("nearest_neighbours").ItemItemRecommender(K=kept, num_threads=threads)
    met = sparse.csr_matrix(known.learned())
    lengths = np.sqrt(np.bincount(met.indices, minlength=known.items))
    met.data = (1 / lengths[met.indices]).astype(np.float64)
    with _one_blas_thread():
        model.fit(met, show_progress=False)
    similar = sparse.csr_array(model.similarity, dtype=np.float32)
    return ItemNeighbours(known.history(), similar)


def implicit_als(
    known: Known,
    *,
    dim: int = 32,
    reg: float = 1.0,
    weight: float = 10.0,
    rounds: int = 15,
    threads: int = 0,
) -> Factors:
    """Matrix factorisation of implicit feedback by alternating least squares (Hu, Koren and Volinsky 2008).

    Every interaction counts as a positive of the same confidence, whatever its rating; all other pairs are
    zeros of confidence 1. The last step solves each user's vector exactly from training and support.

    Args:
        known: Item vectors come from training, user vectors from training and support.
        dim: The length of a vector, 1 to 4096.
        reg: The ridge on vectors, 0 to 10,000.
        weight: The confidence of an interaction, above 0 up to 10,000.
        rounds: How often both sides are solved, 1 to 1000.
        threads: How many cores may work, 0 for all; the result is the same.

    Returns:
        User and item vectors.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 0, 1], "i4"), np.array([0, 1, 1], "i4"), np.ones(3, "f4"))
        >>> known = Known(log, users=2, items=2, keys=SeededKeys(0))
        >>> implicit_als(known, dim=1, threads=1).scores(np.array([0], "i4")).shape
        (1, 2)
    """
    for name, value, low, high in (
        ("dim", dim, 1, 4096),
        ("reg", reg, 0, 1e4),
        ("weight", weight, 1e-6, 1e4),
        ("rounds", rounds, 1, 1000),
        ("threads", threads, 0, 1024),
    ):
        within(name, value, low, high)
    build = _module("als").AlternatingLeastSquares
    with _one_blas_thread():
        model = build(
            factors=dim,
            regularization=reg,
            alpha=weight,
            iterations=rounds,
            use_gpu=False,
            num_threads=threads,
            random_state=known.keys.generator("baseline/ials"),
        )
        model.fit(sparse.csr_matrix(known.learned()), show_progress=False)
        user = model.recalculate_user(np.arange(known.users), sparse.csr_matrix(known.history()))
    return Factors(np.asarray(user, np.float32), np.asarray(model.item_factors, np.float32))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"implicit.{name}")
    except ImportError as missing:
        raise TacitError(
            f"this baseline needs the library implicit ({missing})", "run: pip install 'tacit[baselines]'"
        ) from missing


def _one_blas_thread() -> Any:
    # The library runs its own threads and asks for a single-threaded BLAS; the limit ends with the block.
    return importlib.import_module("threadpoolctl").threadpool_limits(1, "blas")
