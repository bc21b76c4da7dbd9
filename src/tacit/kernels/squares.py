"""Sums of squares of rows, kept in small blocks that fit a vector each, and repeated products with them.

The sum of ``v vᵀ`` is cut into blocks four columns wide and as tall as fills a vector (four rows of single
precision, two of double). A block's terms are one multiplication of two vectors: the rows' numbers *spread*,
each over four lanes, and the columns' numbers *tiled*, all four again and again. Of a symmetric matrix only
the blocks that touch the lower triangle are summed: 15 vectors for 20 numbers, where whole rows take 24.

Multiplied by tiled numbers and summed over its columns, a block gives a product that comes out spread; by
spread numbers and summed over its rows, one that comes out tiled: products follow each other as they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from tacit.kernels.compiled import kernel, operation
from tacit.kernels.emitter import INT, LONG, Emitter, lanes, padded_width
from tacit.kernels.vectors import padded_zeros
from tacit.types import Floats

_WIDE = 4
_ACCUMULATORS = 24  # of 32 registers; the others hold the row at hand
_UNROLLED = 64  # blocks, beyond which a product is a loop


def blocks(dim: int, itemsize: int) -> tuple[int, int]:
    """How many blocks lie below each other and side by side.

    Example:
        >>> blocks(20, 4), blocks(20, 8)
        ((5, 5), (10, 5))
    """
    return -(-dim // (lanes(itemsize) // _WIDE)), -(-dim // _WIDE)


@kernel
def squaring_pays(dim: int, lanes: int, count: int, steps: int) -> bool:
    """Whether ``steps`` products cost less through the sum of squares of ``count`` rows than row by row.

    In multiplications of vectors, as measured. Through the sum: one per block and row, two per block and
    product, eight per block to begin and to mirror. Row by row: five per vector of a row and product, and two
    hundred per product for what a pass over few rows waits for.

    Example:
        >>> squaring_pays(20, 16, 100, 14), squaring_pays(128, 16, 100, 1)
        (True, False)
    """
    high, wide, lines = -(-4 * dim // lanes), -(-dim // 4), -(-dim // lanes)
    through = count * (high * (wide + 1) // 2) + (2 * steps + 8) * high * wide
    return through < steps * (200 + 5 * lines * count)


def square_room(dim: int, kind: np.dtype | type = np.float32) -> Floats:
    """A matrix of zeros, one block a row.

    Example:
        >>> square_room(20).shape
        (25, 16)
    """
    itemsize = np.dtype(kind).itemsize
    high, wide = blocks(dim, itemsize)
    return padded_zeros(high * wide, lanes(itemsize), kind)


def square_matrix(square: Floats, dim: int) -> Floats:
    """The blocks put together.

    Example:
        >>> square_matrix(square_room(3), 3).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    high, wide = blocks(dim, square.itemsize)
    tall = square.shape[1] // _WIDE
    whole = square.reshape(high, wide, tall, _WIDE).swapaxes(1, 2).reshape(high * tall, wide * _WIDE)
    return whole[:dim, :dim]


