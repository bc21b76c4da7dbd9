"""Operations on blocks of rows, written as LLVM vectors and inlined into kernels.

Numba alone neither keeps a client's vector in registers (it cannot prove that arrays do not overlap) nor
sums a row's products well at these lengths. Here a whole block of dot products is formed at once and summed
across by one tree of shuffles. Each operation takes its span first; tables are ``padded``, ids are int32.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from tacit.kernels.compiled import operation
from tacit.kernels.emitter import INT, LINE, LONG, Emitter, lanes, padded_width
from tacit.types import Floats


def padded(table: Floats) -> Floats:
    """A copy whose rows start on cache lines and end in zeros, as the vector kernels want it.

    Example:
        >>> wide = padded(np.ones((3, 5), "f4"))
        >>> wide.shape, wide.ctypes.data % 64, float(wide.sum())
        ((3, 16), 0, 15.0)
    """
    rows, dim = table.shape
    wide = padded_zeros(rows, dim, table.dtype)
    wide[:, :dim] = table
    return wide


def padded_zeros(rows: int, dim: int, kind: np.dtype | type = np.float32) -> Floats:
    """Zeros laid out as :func:`padded` does; NumPy's own rows straddle cache lines, which costs a total dear.

    Example:
        >>> padded_zeros(3, 5).shape
        (3, 16)
    """
    kind = np.dtype(kind)
    width = padded_width(dim, kind.itemsize)
    size = rows * width * kind.itemsize
    room = np.zeros(size + LINE, dtype=np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(kind).reshape(rows, width)


def _lines(emit: Emitter, base: Any, row: Any, width: int, kind: Any) -> list[Any]:
    return [emit.load(base, emit.after(row, offset), kind) for offset in range(0, width, kind.count)]


def _product(emit: Emitter, left: list[Any], right: list[Any]) -> Any:
    total = emit.builder.fmul(left[0], right[0])
    for a, b in zip(left[1:], right[1:], strict=True):
        total = emit.call("fmuladd", a, b, total)
    return total


@operation
def block_errors(
    context: Any,
    shape: Any,
    table: Any,
    ids: Any,
    at: Any,
    vector: Any,
    told: Any,
    by: Any,
    out: Any,
    to: Any,
) -> Any:
    """``out[to + j] = table[ids[at + j]] · vector - told[by + j]`` for the rows ``j`` of one block."""
    del context, at, by, to

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        count, width = lanes(emit.itemsize(1)), padded_width(emit.dim, emit.itemsize(1))
        kind = ir.VectorType(emit.element(1), count)
        rows, names = emit.data(1), emit.data(2)
        right = _lines(emit, emit.data(4), ir.Constant(LONG, 0), width, kind)
        products = []
        for lane in range(count):
            row = emit.row(names, emit.after(arguments[3], lane), width)
            products.append(_product(emit, _lines(emit, rows, row, width, kind), right))
        errors = builder.fsub(emit.sums_across(products), emit.load(emit.data(5), arguments[6], kind))
        emit.store(errors, emit.data(7), arguments[8])
        return context.get_dummy_value()

    return types.void(shape, table, ids, types.intp, vector, told, types.intp, out, types.intp), generate


@operation
def pair_dots(
    context: Any, shape: Any, left: Any, firsts: Any, right: Any, seconds: Any, at: Any, out: Any
) -> Any:
    """``out[at + j] = left[firsts[at + j]] · right[seconds[at + j]]`` for one block of pairs ``j``."""
    del context, at

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        count, width = lanes(emit.itemsize(1)), padded_width(emit.dim, emit.itemsize(1))
        kind = ir.VectorType(emit.element(1), count)
        products = []
        for lane in range(count):
            at = emit.after(arguments[5], lane)
            first = _lines(emit, emit.data(1), emit.row(emit.data(2), at, width), width, kind)
            second = _lines(emit, emit.data(3), emit.row(emit.data(4), at, width), width, kind)
            products.append(_product(emit, first, second))
        emit.store(emit.sums_across(products), emit.data(6), arguments[5])
        return context.get_dummy_value()

    return types.void(shape, left, firsts, right, seconds, types.intp, out), generate


@operation
def weighted_sum(
    context: Any, shape: Any, table: Any, ids: Any, at: Any, count: Any, weights: Any, by: Any, total: Any
) -> Any:
    """``total += sum of weights[by + j] * table[ids[at + j]]`` over ``count`` rows ``j``, in registers."""
    del context, at, count, by

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        width = padded_width(emit.dim, emit.itemsize(1))
        kind = ir.VectorType(emit.element(1), lanes(emit.itemsize(1)))
        lines = width // kind.count
        # Sums that wait for each other cost four cycles a row: several rows at a time, summed apart.
        chains = max(1, 4 // lines)
        rows, names, factors, target = emit.data(1), emit.data(2), emit.data(5), emit.data(7)

        def add_row(position: Any, sums: list[Any]) -> list[Any]:
            row = emit.row(names, builder.add(arguments[3], position), width)
            weight = emit.load(factors, builder.add(arguments[6], position), kind.element)
            spread = emit.splat(weight, kind.count)
            return [
                emit.call("fmuladd", spread, line, total)
                for line, total in zip(_lines(emit, rows, row, width, kind), sums, strict=True)
            ]

        def add_rows(group: Any, sums: list[Any]) -> list[Any]:
            first = builder.mul(group, ir.Constant(LONG, chains))
            parts = [add_row(emit.after(first, c), sums[c * lines : (c + 1) * lines]) for c in range(chains)]
            return [line for part in parts for line in part]

        groups = builder.udiv(arguments[4], ir.Constant(LONG, chains))
        sums = emit.accumulate(groups, [ir.Constant(kind, None)] * (lines * chains), add_rows)
        done = builder.mul(groups, ir.Constant(LONG, chains))
        rest = builder.sub(arguments[4], done)
        tail = emit.accumulate(rest, sums[:lines], lambda at, part: add_row(builder.add(done, at), part))
        for line in range(lines):
            place = ir.Constant(LONG, line * kind.count)
            value = emit.load(target, place, kind)
            for part in [tail[line], *sums[lines + line :: lines]]:
                value = builder.fadd(value, part)
            emit.store(value, target, place)
        return context.get_dummy_value()

    return types.void(shape, table, ids, types.intp, types.intp, weights, types.intp, total), generate


@operation
def highest(context: Any, shape: Any, ids: Any, at: Any, count: Any) -> Any:
    """The largest of the 32-bit numbers ``ids[at + j]``, read as unsigned, in whole blocks of 16."""
    del context, at, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        kind = ir.VectorType(INT, LINE // 4)
        names = emit.data(1)

        def larger(block: Any, tops: list[Any]) -> list[Any]:
            place = builder.add(arguments[2], builder.mul(block, ir.Constant(LONG, kind.count)))
            here = emit.load(names, place, kind)
            return [builder.select(builder.icmp_unsigned(">", here, tops[0]), here, tops[0])]

        blocks = builder.udiv(emit.after(arguments[3], kind.count - 1), ir.Constant(LONG, kind.count))
        (tops,) = emit.accumulate(blocks, [ir.Constant(kind, None)], larger)
        half = kind.count // 2
        while half > 0:
            other = emit.shuffle(tops, tops, [(lane + half) % kind.count for lane in range(kind.count)])
            tops = builder.select(builder.icmp_unsigned(">", tops, other), tops, other)
            half //= 2
        return builder.zext(builder.extract_element(tops, ir.Constant(INT, 0)), LONG)

    return types.intp(shape, ids, types.intp, types.intp), generate
