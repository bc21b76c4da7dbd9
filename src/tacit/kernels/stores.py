"""Vector operations that write where ids say: rows added to a total, rounded or not, and copies.

They split a row into vectors of falling length and ask for no padding. Each takes its span first.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tacit.kernels.compiled import operation
from tacit.kernels.emitter import LONG, Emitter, lanes, pieces


@operation
def scatter(
    context: Any, shape: Any, total: Any, targets: Any, at: Any, count: Any, weights: Any, vector: Any
) -> Any:
    """``total[targets[at + j]] += weights[at + j] * vector`` for ``count`` rows, the vector in registers."""
    del context, at, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        add_row = _adding(emit, total=1, targets=2, at=3, weights=5, vector=6)
        emit.accumulate(arguments[4], [], lambda place, nothing: (add_row(place), nothing)[1])
        return context.get_dummy_value()

    return types.void(shape, total, targets, types.intp, types.intp, weights, vector), generate


@operation
def scatter_counted(
    context: Any,
    shape: Any,
    total: Any,
    targets: Any,
    at: Any,
    count: Any,
    weights: Any,
    vector: Any,
    counts: Any,
    people: Any,
) -> Any:
    """:func:`scatter`, and ``counts[targets[at + j]] += people``, which reads every name only once."""
    del context, at, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        add_row, tallies = _adding(emit, total=1, targets=2, at=3, weights=5, vector=6), emit.data(7)

        def add_both(position: Any, nothing: list[Any]) -> list[Any]:
            name = add_row(position)
            before = emit.load(tallies, name, emit.element(7))
            emit.store(builder.add(before, arguments[8]), tallies, name)
            return nothing

        emit.accumulate(arguments[4], [], add_both)
        return context.get_dummy_value()

    given = (shape, total, targets, types.intp, types.intp, weights, vector, counts, people)
    return types.void(*given), generate


def _adding(emit: Emitter, *, total: int, targets: int, at: int, weights: int, vector: int) -> Any:
    """What adds the row of one position to the total and says which it was; arguments by their places."""
    split = pieces(emit.dim, lanes(emit.itemsize(total)))
    kinds = [ir.VectorType(emit.element(total), count) for _, count in split]
    target, names, factors, stride = (
        emit.data(total),
        emit.data(targets),
        emit.data(weights),
        emit.stride(total),
    )
    base = emit.data(vector)
    held = [
        emit.load(base, ir.Constant(LONG, offset), kind)
        for (offset, _), kind in zip(split, kinds, strict=True)
    ]

    def add_row(position: Any) -> Any:
        place = emit.builder.add(emit.arguments[at], position)
        name, weight = emit.name(names, place), emit.load(factors, place, emit.element(weights))
        row = emit.builder.mul(name, stride)
        for (offset, count), kind, part in zip(split, kinds, held, strict=True):
            aim = emit.after(row, offset)
            value = emit.call("fmuladd", emit.splat(weight, count), part, emit.load(target, aim, kind))
            emit.store(value, target, aim)
        return name

    return add_row


@operation
def scatter_grid(
    context: Any,
    shape: Any,
    total: Any,
    targets: Any,
    ids: Any,
    at: Any,
    count: Any,
    weights: Any,
    vector: Any,
    table: Any,
    reg: Any,
    scale: Any,
) -> Any:
    """``total[targets[p]] += round(scale * (weights[p] * vector + reg * table[ids[p]]))``.

    The places ``p`` are the ``count`` ones from ``at`` on.
    Everything is done in double precision, where products of single-precision numbers are exact; entries
    beyond ±2^62 steps are held there, so that the conversion is always defined.
    """
    del context, at, count, reg, scale

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        split = pieces(emit.dim, 8)
        target, aims, names, factors, rows = (emit.data(position) for position in (1, 2, 3, 6, 8))
        base, stride, width = emit.data(7), emit.stride(1), emit.stride(8)
        held = [
            emit.widened(emit.load(base, ir.Constant(LONG, offset), ir.VectorType(emit.element(7), count)))
            for offset, count in split
        ]

        def rounded(product: Any, count: int) -> Any:
            limit = emit.splat(ir.Constant(ir.DoubleType(), 2.0**62), count)
            scaled = builder.fmul(product, emit.splat(arguments[10], count))
            bounded = emit.call("maxnum", emit.call("minnum", scaled, limit), builder.fneg(limit))
            return builder.fptosi(emit.call("rint", bounded), ir.VectorType(LONG, count))

        def add_row(position: Any, nothing: list[Any]) -> list[Any]:
            place = builder.add(arguments[4], position)
            aim, row = emit.row(aims, place, stride), emit.row(names, place, width)
            weight = emit.load(factors, place, emit.element(6))
            weight = weight if weight.type == ir.DoubleType() else builder.fpext(weight, ir.DoubleType())
            for (offset, count), part in zip(split, held, strict=True):
                old = emit.load(rows, emit.after(row, offset), ir.VectorType(emit.element(8), count))
                shrink = builder.fmul(emit.splat(arguments[9], count), emit.widened(old))
                value = rounded(builder.fadd(builder.fmul(emit.splat(weight, count), part), shrink), count)
                at = emit.after(aim, offset)
                emit.store(builder.add(emit.load(target, at, value.type), value), target, at)
            return nothing

        emit.accumulate(arguments[5], [], add_row)
        return context.get_dummy_value()

    signature = types.void(
        shape,
        total,
        targets,
        ids,
        types.intp,
        types.intp,
        weights,
        vector,
        table,
        types.float64,
        types.float64,
    )
    return signature, generate


@operation
def copied(context: Any, source: Any, at: Any, count: Any, target: Any, to: Any) -> Any:
    """``target[to : to + count] = source[at : at + count]`` for arrays of one type that do not overlap."""
    del context, at, count, to

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        data = [
            context.make_array(kinds[position])(context, builder, value=arguments[position]).data
            for position in (0, 3)
        ]
        cgutils.raw_memcpy(
            builder,
            builder.gep(data[1], [arguments[4]]),
            builder.gep(data[0], [arguments[1]]),
            arguments[2],
            kinds[0].dtype.bitwidth // 8,
        )
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), generate
