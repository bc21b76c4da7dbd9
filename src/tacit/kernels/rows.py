"""Sparse rows into totals: added up, written out, rounded to a grid.

A row known by its factors is ``coef * factor + reg * V_i``. Adding up, the part ``reg * V_i`` is left out and
added once per item by :func:`finish`: ``counts`` says how many people stand behind each row of a total. On a
grid of ``2^-bits`` every entry, that part included, is rounded before it is summed, as a device would round
it: integer sums are exact, so neither order nor grouping can change a bit of them.
"""

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import Number, kernel
from tacit.kernels.scatter import (
    Sign,
    add_counted,
    add_scaled,
    add_scaled_grid,
    add_table,
    add_written,
    check,
    people,
    rank_one,
    step_scale,
    tally,
    written,
)
from tacit.types import Floats, Long, Rows


def add_rows(total: Floats, counts: Long, rows: Rows, *, sign: Sign = 1) -> None:
    """Add ``sign * coef * factor`` to rows of ``total`` and ``sign`` to ``counts``, client after client.

    ``total`` has rows of ``dim`` numbers or more (padded); what is beyond ``dim`` stays zero.

    Example:
        >>> from tacit.types import RankOne
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.zeros((2, 2), "f4"), 0.0)
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)
        >>> total, counts = np.zeros((2, 2), "f4"), np.zeros(2, "i8")
        >>> add_rows(total, counts, rows)
        >>> total.tolist(), counts.tolist()
        ([[0.0, 0.0], [2.0, 6.0]], [0, 1])
    """
    known = rank_one(rows)
    check(rows, len(total), total.shape[1], known.factors.shape[1])
    if len(counts) != len(total):
        raise TacitError(f"{len(total)} sums, {len(counts)} counts", "give one of each per item")
    if len({known.coef.dtype, known.factors.dtype, total.dtype}) != 1:
        raise TacitError(
            f"coefficients in {known.coef.dtype}, a total in {total.dtype}", "use one type for both"
        )
    add_counted(total, counts, rows, known, sign)


def finish(total: Floats, counts: Long, table: Floats, reg: float) -> None:
    """Add the part that :func:`add_rows` leaves out: ``reg * counts * table``.

    Example:
        >>> total = np.ones((1, 2), "f4")
        >>> finish(total, np.array([3]), np.array([[1, 2]], "f4"), 0.5)
        >>> total.tolist()
        [[2.5, 4.0]]
    """
    if len(table) != len(total) or len(counts) != len(total):
        raise TacitError(
            f"{len(total)} sums, {len(counts)} counts, {len(table)} rows", "give one of each per item"
        )
    _finish(total, counts, table, total.dtype.type(reg))


@kernel
def _finish(total: Floats, counts: Long, table: Floats, reg: Number) -> None:
    for row in range(len(total)):
        share = reg * total.dtype.type(counts[row])
        for k in range(min(total.shape[1], table.shape[1])):
            total[row, k] += share * table[row, k]


def add_rows_grid(total: Long, counts: Long, rows: Rows, *, bits: int, sign: Sign = 1) -> None:
    """Add rows rounded to the grid ``2^-bits`` as whole numbers; nothing is left for :func:`finish`.

    Sums wrap around at 2^64, as those of a secure sum do.

    Example:
        >>> from tacit.types import RankOne
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.ones((2, 2), "f4"), 0.5)
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)
        >>> total, counts = np.zeros((2, 2), "i8"), np.zeros(2, "i8")
        >>> add_rows_grid(total, counts, rows, bits=1)
        >>> total.tolist()
        [[0, 0], [5, 13]]
    """
    known = rank_one(rows)
    check(rows, len(total), total.shape[1], known.factors.shape[1])
    add_scaled_grid(total, rows, rows.ids, known, step_scale(bits) * sign)
    tally(counts, rows, rows.ids, people(rows), sign)


def add_values(
    total: Floats, counts: Long, rows: Rows, *, sign: Sign = 1, table: Floats | None = None, reg: float = 0.0
) -> None:
    """Add rows whose values are written out, each for as many people as its count says (one without counts).

    Where the values hold ``reg * V_i`` per person and :func:`finish` will be called, give ``table`` and
    ``reg``: that part is taken off again here, so that it is not counted twice.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "f4"))
        >>> total, counts = np.zeros((2, 2), "f4"), np.zeros(2, "i8")
        >>> add_values(total, counts, rows, sign=-1)
        >>> total.tolist(), counts.tolist()
        ([[0.0, 0.0], [-1.0, -3.0]], [0, -1])
    """
    values = written(rows)
    check(rows, len(total), total.shape[1], values.shape[1])
    behind = people(rows)
    if values.dtype != total.dtype or (table is not None and table.dtype != total.dtype):
        raise TacitError(f"values in {values.dtype}, a total in {total.dtype}", "use one type for both")
    add_written(total, rows, rows.ids, values, sign)
    if table is not None and reg != 0:
        add_table(total, rows, rows.ids, behind, table, -sign * reg)
    tally(counts, rows, rows.ids, behind, sign)


def add_values_grid(total: Long, counts: Long, rows: Rows, *, sign: Sign = 1) -> None:
    """Add rows whose values are whole steps of the grid already.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "i8"))
        >>> total, counts = np.zeros((2, 2), "i8"), np.zeros(2, "i8")
        >>> add_values_grid(total, counts, rows)
        >>> total.tolist()
        [[0, 0], [1, 3]]
    """
    values = written(rows)
    check(rows, len(total), total.shape[1], values.shape[1])
    if values.dtype != np.int64 or total.dtype != np.int64:
        raise TacitError(
            f"values in {values.dtype}, a total in {total.dtype}", "round to int64 on the client's side"
        )
    add_written(total, rows, rows.ids, values, sign)
    tally(counts, rows, rows.ids, people(rows), sign)


def materialise(rows: Rows) -> Floats:
    """The numbers ``coef * factor + reg * V_i`` of rows known by their factors, one row per stored position.

    Example:
        >>> from tacit.types import RankOne
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.ones((2, 2), "f4"), 0.5)
        >>> materialise(Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)).tolist()
        [[2.5, 6.5]]
    """
    known = rank_one(rows)
    dim = known.factors.shape[1]
    check(rows, len(known.table), known.table.shape[1], dim)
    values, every = (
        np.zeros((len(rows.ids), dim), known.factors.dtype),
        np.arange(len(rows.ids), dtype=np.int32),
    )
    add_scaled(values, rows, every, known, 1)
    if known.reg != 0:
        add_table(values, rows, every, people(rows), known.table, known.reg)
    return values


def materialise_grid(rows: Rows, bits: int) -> Long:
    """The same numbers in whole steps of ``2^-bits``.

    Example:
        >>> from tacit.types import RankOne
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.ones((2, 2), "f4"), 0.5)
        >>> materialise_grid(Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known), 1).tolist()
        [[5, 13]]
    """
    known = rank_one(rows)
    dim = known.factors.shape[1]
    check(rows, len(known.table), known.table.shape[1], dim)
    values = np.zeros((len(rows.ids), dim), dtype=np.int64)
    add_scaled_grid(values, rows, np.arange(len(rows.ids), dtype=np.int32), known, step_scale(bits))
    return values