class _Blocks:
    """The shape of the blocks of one operation, and their vectors."""

    def __init__(self, emit: Emitter, position: int) -> None:
        self.emit, self.element = emit, emit.element(position)
        self.count = lanes(emit.itemsize(position))
        self.tall = self.count // _WIDE
        self.high, self.wide = blocks(emit.dim, emit.itemsize(position))
        self.kind = ir.VectorType(self.element, self.count)

    def lower(self) -> list[tuple[int, int]]:
        """The blocks that hold a number on or below the diagonal."""
        return [
            (row, column)
            for row in range(self.high)
            for column in range(self.wide)
            if _WIDE * column < self.tall * (row + 1)
        ]

    def place(self, row: Any, column: Any) -> Any:
        """Where a block starts, for numbers or constants."""
        if isinstance(row, int) and isinstance(column, int):
            return ir.Constant(LONG, (row * self.wide + column) * self.count)
        builder = self.emit.builder
        row, column = (ir.Constant(LONG, at) if isinstance(at, int) else at for at in (row, column))
        block = builder.add(builder.mul(row, ir.Constant(LONG, self.wide)), column)
        return builder.mul(block, ir.Constant(LONG, self.count))

    def spread(self, base: Any, row: Any, group: int) -> Any:
        """The numbers of a group of rows, each over four lanes."""
        part = self.emit.load(
            base, self.emit.after(row, self.tall * group), ir.VectorType(self.element, self.tall)
        )
        return self.emit.shuffle(part, part, [lane // _WIDE for lane in range(self.count)])

    def tiled(self, base: Any, row: Any, group: int) -> Any:
        """The numbers of four columns, again and again."""
        part = self.emit.load(base, self.emit.after(row, _WIDE * group), ir.VectorType(self.element, _WIDE))
        return self.emit.shuffle(part, part, [lane % _WIDE for lane in range(self.count)])

    def summed(self, vector: Any, distances: list[int]) -> Any:
        """Every lane plus those at powers-of-two distances: the sum over a block's columns, or its rows."""
        for distance in distances:
            other = self.emit.shuffle(vector, vector, [lane ^ distance for lane in range(self.count)])
            vector = self.emit.builder.fadd(vector, other)
        return vector

    def over_rows(self) -> list[int]:
        """The distances between the rows of a block."""
        return [distance for distance in (8, 4) if distance < self.count]


@operation
def gram(context: Any, shape: Any, table: Any, ids: Any, at: Any, count: Any, square: Any) -> Any:
    """``square += sum of v vᵀ`` over the ``count`` rows ``v = table[ids[at + j]]``.

    Only the blocks that touch the lower triangle are changed.
    """
    del context, at, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        form = _Blocks(emit, 1)
        width = padded_width(emit.dim, emit.itemsize(1))
        rows, names, held, lower = emit.data(1), emit.data(2), emit.data(5), form.lower()
        for start in range(0, len(lower), _ACCUMULATORS):
            band = lower[start : start + _ACCUMULATORS]

            def add_row(position: Any, sums: list[Any], band: list[tuple[int, int]] = band) -> list[Any]:
                row = emit.row(names, builder.add(arguments[3], position), width)
                spread = {group: form.spread(rows, row, group) for group in {high for high, _ in band}}
                tiled = {group: form.tiled(rows, row, group) for group in {wide for _, wide in band}}
                return [
                    emit.call("fmuladd", spread[high], tiled[wide], value)
                    for (high, wide), value in zip(band, sums, strict=True)
                ]

            places = [form.place(*block) for block in band]
            sums = [emit.load(held, place, form.kind) for place in places]
            sums = emit.accumulate(arguments[4], sums, add_row)
            for place, value in zip(places, sums, strict=True):
                emit.store(value, held, place)
        return context.get_dummy_value()

    return types.void(shape, table, ids, types.intp, types.intp, square), generate


@operation
def complete(context: Any, shape: Any, square: Any, scale: Any, keep: Any) -> Any:
    """``square = scale square + keep I``, what is above the diagonal taken from below it."""
    del context, scale, keep

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        form = _Blocks(emit, 1)
        held, scale = emit.data(1), emit.splat(arguments[2], form.count)
        lower = {block: emit.load(held, form.place(*block), form.kind) for block in form.lower()}
        nothing = ir.Constant(form.element, 0)
        for row in range(form.high):
            for column in range(form.wide):
                cells = [
                    (form.tall * row + lane // _WIDE, _WIDE * column + lane % _WIDE)
                    for lane in range(form.count)
                ]
                value = lower.get((row, column)) or _mirrored(form, lower, cells)
                kept = emit.splat(nothing, form.count)
                for lane, (r, c) in enumerate(cells):
                    if r == c:
                        kept = builder.insert_element(kept, arguments[3], ir.Constant(INT, lane))
                value = emit.call("fmuladd", value, scale, kept)
                emit.store(value, held, form.place(row, column))
        return context.get_dummy_value()

    return types.void(shape, square, square.dtype, square.dtype), generate


def _mirrored(form: _Blocks, lower: dict[tuple[int, int], Any], cells: list[tuple[int, int]]) -> Any:
    """A block above the diagonal out of the one or two that hold its mirror image."""
    sources = [(c // form.tall, r // _WIDE) for r, c in cells]
    found = sorted(set(sources))
    blank = ir.Constant(form.kind, None)
    # Columns beyond the last row are zero anyway.
    parts = [lower.get(source, blank) for source in found]
    order = [
        found.index(source) * form.count + (c % form.tall) * _WIDE + r % _WIDE
        for source, (r, c) in zip(sources, cells, strict=True)
    ]
    return form.emit.shuffle(parts[0], parts[-1], order)


@operation
def repeated(context: Any, shape: Any, square: Any, push: Any, steps: Any, out: Any) -> Any:
    """``out = x``, where ``x`` starts as ``push`` and becomes ``square x + push`` ``steps`` times."""
    del context, steps

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder, signature, arguments)
        form = _Blocks(emit, 1)
        held, added, start = emit.data(1), emit.data(2), ir.Constant(LONG, 0)
        spread = _Cells(form, [form.spread(added, start, group) for group in range(form.high)])
        tiled = _Cells(form, [form.tiled(added, start, group) for group in range(form.wide)])
        # A sum over lanes that each hold their share of the push holds the whole push.
        pushes = spread.scaled(1 / _WIDE), tiled.scaled(1 / form.tall)

        def spread_one(row: Any) -> None:
            value = pushes[0].get(row)
            for column in range(form.wide):
                part = emit.load(held, form.place(row, column), form.kind)
                value = emit.call("fmuladd", part, tiled.get(column), value)
            spread.set(row, form.summed(value, [1, 2]))

        def tile_one(column: Any) -> None:
            value = pushes[1].get(column)
            for row in range(form.high):
                part = emit.load(held, form.place(row, column), form.kind)
                value = emit.call("fmuladd", part, spread.get(row), value)
            tiled.set(column, form.summed(value, form.over_rows()))

        unrolled = form.high * form.wide <= _UNROLLED
        with builder.if_then(builder.trunc(arguments[3], ir.IntType(1))):
            _each(builder, form.wide, tile_one, unrolled=unrolled)
        pairs = builder.lshr(arguments[3], ir.Constant(LONG, 1))
        with cgutils.for_range(builder, pairs, intp=LONG):
            _each(builder, form.high, spread_one, unrolled=unrolled)
            _each(builder, form.wide, tile_one, unrolled=unrolled)
        for line in range(0, form.wide, form.tall):
            value = ir.Constant(form.kind, None)
            for column in range(line, min(line + form.tall, form.wide)):
                here = range(_WIDE * (column - line), _WIDE * (column - line + 1))
                order = [lane + form.count if lane in here else lane for lane in range(form.count)]
                value = emit.shuffle(value, tiled.get(column), order)
            emit.store(value, emit.data(4), ir.Constant(LONG, _WIDE * line))
        return context.get_dummy_value()

    return types.void(shape, square, push, types.intp, out), generate


class _Cells:
    """Vectors with places of their own on the stack; in registers where every place is a constant."""

    def __init__(self, form: _Blocks, values: list[Any]) -> None:
        self.form, self.count = form, len(values)
        self.room = cgutils.alloca_once(form.emit.builder, ir.ArrayType(form.kind, len(values)))
        self.room.align = 64
        for at, value in enumerate(values):
            self.set(at, value)

    def _address(self, at: Any) -> Any:
        at = ir.Constant(LONG, at) if isinstance(at, int) else at
        return self.form.emit.builder.gep(self.room, [ir.Constant(LONG, 0), at])

    def get(self, at: Any) -> Any:
        return self.form.emit.builder.load(self._address(at))

    def set(self, at: Any, value: Any) -> None:
        self.form.emit.builder.store(value, self._address(at))

    def scaled(self, factor: float) -> "_Cells":
        splat = ir.Constant(self.form.kind, [factor] * self.form.count)
        values = [self.form.emit.builder.fmul(self.get(at), splat) for at in range(self.count)]
        return _Cells(self.form, values)


def _each(builder: Any, count: int, work: Callable[[Any], None], *, unrolled: bool) -> None:
    if unrolled:
        for at in range(count):
            work(at)
    else:
        with cgutils.for_range(builder, ir.Constant(LONG, count), intp=LONG) as loop:
            work(loop.index)
