"""Whole numbers in place of floats, so that sums do not depend on order, and secure sums can work."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.protect.protection import Protection
from tacit.rng import Keyed, Keys
from tacit.settings import Between, checked
from tacit.types import Arrays, RankOne, RoundFacts, Rows


@dataclass(frozen=True)
class Grid(Protection):
    """Every value rounded to a whole number of ``2**-bits`` and sent as a 64-bit integer.

    Sums are then exact: any grouping, order or number of threads gives the same bits. The rounding error
    of an entry is at most ``2**-(bits + 1)``; a sum stays exact while its size is below ``2**(63 - bits)``.

    Formal guarantees:
        None of its own. Rounding before noise is safe; rounding after continuous noise would not be the
        Gaussian mechanism any more, so put this before a discrete mechanism only.

    Example:
        >>> half = Rows(np.zeros(1, "i8"), np.ones(1, "i8"), np.zeros(1, "i4"), np.array([[0.5]], "f4"))
        >>> Grid(4).on_client({"items": half}, None, None, np.zeros(1, "u8"))["items"].values
        array([[8]])
    """

    bits: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 48:
            raise TacitError(
                f"a grid of {self.bits} bits", "give 1 to 48; 32 leaves room for sums up to 2**31"
            )

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Put every array on the grid."""
        del bound, state, keys
        return {name: self._gridded(array) for name, array in update.items()}

    def _gridded(self, array: Any) -> Any:
        values = array.values if isinstance(array, Rows) else array
        if isinstance(values, RankOne):
            return replace(array, values=replace(values, grid=self.bits))
        if np.issubdtype(values.dtype, np.floating):
            values = np.rint(values.astype(np.float64) * 2.0**self.bits).astype(np.int64)
        return replace(array, values=values) if isinstance(array, Rows) else values

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """Back from whole steps to numbers; counts are counts already."""
        del bound, facts, keys
        step = 2.0**-self.bits
        sums: dict[str, Any] = dict(total)
        return {name: array if name.endswith(".count") else array * step for name, array in sums.items()}, state

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Rounding proves nothing and spoils nothing."""
        del state, facts
        return claim


@checked
def grid(*, bits: Annotated[int, Between(1, 48)] = 32) -> Grid:
    """Round every value to whole steps of ``2**-bits``.

    Example:
        >>> grid(bits=16)
        Grid(bits=16)
    """
    return Grid(bits)


PROTECTIONS = {"grid": grid}
