"""Random rotations that need no matrix: signs, then a Walsh-Hadamard transform along each side.

A user's gradient is ``g x^T``: so is its rotation, ``(H D g) (H E x)^T``. One rotated entry costs one signed
sum over the rated items and one over the factors, because everything that ``g`` says of unmet items is ``2 V
x`` and the rotation of ``V`` is formed once for all users. Signs are public; they only have to be independent
of the data.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Floats, Index, Long

Words = NDArray[np.uint32]
_WHOLE = 0.5  # a transform's operation costs about half of a signed addition


def padded_shape(catalogue: int, dim: int) -> tuple[int, int]:
    """Both sides of the item table rounded up to powers of two.

    Example:
        >>> padded_shape(9781, 5)
        (16384, 8)
    """
    return 1 << (catalogue - 1).bit_length(), 1 << (dim - 1).bit_length()


@lru_cache(maxsize=8)
def signs(length: int, side: str, round: int) -> NDArray[np.float32]:
    """Public signs of one side of the table, new in each round.

    Example:
        >>> sorted(set(signs(64, "items", 0).tolist()))
        [-1.0, 1.0]
    """
    seed = np.random.SeedSequence([length, round + 1, *side.encode()])
    drawn = np.random.default_rng(seed).integers(0, 2, length).astype(np.float32) * 2 - 1
    drawn.flags.writeable = False
    return drawn


def transformed(table: Floats) -> Floats:
    """The Walsh-Hadamard transform (without normalising) along the first axis, a power of two long.

    Example:
        >>> transformed(np.array([[1.0], [2.0]]))
        array([[ 3.],
               [-1.]])
    """
    length = len(table)
    if length & (length - 1):
        raise TacitError(f"a transform of {length} rows", "pad to a power of two")
    found, half = table.copy(), 1
    while half < length:
        pairs = found.reshape(length // (2 * half), 2, half, -1)
        top = pairs[:, 0].copy()
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = top - pairs[:, 1]
        half *= 2
    return found


def rotated(table: Floats, round: int) -> Floats:
    """Both sides padded, signed and transformed: ``sqrt(rows columns)`` times a rotation.

    Example:
        >>> table = np.ones((3, 2))
        >>> wide = rotated(table, 0)
        >>> wide.shape, float((wide**2).sum()) / wide.size
        ((4, 2), 6.0)
    """
    rows, columns = padded_shape(*table.shape)
    wide = np.zeros((rows, columns), dtype=table.dtype)
    wide[: len(table), : table.shape[1]] = table
    wide *= signs(rows, "items", round)[:, np.newaxis] * signs(columns, "factors", round)
    return np.ascontiguousarray(transformed(np.ascontiguousarray(transformed(wide).T)).T)


def rotated_back(wide: Floats, catalogue: int, dim: int, round: int) -> Floats:
    """The inverse of :func:`rotated`.

    Example:
        >>> table = np.arange(6.0).reshape(3, 2)
        >>> np.allclose(rotated_back(rotated(table, 5), 3, 2, 5), table)
        True
    """
    rows, columns = wide.shape
    found = transformed(np.ascontiguousarray(transformed(wide).T)).T / (rows * columns)
    found = found * signs(rows, "items", round)[:, np.newaxis] * signs(columns, "factors", round)
    return np.ascontiguousarray(found[:catalogue, :dim])


def rotated_table(table: Floats, round: int) -> Floats:
    """The item side of a table rotated, the factor side as it is: formed once for all users.

    Example:
        >>> rotated_table(np.ones((3, 2), "f4"), 0).shape
        (4, 2)
    """
    rows, _ = padded_shape(*table.shape)
    wide = np.zeros((rows, table.shape[1]), dtype=table.dtype)
    wide[: len(table)] = table * signs(rows, "items", round)[: len(table), np.newaxis]
    return transformed(wide)


def rotated_values(
    offsets: Long,
    items: Index,
    entries: Words,
    factors: Floats,
    table: Floats,
    turned: Floats,
    scales: Floats,
    round: int,
    *,
    alpha: float,
) -> Floats:
    """The asked entries of each client's rotated gradient, times that client's scale.

    Entry ``(a, b)`` is ``(sum_i h_ai d_i g_i) (sum_f h_bf e_f x_f)``. With ``turned`` the rotated table, the
    first factor is ``2 x . turned_a`` plus a signed sum over the client's own items: ``rated + dim`` per
    entry. Where so many entries are asked that one transform is cheaper, ``g`` is transformed whole: ``M log
    M``.

    Example:
        >>> table, x = np.ones((2, 2), "f4"), np.full((1, 2), 0.5, "f4")
        >>> asked = np.arange(4, dtype="u4")[np.newaxis]
        >>> found = rotated_values(
        ...     np.array([0, 1]), np.array([1], "i4"), asked, x, table, rotated_table(table, 0),
        ...     np.ones(1, "f4"), 0, alpha=0.0,
        ... )
        >>> full = rotated(np.array([[1.0, 1.0], [0.0, 0.0]]), 0)  # -2 (p - x . v) x by hand
        >>> np.allclose(found[0], full.ravel())
        True
    """  # fmt: skip
    rows, columns = padded_shape(*table.shape)
    values = np.empty(entries.shape, dtype=np.float32)
    dim = table.shape[1]
    hadamard = (
        transformed(np.eye(columns, dtype=np.float32))[:, :dim] * signs(columns, "factors", round)[:dim]
    )
    users = np.ascontiguousarray(factors @ hadamard.T)
    _turned_values(
        offsets, items, entries, factors, users, table, turned, scales, signs(rows, "items", round),
        float(alpha), _WHOLE * rows * math.log2(max(rows, 2)), np.empty(rows, dtype=np.float32),
        np.empty(rows, dtype=np.float32), values,
    )  # fmt: skip
    return values


@kernel
def _turned_values(
    offsets: Long,
    items: Index,
    entries: Words,
    factors: Floats,
    users: Floats,
    table: Floats,
    turned: Floats,
    scales: Floats,
    flips: Floats,
    alpha: float,
    whole: float,
    room: Floats,
    spare: Floats,
    values: Floats,
) -> None:
    dim, columns = table.shape[1], np.uint32(users.shape[1])
    asked = entries.shape[1]
    rows, totals = np.empty(asked, dtype=np.uint32), np.empty(asked, dtype=np.float32)
    for client in range(len(entries)):
        first, last = offsets[client], offsets[client + 1]
        transform = np.float64(asked) * (last - first) > whole
        totals[:] = np.float32(0.0)
        if transform:
            room[:] = np.float32(0.0)
        for report in range(asked):
            rows[report] = entries[client, report] // columns
        for position in range(first, last):
            item = items[position]
            score = np.float32(0.0)
            for f in range(dim):
                score += factors[client, f] * table[item, f]
            coef = np.float32(flips[item] * -2.0 * ((1.0 + alpha) - alpha * score))
            if transform:
                room[item] = coef
            else:
                _add_signed(np.uint32(item), coef, rows, totals)
        if transform:
            _walsh(room, spare)
            for report in range(asked):
                totals[report] = room[rows[report]]
        for report in range(asked):
            row = rows[report]
            column = entries[client, report] - row * columns
            score = np.float32(0.0)
            for f in range(dim):
                score += factors[client, f] * turned[row, f]
            values[client, report] = scales[client] * (totals[report] + 2.0 * score) * users[client, column]


@kernel
def _add_signed(item: np.uint32, coef: np.float32, rows: Words, totals: Floats) -> None:
    """Add ``coef`` with the sign of the transform's entry to every asked row; the loop runs over lanes."""
    for report in range(len(rows)):
        word = item & rows[report]
        word ^= word >> np.uint32(16)
        word ^= word >> np.uint32(8)
        word ^= word >> np.uint32(4)
        word ^= word >> np.uint32(2)
        word ^= word >> np.uint32(1)
        totals[report] += coef * (np.float32(1.0) - np.float32(2.0) * np.float32(word & np.uint32(1)))


@kernel
def _walsh(room: Floats, spare: Floats) -> None:
    """The transform in place: a stage adds and subtracts neighbours, and the bits of a place turn by one."""
    half, stage = len(room) // 2, 1
    while stage < len(room):
        for place in range(half):
            spare[place] = room[2 * place] + room[2 * place + 1]
        for place in range(half):
            spare[half + place] = room[2 * place] - room[2 * place + 1]
        room[:] = spare
        stage *= 2
