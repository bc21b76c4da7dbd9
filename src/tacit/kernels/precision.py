"""Rows in double precision, for sums in which much is added only to be taken out again."""

from dataclasses import replace

import numpy as np

from tacit.types import RankOne, Rows


def widened(rows: Rows) -> Rows:
    """The same rows with values in double precision; whole numbers stay as they are.

    The table of rows known by their factors is left alone: kernels widen its numbers as they read them.

    Example:
        >>> one = np.zeros(1, "i8")
        >>> widened(Rows(one, one + 1, np.zeros(1, "i4"), np.ones((1, 2), "f4"))).values.dtype
        dtype('float64')
    """
    known = rows.values
    if isinstance(known, RankOne):
        if known.grid:
            return rows
        return replace(rows, values=replace(known, coef=_double(known.coef), factors=_double(known.factors)))
    return rows if np.issubdtype(known.dtype, np.integer) else replace(rows, values=_double(known))


def _double(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64, copy=False)
