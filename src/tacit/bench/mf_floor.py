"""What no kernel can beat on this machine: moving the cache lines of a round, and its multiplications."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from tacit.kernels.compiled import Number, Span, dim_of, kernel, operation, span
from tacit.kernels.emitter import Emitter
from tacit.types import Floats, Index

_ROUNDS, _CHAINS = 1_000_000, 20


def gathered(table: Floats, ids: Index) -> Number:
    """Read every cache line of the rows named, of a padded float32 table.

    Example:
        >>> from tacit.kernels.vectors import padded
        >>> float(gathered(padded(np.ones((2, 3), "f4")), np.zeros(8, "i4")))
        8.0
    """
    return _gather(span(table.shape[1]), table, ids)


def touched(table: Floats, ids: Index) -> None:
    """Read, change and write every cache line of the rows named, of a padded float32 table.

    Example:
        >>> from tacit.kernels.vectors import padded_zeros
        >>> table = padded_zeros(2, 3)
        >>> touched(table, np.array([1, 1], "i4"))
        >>> float(table[1, 0])
        2.0
    """
    _touch(span(table.shape[1]), table, ids)


def multiplied_and_added() -> Number:
    """Run vector multiply-adds that wait for nothing but each other's chain.

    Example:
        >>> float(multiplied_and_added()) > 0
        True
    """
    return _peak(span(1), _ROUNDS)


def floors(
    best: Mapping[str, float], rated: int, filled: int, dim: int, local_steps: int
) -> dict[str, float]:
    """The larger of the time to move the cache lines and the time to do the sums as the paper writes them.

    Example:
        >>> best = {"gather": 1.0, "read-modify-write": 2.0, "peak": 0.64}
        >>> floors(best, rated=10, filled=10, dim=2, local_steps=3)["floor-average"]
        3.0
    """
    lines = best["gather"] + best["read-modify-write"]
    per_flop = best["peak"] / (_ROUNDS * _CHAINS * 16 * 2)
    average = (6 * rated + 4 * filled) * dim
    predicted = average + (4 * local_steps * rated + 2 * filled) * dim
    return {
        "floor-average": max(lines, average * per_flop),
        "floor-predicted": max(lines, predicted * per_flop),
    }


@operation
def _multiply_add(context: Any, shape: Any, count: Any) -> Any:
    """``count`` rounds of independent vector multiply-adds; a number that depends on them all."""
    del context, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        kind = ir.VectorType(ir.FloatType(), 16)
        factor = ir.Constant(kind, [0.999] * 16)
        starts = [ir.Constant(kind, [1.0 + place] * 16) for place in range(_CHAINS)]
        sums = emit.accumulate(
            arguments[1],
            starts,
            lambda _, values: [emit.call("fmuladd", value, factor, factor) for value in values],
        )
        total = sums[0]
        for value in sums[1:]:
            total = builder.fadd(total, value)
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.float32(shape, types.intp), generate


@kernel
def _peak(shape: Span, count: int) -> Number:
    return _multiply_add(shape, count)


@kernel
def _gather(shape: Span, table: Floats, ids: Index) -> Number:
    """Touch every cache line of the rows named; eight sums, so that loads need not wait for additions."""
    a = b = c = d = e = f = g = h = table.dtype.type(0)
    for j in range(0, len(ids) - 7, 8):
        for line in range(0, dim_of(shape), 16):
            a += table[np.uint32(ids[j]), line]
            b += table[np.uint32(ids[j + 1]), line]
            c += table[np.uint32(ids[j + 2]), line]
            d += table[np.uint32(ids[j + 3]), line]
            e += table[np.uint32(ids[j + 4]), line]
            f += table[np.uint32(ids[j + 5]), line]
            g += table[np.uint32(ids[j + 6]), line]
            h += table[np.uint32(ids[j + 7]), line]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def _touch(shape: Span, table: Floats, ids: Index) -> None:
    """Read, change and write every cache line of the rows named."""
    for j in range(len(ids)):
        row = np.uint32(ids[j])
        for line in range(0, dim_of(shape), 16):
            table[row, line] += table.dtype.type(1)
