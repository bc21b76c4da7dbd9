"""Tables travel as the product of two thin matrices."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.kernels.packed import LEFT, RIGHT
from tacit.kernels.rows import materialise
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed
from tacit.settings import Count, checked
from tacit.types import Array, Arrays, Floats, RankOne, RoundFacts, Rows, Steps


def directions(table: Floats, rank: int) -> Floats:
    """The ``rank`` right singular vectors of a table that hold most of it, one per row.

    Example:
        >>> np.abs(directions(np.array([[0.0, 2.0], [0.0, 1.0]]), 1)).tolist()
        [[0.0, 1.0]]
    """
    wide = table.astype(np.float64)
    _, vectors = np.linalg.eigh(wide.T @ wide)
    return np.ascontiguousarray(vectors[:, ::-1][:, :rank].T)


@dataclass(frozen=True)
class LowRank(Protection):
    """Each table of an update as its best approximation of rank ``rank``: ``(table Rᵀ) R``.

    ``R`` holds the leading right singular vectors, one set per client and array; ``rank * (rows + columns)``
    numbers travel. The squared error is the sum of the squared singular values that are left out.

    Formal guarantees:
        None of its own. After noise on every entry it takes nothing away from what the noise promises. Its
        factors are as long as they are, so no clip and no noise can follow, nor can it follow noise that the
        server adds.

    ================================  ===========================================
    edge case                         what happens
    ================================  ===========================================
    rank not below rows or columns    the array travels as it is
    vectors                           travel as they are
    rows with ids                     their values are factored, the ids travel
    ================================  ===========================================
    """

    rank: int

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise TacitError(f"svd of rank {self.rank}", "give a rank of at least 1, as svd:16")

    @property
    def leaves(self) -> Form:
        """Factors."""
        return Form.FACTORS

    @property
    def reads(self) -> frozenset[Form]:
        """Arrays of numbers, and what is left of their rows."""
        return frozenset({Form.CHOSEN})

    def steps(self, incoming: Steps | None) -> None:
        """Not whole numbers that could be added up under masks."""
        del incoming

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Factor every table."""
        del bound, state, keys
        found: dict[str, Array | Rows] = {}
        for name, array in update.items():
            if isinstance(array, Rows):
                found |= self._rows(name, array)
            elif array.ndim == 3 and self.rank < min(array.shape[1:]):
                right = np.stack([directions(one, self.rank) for one in array]).astype(array.dtype)
                found[name + LEFT] = array @ right.transpose(0, 2, 1)
                found[name + RIGHT] = right
            else:
                found[name] = array
        return found

    def _rows(self, name: str, rows: Rows) -> dict[str, Array | Rows]:
        values = materialise(rows) if isinstance(rows.values, RankOne) else rows.values
        if rows.cells or self.rank >= values.shape[1]:
            return {name: rows}
        left = np.zeros((len(rows.ids), self.rank), dtype=values.dtype)
        right = np.zeros((rows.clients, self.rank, values.shape[1]), dtype=values.dtype)
        for client in range(rows.clients):
            mine = slice(int(rows.starts[client]), int(rows.starts[client] + rows.lengths[client]))
            right[client] = directions(values[mine], self.rank)
            left[mine] = values[mine] @ right[client].T
        return {name + LEFT: replace(rows, values=left), name + RIGHT: right}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """What was private stays private; what was not is not."""
        del state, facts
        return claim


@checked
def svd(*, rank: Count = 16) -> LowRank:
    """Send each table as two thin factors of this rank.

    Example:
        >>> svd(rank=4)
        LowRank(rank=4)
    """
    return LowRank(rank)


PROTECTIONS = {"svd": svd}
