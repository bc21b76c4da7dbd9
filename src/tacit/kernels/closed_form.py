"""User vectors in closed form, and the gradient of the items that nobody has to hold in full.

With binary preferences ``p``, confidences ``c = 1 + alpha p`` and the item table ``V``, a user's best vector
is ``x = (V^T C V + reg I)^-1 V^T C p``: the part of ``V^T C V`` that everybody shares is formed once. The
user's gradient with respect to item ``i`` is ``-2 c_i (p_i - x . v_i) x``. What it says of items the user
never met is ``2 (x x^T) v_i``, so the sum over users needs rated rows and one small symmetric matrix, never
items times users.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Floats, Index, Long

Doubles = NDArray[np.float64]


class Solved(NamedTuple):
    """Each client's vector, and ``sum_i (c_i (p_i - x . v_i))^2`` over the whole catalogue (0: not asked)."""

    factors: Floats
    squares: Doubles


def shared_gram(table: Floats) -> Doubles:
    """``V^T V`` in double precision: the same for everybody, formed once per round.

    Example:
        >>> shared_gram(np.array([[1, 0], [1, 2]], "f4"))
        array([[2., 2.],
               [2., 4.]])
    """
    wide = table.astype(np.float64)
    return wide.T @ wide


def closed_form(
    offsets: Long,
    items: Index,
    table: Floats,
    gram: Doubles,
    *,
    alpha: float,
    reg: float,
    norms: bool = False,
) -> Solved:
    """Every client's vector, given everybody's ``V^T V``.

    Args:
        offsets: Where each client's items start, and where the last one's end.
        items: The items, client after client.
        table: The item table ``V``.
        gram: ``V^T V`` of that table.
        alpha: Confidence of a preference beyond that of its absence.
        reg: Ridge; above zero, so that the vector is always defined.
        norms: Whether the squared residuals are wanted; they cost a second pass.

    Returns:
        The vectors in the table's precision, and each client's squared residual for norms.

    Example:
        >>> table = np.eye(2, dtype="f4")
        >>> solved = closed_form(
        ...     np.array([0, 1]),
        ...     np.array([0], "i4"),
        ...     table,
        ...     shared_gram(table),
        ...     alpha=0.0,
        ...     reg=1.0,
        ...     norms=True,
        ... )
        >>> solved.factors, solved.squares
        (array([[0.5, 0. ]], dtype=float32), array([0.25]))
    """
    if not (alpha >= 0 and reg > 0):
        raise TacitError(f"alpha={alpha} and reg={reg}", "give alpha of at least 0 and reg above 0")
    clients, dim = len(offsets) - 1, table.shape[1]
    factors = np.empty((clients, dim), dtype=table.dtype)
    squares = np.zeros(clients, dtype=np.float64)
    inverse: Doubles = np.linalg.inv(gram + reg * np.eye(dim)).astype(np.float64)
    _solve(offsets, items, table, gram, inverse, float(alpha), float(reg), int(norms), factors, squares)
    return Solved(factors, squares)


@kernel
def _solve(
    offsets: Long,
    items: Index,
    table: Floats,
    gram: Doubles,
    inverse: Doubles,
    alpha: float,
    reg: float,
    norms: int,
    factors: Floats,
    squares: Doubles,
) -> None:
    dim = table.shape[1]
    right, x = np.empty(dim), np.empty(dim)
    matrix = np.empty((dim, dim))
    for client in range(len(offsets) - 1):
        first, last = offsets[client], offsets[client + 1]
        right[:] = 0.0
        for position in range(first, last):
            item = items[position]
            for f in range(dim):
                right[f] += table[item, f]
        if alpha == 0.0:
            for f in range(dim):
                total = 0.0
                for g in range(dim):
                    total += inverse[f, g] * right[g]
                x[f] = total
        else:
            _weighted(items, first, last, table, gram, alpha, reg, matrix)
            for f in range(dim):
                x[f] = (1.0 + alpha) * right[f]
            _cholesky_solve(matrix, x)
        for f in range(dim):
            factors[client, f] = x[f]
        if not norms:
            continue
        # Over all items the squared residuals are x^T (V^T V) x, then corrected where the user rated.
        square = 0.0
        for f in range(dim):
            for g in range(dim):
                square += x[f] * gram[f, g] * x[g]
        for position in range(first, last):
            item = items[position]
            score = 0.0
            for f in range(dim):
                score += x[f] * table[item, f]
            square += (1.0 + alpha) ** 2 * (1.0 - score) ** 2 - score**2
        squares[client] = max(square, 0.0)


@kernel
def _weighted(
    items: Index,
    first: int,
    last: int,
    table: Floats,
    gram: Doubles,
    alpha: float,
    reg: float,
    matrix: Doubles,
) -> None:
    """``V^T C V + reg I`` of one client; the lower half is enough."""
    dim = len(matrix)
    matrix[:] = 0.0
    for position in range(first, last):
        item = items[position]
        for f in range(dim):
            scaled = alpha * table[item, f]
            for g in range(f + 1):
                matrix[f, g] += scaled * table[item, g]
    for f in range(dim):
        for g in range(f + 1):
            matrix[f, g] += gram[f, g]
        matrix[f, f] += reg


@kernel
def _cholesky_solve(matrix: Doubles, x: Doubles) -> None:
    """Solve in place for a symmetric positive matrix given by its lower half, which is overwritten."""
    dim = len(x)
    for f in range(dim):
        for g in range(f + 1):
            total = matrix[f, g]
            for h in range(g):
                total -= matrix[f, h] * matrix[g, h]
            matrix[f, g] = np.sqrt(total) if f == g else total / matrix[g, g]
    for f in range(dim):
        total = x[f]
        for g in range(f):
            total -= matrix[f, g] * x[g]
        x[f] = total / matrix[f, f]
    for f in range(dim - 1, -1, -1):
        total = x[f]
        for g in range(f + 1, dim):
            total -= matrix[g, f] * x[g]
        x[f] = total / matrix[f, f]


def rated_coefficients(
    offsets: Long, items: Index, table: Floats, factors: Floats, *, alpha: float
) -> Floats:
    """What a rated item's gradient has beyond that of an unmet one, as a multiple of the user's vector.

    The gradient is ``-2 (1 + alpha) (1 - x . v) x`` where rated and ``2 (x . v) x`` elsewhere; the difference
    is ``-2 ((1 + alpha) - alpha x . v) x``.

    Example:
        >>> one = np.ones((1, 1), "f4")
        >>> rated_coefficients(np.array([0, 1]), np.array([0], "i4"), one, one / 2, alpha=0.0)
        array([-2.], dtype=float32)
    """
    coef = np.empty(len(items), dtype=table.dtype)
    _coefficients(offsets, items, table, factors, float(alpha), coef)
    return coef


@kernel
def _coefficients(
    offsets: Long, items: Index, table: Floats, factors: Floats, alpha: float, coef: Floats
) -> None:
    dim = table.shape[1]
    for client in range(len(offsets) - 1):
        for position in range(offsets[client], offsets[client + 1]):
            score = 0.0
            if alpha > 0.0:
                for f in range(dim):
                    score += factors[client, f] * table[items[position], f]
            coef[position] = -2.0 * ((1.0 + alpha) - alpha * score)
