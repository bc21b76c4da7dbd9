"""The same kernels as plain Numba loops: for rows too long to unroll, and to compare the vectors with."""

import numpy as np

from tacit.kernels.compiled import Number, kernel
from tacit.types import Floats, Index, Long

LARGEST = 128  # beyond, a row no longer fits the registers and unrolled code grows without gain


@kernel
def plain_step(
    offsets: Long,
    items: Index,
    values: Floats,
    filler_starts: Long,
    filler_lengths: Long,
    filler_ids: Index,
    table: Floats,
    rate: Number,
    reg: Number,
    fill: int,
    steps: int,
    user_step: int,
    starts: Long,
    ids: Index,
    coef: Floats,
    factors: Floats,
) -> None:
    """``client_step`` for any dimension: fills ``ids`` and ``coef``, moves ``factors``."""
    dim = factors.shape[1]
    gradient, local = np.zeros(dim, table.dtype), np.zeros(dim, table.dtype)
    for client in range(len(starts)):
        at, count, to = offsets[client], offsets[client + 1] - offsets[client], starts[client]
        if count == 0:
            continue
        vector = factors[client]
        gradient[:] = 0
        mean = 0.0
        for j in range(count):
            item, value = np.uint32(items[at + j]), values[at + j]
            error = _dot(table, item, vector) - value
            ids[to + j], coef[to + j] = item, error
            mean += value
            for k in range(dim):
                gradient[k] += error * table[item, k]
        mean /= count
        extra, source, more, over = filler_lengths[client], filler_starts[client], to + count, count
        if extra > 0 and fill == 2:
            _train(items, values, at, count, table, vector, local, rate, reg, steps)
        if user_step == 1:
            over += extra
        for j in range(extra):
            item = np.uint32(filler_ids[source + j])
            error = _dot(table, item, vector) - (mean if fill == 1 else _dot(table, item, local))
            ids[more + j], coef[more + j] = item, error
            if user_step == 1:
                for k in range(dim):
                    gradient[k] += coef[more + j] * table[item, k]
        for k in range(dim):
            vector[k] -= rate * (gradient[k] / over + reg * vector[k])


@kernel
def _dot(table: Floats, row: np.uint32, vector: Floats) -> Number:
    total = table.dtype.type(0)
    for k in range(len(vector)):
        total += table[row, k] * vector[k]
    return total


@kernel
def _train(
    items: Index,
    values: Floats,
    at: int,
    count: int,
    table: Floats,
    vector: Floats,
    local: Floats,
    rate: Number,
    reg: Number,
    steps: int,
) -> None:
    """``steps`` full-gradient steps from ``vector`` on the rated items, into ``local``."""
    local[:] = vector
    gradient = np.zeros(len(vector), table.dtype)
    for _ in range(steps):
        gradient[:] = 0
        for j in range(count):
            item = np.uint32(items[at + j])
            error = _dot(table, item, local) - values[at + j]
            for k in range(len(vector)):
                gradient[k] += error * table[item, k]
        for k in range(len(vector)):
            local[k] -= rate * (gradient[k] / count + reg * local[k])


@kernel
def plain_add(
    total: Floats, starts: Long, lengths: Long, ids: Index, coef: Floats, factors: Floats, sign: Number
) -> None:
    """``total[ids] += sign * coef * factors`` for rows of any length."""
    for client in range(len(starts)):
        for place in range(starts[client], starts[client] + lengths[client]):
            weight, row = sign * coef[place], np.uint32(ids[place])
            for k in range(factors.shape[1]):
                total[row, k] += weight * factors[client, k]


@kernel
def plain_add_grid(
    total: Long,
    starts: Long,
    lengths: Long,
    targets: Index,
    ids: Index,
    coef: Floats,
    factors: Floats,
    table: Floats,
    reg: Number,
    scale: Number,
) -> None:
    """``total[targets] += round(scale * (coef * factors + reg * table[ids]))`` for rows of any length."""
    for client in range(len(starts)):
        for place in range(starts[client], starts[client] + lengths[client]):
            row, item, weight = np.uint32(targets[place]), np.uint32(ids[place]), np.float64(coef[place])
            for k in range(factors.shape[1]):
                value = scale * (weight * np.float64(factors[client, k]) + reg * np.float64(table[item, k]))
                # Written so that what is not a number ends on the upper bound, as it does in the vectors.
                value = value if value < 2.0**62 else 2.0**62
                total[row, k] += np.int64(np.rint(value if value > -(2.0**62) else -(2.0**62)))
