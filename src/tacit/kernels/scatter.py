"""Rows added to wherever they belong: to the rows of a table, or to places of their own.

``targets[p]`` names the row of the total that the stored row ``p`` is added to: for a table, its id.
"""

from typing import Literal

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import Number, Span, dim_of, kernel, span
from tacit.kernels.plain import LARGEST, plain_add, plain_add_grid
from tacit.kernels.stores import scatter, scatter_counted, scatter_grid
from tacit.types import Floats, Index, Long, RankOne, Rows

Sign = Literal[1, -1]


def rank_one(rows: Rows) -> RankOne:
    """The factors of rows that have them.

    Example:
        >>> rank_one(Rows(np.zeros(0, "i8"), np.zeros(0, "i8"), np.zeros(0, "i4"), np.zeros((0, 2), "f4")))
        Traceback (most recent call last):
        tacit.errors.TacitError: these rows have values written out; add them with add_values
    """
    known = rows.values
    if not isinstance(known, RankOne):
        raise TacitError("these rows have values written out", "add them with add_values")
    if rows.counts is not None:
        raise TacitError("rows known by their factors stand for one person each", "leave counts out")
    if len(known.coef) != len(rows.ids) or len(known.factors) != rows.clients:
        raise TacitError(
            f"{len(known.coef)} coefficients and {len(known.factors)} vectors"
            f" for {len(rows.ids)} rows of {rows.clients} clients",
            "give one coefficient per row and one vector per client",
        )
    return known


def written(rows: Rows) -> np.ndarray:
    """The values of rows that are written out.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "f4"))
        >>> written(rows).shape
        (1, 2)
    """
    values = rows.values
    if isinstance(values, RankOne):
        raise TacitError(
            "these rows are known by their factors only", "add them with add_rows, or materialise them"
        )
    if values.ndim != 2 or len(values) != len(rows.ids):
        raise TacitError(
            f"values of shape {values.shape} for {len(rows.ids)} rows", "give one vector per row"
        )
    return values


def people(rows: Rows) -> Index:
    """How many people stand behind each stored row; empty where it is one everywhere.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "f4"))
        >>> len(people(rows))
        0
    """
    if rows.counts is None:
        return np.zeros(0, dtype=np.int32)
    if len(rows.counts) != len(rows.ids):
        raise TacitError(f"{len(rows.counts)} counts for {len(rows.ids)} rows", "give one count per row")
    return rows.counts


def check(rows: Rows, height: int, width: int, dim: int) -> None:
    """Refuse rows that reach outside their arrays, or a table of ``height`` rows of ``width`` numbers.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([7], "i4"), np.array([[1, 3]], "f4"))
        >>> check(rows, 5, 2, 2)
        Traceback (most recent call last):
        tacit.errors.TacitError: a row outside the table of 5; number rows from 0
    """
    ends = rows.starts + rows.lengths
    if rows.clients and (ends.max() > len(rows.ids) or min(rows.starts.min(), rows.lengths.min()) < 0):
        raise TacitError("a client's rows reach outside the ids", "give starts and lengths inside the ids")
    if rows.ids.dtype != np.int32:
        raise TacitError(f"ids in {rows.ids.dtype}", "give int32")
    if len(rows.ids) and np.ascontiguousarray(rows.ids).view(np.uint32).max() >= height:
        raise TacitError(f"a row outside the table of {height}", "number rows from 0")
    if width < dim:
        raise TacitError(
            f"rows of {dim} numbers for a table of {width}", "make the table as wide as the rows"
        )


def step_scale(bits: int) -> float:
    """How many steps of the grid make one.

    Example:
        >>> step_scale(3)
        8.0
    """
    if not 0 <= bits <= 52:
        raise TacitError(f"a grid of {bits} bits", "give 0 to 52 bits after the point")
    return float(2**bits)


def add_scaled(total: np.ndarray, rows: Rows, targets: Index, known: RankOne, sign: Sign) -> None:
    """``total[target] += sign * coef * factor``, the rows of a total named by ``targets`` instead of ids.

    Example:
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.zeros((2, 2), "f4"), 0.0)
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)
        >>> total = np.zeros((1, 2), "f4")
        >>> add_scaled(total, rows, np.array([0], "i4"), known, -1)
        >>> total.tolist()
        [[-2.0, -6.0]]
    """
    dim, number = known.factors.shape[1], total.dtype.type(sign)
    given = (total, rows.starts, rows.lengths, targets, known.coef, known.factors, number)
    if dim > LARGEST:
        plain_add(*given)
    else:
        _add_scaled(span(dim), *given)


def add_counted(total: np.ndarray, counts: np.ndarray, rows: Rows, known: RankOne, sign: Sign) -> None:
    """:func:`add_scaled` to the rows of a table, and :func:`tally` of one person each, in one pass.

    Example:
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.zeros((2, 2), "f4"), 0.0)
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)
        >>> total, counts = np.zeros((2, 2), "f4"), np.zeros(2, "i8")
        >>> add_counted(total, counts, rows, known, 1)
        >>> total.tolist(), counts.tolist()
        ([[0.0, 0.0], [2.0, 6.0]], [0, 1])
    """
    dim, number = known.factors.shape[1], total.dtype.type(sign)
    given = (total, rows.starts, rows.lengths, rows.ids, known.coef, known.factors, number)
    if dim > LARGEST:
        plain_add(*given)
        tally(counts, rows, rows.ids, people(rows), sign)
    else:
        _add_counted(span(dim), *given, counts, counts.dtype.type(sign))


