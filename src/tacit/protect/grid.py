"""Whole numbers in place of floats, so that sums do not depend on order, and secure sums can work."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.kernels.rows import materialise, materialise_grid
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed, Keys
from tacit.settings import Between, Positive, checked
from tacit.types import Arrays, RankOne, RoundFacts, Rows, Steps


@dataclass(frozen=True)
class Grid(Protection):
    """Every value rounded to a whole number of ``2**-bits`` and sent as a 64-bit integer.

    Sums are then exact: any grouping, order or number of threads gives the same bits. The rounding error
    of an entry is at most ``2**-(bits + 1)``; a sum stays exact while its size is below ``2**(63 - bits)``.
    Where a bound is set on what a client sends, entries are rounded towards zero, by less than ``2**-bits``:
    the nearest step could be further out, and many of them add up to a longer vector than was clipped.
    With a ``limit`` entries beyond it are cut to it, so that whoever adds them up knows how far sums reach,
    and an update that is not finite is refused on its device.

    Formal guarantees:
        None of its own. Rounding before noise is safe; rounding after continuous noise would not be the
        Gaussian mechanism any more, so put this before a discrete mechanism only.

    Example:
        >>> half = Rows(np.zeros(1, "i8"), np.ones(1, "i8"), np.zeros(1, "i4"), np.array([[0.5]], "f4"))
        >>> Grid(4).on_client({"items": half}, None, None, np.zeros(1, "u8"))["items"].values
        array([[8]])
    """

    bits: int = 32
    limit: float | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and not 0 < self.limit * 2.0**self.bits < 2.0**62:
            raise TacitError(
                f"a grid of {self.bits} bits up to {self.limit:g}", "limit times 2^bits must stay below 2^62"
            )
        if not 1 <= self.bits <= 48:
            raise TacitError(
                f"a grid of {self.bits} bits", "give 1 to 48; 32 leaves room for sums up to 2**31"
            )

    @property
    def leaves(self) -> Form:
        """Whole steps."""
        return Form.STEPS

    @property
    def reads(self) -> frozenset[Form]:
        """Numbers wherever they are, and whole ones as they are."""
        return frozenset({Form.CHOSEN, Form.STEPS})

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Put every array on the grid."""
        del state, keys
        round_to = np.rint if bound is None else np.trunc
        return {name: self._gridded(array, round_to) for name, array in update.items()}

    def steps(self, incoming: Steps | None) -> Steps:
        """Steps of ``2**-bits``, unless the numbers are whole already."""
        largest = math.inf if self.limit is None else self.limit * 2.0**self.bits
        return incoming or Steps(2.0**-self.bits, largest)

    def _gridded(self, array: Any, round_to: Callable[[Any], Any]) -> Any:
        values = array.values if isinstance(array, Rows) else array
        if isinstance(values, RankOne):
            return self._cut(replace(array, values=replace(values, grid=self.bits)))
        if np.issubdtype(values.dtype, np.floating):
            values = round_to(self._within(values.astype(np.float64)) * 2.0**self.bits).astype(np.int64)
        return replace(array, values=values) if isinstance(array, Rows) else values

    def _within(self, values: Any) -> Any:
        if self.limit is None:
            return values
        if not np.isfinite(values).all():
            raise TacitError("an update is not finite (training diverged)", "lower the step size")
        return np.clip(values, -self.limit, self.limit)

    def _cut(self, rows: Rows) -> Rows:
        """Rows known by their factors stay so unless one of them might reach beyond the limit."""
        known = rows.values
        assert isinstance(known, RankOne)
        if self.limit is None:
            return rows
        ends = np.cumsum(rows.lengths)
        at = np.arange(rows.total) + np.repeat(rows.starts - (ends - rows.lengths), rows.lengths)
        largest = np.abs(known.factors).max(axis=1, initial=0).astype(np.float64)
        tables = np.abs(known.table).max(axis=1, initial=0).astype(np.float64)
        reach = np.abs(known.coef[at]) * np.repeat(largest, rows.lengths) + known.reg * tables[rows.ids[at]]
        if (reach <= self.limit).all():
            return rows
        plain = replace(known, grid=0)
        values = self._within(materialise(replace(rows, values=plain))[at].astype(np.float64))
        whole = np.zeros((len(rows.ids), values.shape[1]), dtype=np.int64)
        whole[at] = np.rint(values * 2.0**self.bits)
        small = at[reach <= self.limit]
        whole[small] = materialise_grid(rows, self.bits)[small]
        return replace(rows, values=whole)

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """Back from whole steps to numbers; counts are counts already."""
        del bound, facts, keys
        step = 2.0**-self.bits
        sums: dict[str, Any] = dict(total)
        return {
            name: array if name.endswith(".count") else array * step for name, array in sums.items()
        }, state

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Rounding proves nothing and spoils nothing."""
        del state, facts
        return claim


@checked
def grid(*, bits: Annotated[int, Between(1, 48)] = 32, limit: Positive | None = None) -> Grid:
    """Round every value to whole steps of ``2**-bits``, and cut what is beyond a limit.

    Example:
        >>> grid(bits=16)
        Grid(bits=16, limit=None)
    """
    return Grid(bits, limit)


PROTECTIONS = {"grid": grid}
