"""A bound on what one person can contribute: the joint Euclidean norm of everything their device sends."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.kernels.rows import materialise
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed
from tacit.settings import Positive, checked
from tacit.types import Array, Arrays, Long, RankOne, RoundFacts, Rows

_ROUNDING = 1e-6


def norms(update: Arrays) -> NDArray[np.float64]:
    """Each client's Euclidean norm over all arrays together; not finite where its update is not.

    Example:
        >>> norms({"a": np.array([[3.0], [1.0]]), "b": np.array([[4.0], [0.0]])})
        array([5., 1.])
    """
    squares = [_squares(_plain(name, array)) for name, array in update.items()]
    if not squares:
        return np.zeros(0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.sum(squares, axis=0))


def scaled(update: Arrays, factors: NDArray[np.float64]) -> dict[str, Array | Rows]:
    """Each client's arrays times its factor; a factor of zero gives zeros, whatever was there.

    Example:
        >>> scaled({"a": np.array([[2.0], [np.nan]])}, np.array([0.5, 0.0]))["a"].tolist()
        [[1.0], [0.0]]
    """
    return {name: _times(_plain(name, array), factors) for name, array in update.items()}


def _plain(name: str, array: Array | Rows) -> Array | Rows:
    """Rows with their numbers written out; whole numbers are refused (their scale is not the update's).

    Half precision is widened: a scaled number must not be rounded up by a thousandth.
    """
    if isinstance(array, Rows) and isinstance(array.values, RankOne):
        array = replace(array, values=materialise(array))
    values = array.values if isinstance(array, Rows) else array
    if not np.issubdtype(values.dtype, np.floating):  # type: ignore[union-attr]
        raise TacitError(f"clipping {name!r} after it was rounded", "put clip(...) before the grid")
    if values.dtype == np.float16:  # type: ignore[union-attr]
        wide = values.astype(np.float32)  # type: ignore[union-attr]
        return replace(array, values=wide) if isinstance(array, Rows) else wide
    return array


def _places(rows: Rows) -> tuple[Long, Long]:
    """The client of each sparse row, and where its numbers are."""
    ends = np.cumsum(rows.lengths)
    clients = np.repeat(np.arange(rows.clients), rows.lengths)
    return clients, np.arange(len(clients)) + np.repeat(rows.starts - (ends - rows.lengths), rows.lengths)


def _squares(array: Array | Rows) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(array, Rows):
            clients, places = _places(array)
            values = array.values[places].astype(np.float64)  # type: ignore[index]
            squares = np.square(values).sum(axis=1)
            return np.bincount(clients, squares, minlength=array.clients).astype(np.float64)
        flat = array.reshape(len(array), -1).astype(np.float64)
        return np.einsum("ij,ij->i", flat, flat)


def _times(array: Array | Rows, factors: NDArray[np.float64]) -> Array | Rows:
    if isinstance(array, Rows):
        clients, places = _places(array)
        values = array.values.copy()  # type: ignore[union-attr]
        values[places] = _product(values[places], factors[clients])
        return replace(array, values=values)
    return _product(array, factors)


def _product(values: Any, factors: NDArray[np.float64]) -> Array:
    wide = factors.reshape(-1, *[1] * (values.ndim - 1)).astype(values.dtype)
    with np.errstate(invalid="ignore"):
        return np.where(wide == 0, np.zeros((), values.dtype), values * wide)


def shrunk(lengths: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """The factor that brings each length to at most ``size``; zero for a length that is not a number.

    Example:
        >>> shrunk(np.array([0.5, 4.0, np.nan]), 1.0).round(3).tolist()
        [1.0, 0.25, 0.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = np.where(lengths > size, size * (1 - _ROUNDING) / lengths, 1.0)
    return np.where(np.isfinite(lengths), factors, 0.0)


@dataclass(frozen=True)
class Clip(Protection):
    """Scale a client's whole update down to a norm of ``size`` where it is longer.

    Formal guarantees:
        One person changes the sum by at most ``size`` (twice that when replaced by another). Alone it
        promises nobody anything: noise has to follow.

    ===========================  ====================================================
    edge case                    what happens
    ===========================  ====================================================
    norm at most ``size``        nothing changes, to the bit
    longer                       scaled to just below ``size``, so that rounding cannot exceed it
    not a number, infinite       refused: zeros are sent in its place
    sparse rows                  values are clipped; their ids still show what was touched
    ===========================  ====================================================

    Example:
        >>> Clip(1.0).on_client({"a": np.array([[3.0, 4.0]])}, None, None, np.zeros(1, "u8"))["a"].round(4)
        array([[0.6, 0.8]])
    """

    size: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.size) and self.size > 0):
            raise TacitError(f"a clip norm of {self.size}", "give a finite number above zero")

    @property
    def reads(self) -> frozenset[Form]:
        """Numbers, wherever they are."""
        return frozenset({Form.CHOSEN})

    def bound(self, incoming: Bound | None) -> Bound:
        """At most ``size``, or less if it was less already."""
        known = incoming is not None and incoming.order <= 2
        return incoming if known and incoming.size < self.size else Bound(2, self.size)  # type: ignore[union-attr,return-value]

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Clip all arrays jointly."""
        del bound, state, keys
        return scaled(update, shrunk(norms(update), self.size)) if update else update

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Nothing is promised yet, but contributions are bounded."""
        del state, facts
        return claim.with_bound(self.bound(claim.bound))


@checked
def clip(*, size: Positive = 1.0) -> Clip:
    """Scale each person's whole update to a norm of at most ``size``.

    Example:
        >>> clip(size=0.5)
        Clip(size=0.5)
    """
    return Clip(size)


PROTECTIONS = {"clip": clip}