def add_scaled_grid(total: np.ndarray, rows: Rows, targets: Index, known: RankOne, scale: float) -> None:
    """``total[target] += round(scale * (coef * factor + reg * V_id))``.

    Example:
        >>> known = RankOne(np.array([2], "f4"), np.array([[1, 3]], "f4"), np.zeros((2, 2), "f4"), 0.0)
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)
        >>> total = np.zeros((1, 2), "i8")
        >>> add_scaled_grid(total, rows, np.array([0], "i4"), known, -4.0)
        >>> total.tolist()
        [[-8, -24]]
    """
    if total.dtype != np.int64:
        raise TacitError(f"a total in {total.dtype}", "sum a grid in int64")
    step = (rows.starts, rows.lengths, targets, rows.ids, known.coef, known.factors, known.table)
    if known.factors.shape[1] > LARGEST:
        plain_add_grid(total, *step, float(known.reg), scale)
    else:
        _add_scaled_grid(span(known.factors.shape[1]), total, *step, float(known.reg), scale)


def add_written(total: np.ndarray, rows: Rows, targets: Index, values: np.ndarray, sign: Sign) -> None:
    """``total[target] += sign * value``.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "i8"))
        >>> total = np.zeros((1, 2), "i8")
        >>> add_written(total, rows, np.array([0], "i4"), np.array([[1, 3]]), -1)
        >>> total.tolist()
        [[-1, -3]]
    """
    _add_written(total, rows.starts, rows.lengths, targets, values, total.dtype.type(sign))


def add_table(
    total: np.ndarray, rows: Rows, targets: Index, behind: Index | Long, table: Floats, weight: float
) -> None:
    """``total[target] += weight * people * V_id``.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "f4"))
        >>> total = np.zeros((1, 2), "f4")
        >>> add_table(total, rows, np.array([0], "i4"), people(rows), np.array([[1, 2], [3, 4]], "f4"), 0.5)
        >>> total.tolist()
        [[1.5, 2.0]]
    """
    number = total.dtype.type(weight)
    _add_table(total, rows.starts, rows.lengths, targets, rows.ids, behind, table, number)


def tally(counts: np.ndarray, rows: Rows, targets: Index, behind: Index, sign: Sign) -> None:
    """``counts[target] += sign * people``.

    Example:
        >>> rows = Rows(np.array([0]), np.array([1]), np.array([1], "i4"), np.array([[1, 3]], "f4"))
        >>> counts = np.zeros(1, "i8")
        >>> tally(counts, rows, np.array([0], "i4"), people(rows), -1)
        >>> counts.tolist()
        [-1]
    """
    _tally(counts, rows.starts, rows.lengths, targets, behind, sign)


@kernel
def _add_scaled(
    shape: Span,
    total: Floats,
    starts: Long,
    lengths: Long,
    targets: Index,
    coef: Floats,
    factors: Floats,
    sign: Number,
) -> None:
    vector = np.zeros(dim_of(shape), total.dtype)
    for client in range(len(starts)):
        for k in range(factors.shape[1]):
            vector[k] = sign * factors[client, k]
        scatter(shape, total, targets, starts[client], lengths[client], coef, vector)


@kernel
def _add_counted(
    shape: Span,
    total: Floats,
    starts: Long,
    lengths: Long,
    targets: Index,
    coef: Floats,
    factors: Floats,
    sign: Number,
    counts: np.ndarray,
    people: int,
) -> None:
    vector = np.zeros(dim_of(shape), total.dtype)
    for client in range(len(starts)):
        for k in range(factors.shape[1]):
            vector[k] = sign * factors[client, k]
        scatter_counted(shape, total, targets, starts[client], lengths[client], coef, vector, counts, people)


@kernel
def _add_scaled_grid(
    shape: Span,
    total: Long,
    starts: Long,
    lengths: Long,
    targets: Index,
    ids: Index,
    coef: Floats,
    factors: Floats,
    table: Floats,
    reg: float,
    scale: float,
) -> None:
    vector = np.zeros(dim_of(shape), factors.dtype)
    for client in range(len(starts)):
        vector[:] = factors[client]
        scatter_grid(
            shape, total, targets, ids, starts[client], lengths[client], coef, vector, table, reg, scale
        )


@kernel
def _add_written(
    total: np.ndarray, starts: Long, lengths: Long, targets: Index, values: np.ndarray, sign: Number
) -> None:
    for client in range(len(starts)):
        for place in range(starts[client], starts[client] + lengths[client]):
            row = np.uint32(targets[place])
            for k in range(values.shape[1]):
                total[row, k] += sign * values[place, k]


@kernel
def _add_table(
    total: Floats,
    starts: Long,
    lengths: Long,
    targets: Index,
    ids: Index,
    behind: np.ndarray,
    table: Floats,
    weight: Number,
) -> None:
    for client in range(len(starts)):
        for place in range(starts[client], starts[client] + lengths[client]):
            row, item = np.uint32(targets[place]), np.uint32(ids[place])
            share = weight if len(behind) == 0 else weight * total.dtype.type(behind[place])
            for k in range(min(total.shape[1], table.shape[1])):
                total[row, k] += share * table[item, k]


@kernel
def _tally(
    counts: np.ndarray, starts: Long, lengths: Long, targets: Index, behind: np.ndarray, sign: int
) -> None:
    for client in range(len(starts)):
        for place in range(starts[client], starts[client] + lengths[client]):
            counts[np.uint32(targets[place])] += sign if len(behind) == 0 else sign * behind[place]
