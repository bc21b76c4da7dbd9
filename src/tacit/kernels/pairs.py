"""Predictions for pairs of a user and an item."""

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import Span, kernel, span
from tacit.kernels.emitter import padded_width
from tacit.kernels.plain import LARGEST
from tacit.kernels.vectors import padded, pair_dots
from tacit.types import Floats, Index


def predict_pairs(factors: Floats, table: Floats, users: Index, items: Index, dim: int) -> Floats:
    """``factors[users[j]] · table[items[j]]`` for each pair ``j``, over the first ``dim`` numbers of a row.

    Example:
        >>> factors, table = np.array([[1, 2]], "f4"), np.array([[3, 4], [5, 6]], "f4")
        >>> predict_pairs(factors, table, np.array([0, 0], "i4"), np.array([1, 0], "i4"), 2).tolist()
        [17.0, 11.0]
    """
    if len(users) != len(items) or factors.dtype != table.dtype:
        raise TacitError(
            f"{len(users)} users in {factors.dtype} for {len(items)} items in {table.dtype}",
            "give one item per user and vectors of one type",
        )
    for column, rows in ((users, factors), (items, table)):
        if len(column) and (column.min() < 0 or column.max() >= len(rows)):
            raise TacitError(f"a position outside the {len(rows)} there are", "number users and items from 0")
    if dim > LARGEST:
        return np.einsum("rd,rd->r", factors[users, :dim], table[items, :dim])
    width = padded_width(dim, table.itemsize)
    left, right = (rows if rows.shape[1] == width else padded(rows[:, :dim]) for rows in (factors, table))
    block = 64 // table.itemsize
    room = -(-len(users) // block) * block
    # The last block is filled up with the first pair of all, which exists.
    firsts, seconds = (
        np.concatenate([ids, np.zeros(room - len(ids))]).astype(np.int32) for ids in (users, items)
    )
    out = np.empty(room, dtype=table.dtype)
    _predict(span(dim), left, firsts, right, seconds, out)
    return out[: len(users)]


@kernel
def _predict(shape: Span, left: Floats, firsts: Index, right: Floats, seconds: Index, out: Floats) -> None:
    for at in range(0, len(out), 64 // left.itemsize):
        pair_dots(shape, left, firsts, right, seconds, at, out)
