"""The words in which vector operations are written: loads, stores, shuffles and loops of LLVM.

A vector is a cache line long: 16 numbers of four bytes or 8 of eight. Where a processor has shorter
registers LLVM splits it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

LONG = ir.IntType(64)
INT = ir.IntType(32)
LINE = 64


def lanes(itemsize: int) -> int:
    """How many numbers of ``itemsize`` bytes one vector holds.

    Example:
        >>> lanes(4), lanes(8)
        (16, 8)
    """
    return LINE // itemsize


def padded_width(dim: int, itemsize: int) -> int:
    """The length of a padded row: ``dim`` rounded up to whole vectors.

    Example:
        >>> padded_width(20, 4), padded_width(20, 8)
        (32, 24)
    """
    return -(-dim // lanes(itemsize)) * lanes(itemsize)


def pieces(dim: int, count: int) -> list[tuple[int, int]]:
    """A row of ``dim`` numbers as (offset, length) of vectors: whole ones, then halves, quarters, ….

    Example:
        >>> pieces(21, 8)
        [(0, 8), (8, 8), (16, 4), (20, 1)]
    """
    found, at = [], 0
    while at < dim:
        while count > dim - at:
            count //= 2
        found.append((at, count))
        at += count
    return found


class Emitter:
    """Writes the instructions of one operation, whose first argument is a span."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> None:
        self.context, self.builder, self.arguments, self.types = context, builder, arguments, signature.args
        self.dim: int = signature.args[0].dim

    def data(self, position: int) -> Any:
        """The address of an array argument's first number."""
        return self._array(position).data

    def stride(self, position: int) -> Any:
        """How many numbers lie between rows of an array argument."""
        return self.builder.extract_value(self._array(position).shape, 1)

    def _array(self, position: int) -> Any:
        make = self.context.make_array(self.types[position])
        return make(self.context, self.builder, value=self.arguments[position])

    def element(self, position: int) -> Any:
        """The LLVM type of the numbers of an array argument."""
        return self.context.get_value_type(self.types[position].dtype)

    def itemsize(self, position: int) -> int:
        """The bytes of a number of an array argument."""
        return self.types[position].dtype.bitwidth // 8

    def after(self, offset: Any, distance: int) -> Any:
        """An offset plus a constant."""
        return self.builder.add(offset, ir.Constant(LONG, distance))

    def load(self, base: Any, offset: Any, kind: Any) -> Any:
        """A number or a vector ``offset`` numbers after ``base``; no alignment is promised."""
        address = self.builder.bitcast(self.builder.gep(base, [offset]), kind.as_pointer())
        return self.builder.load(address, align=_size(kind))

    def store(self, value: Any, base: Any, offset: Any) -> None:
        """Put a number or a vector ``offset`` numbers after ``base``."""
        address = self.builder.bitcast(self.builder.gep(base, [offset]), value.type.as_pointer())
        self.builder.store(value, address, align=_size(value.type))

    def name(self, ids: Any, at: Any) -> Any:
        """The 32-bit number ``ids[at]``; names are never negative."""
        return self.builder.zext(self.load(ids, at, INT), LONG)

    def row(self, ids: Any, at: Any, stride: Any) -> Any:
        """The offset of the row that ``ids[at]`` names."""
        name = self.name(ids, at)
        return self.builder.mul(name, stride if isinstance(stride, ir.Value) else ir.Constant(LONG, stride))

    def call(self, name: str, *values: Any) -> Any:
        """An LLVM operation on equal vectors of floating numbers."""
        kind = values[0].type
        signature = ir.FunctionType(kind, [kind] * len(values))
        symbol = f"llvm.{name}.v{kind.count}f{8 * _size(kind)}"
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, signature, symbol), values
        )

    def splat(self, scalar: Any, count: int) -> Any:
        """The same number in every lane."""
        blank = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
        single = self.builder.insert_element(blank, scalar, ir.Constant(INT, 0))
        return self.builder.shuffle_vector(single, blank, _order([0] * count))

    def shuffle(self, first: Any, second: Any, order: list[int]) -> Any:
        """Lanes of two vectors in a new order."""
        return self.builder.shuffle_vector(first, second, _order(order))

    def widened(self, vector: Any) -> Any:
        """The same numbers in double precision."""
        kind = ir.VectorType(ir.DoubleType(), vector.type.count)
        return vector if vector.type == kind else self.builder.fpext(vector, kind)

    def sums_across(self, vectors: list[Any]) -> Any:
        """One vector whose lane ``j`` is the sum of the lanes of ``vectors[j]``; as many vectors as lanes.

        Stage by stage two vectors become one: first inside quarters of 16 bytes, where a shuffle is cheapest,
        then by whole quarters. Every row's terms are added in the same tree, so that a row's sum does not
        depend on its place in the block.
        """
        for low, high in _stages(len(vectors)):
            vectors = [
                self.builder.fadd(self.shuffle(a, b, low), self.shuffle(a, b, high))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]

    def accumulate(
        self, count: Any, zeros: list[Any], step: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """Run ``step(position, sums) -> sums`` for each position below ``count``, the sums in registers."""
        cells = [cgutils.alloca_once_value(self.builder, zero) for zero in zeros]
        with cgutils.for_range(self.builder, count, intp=LONG) as loop:
            sums = step(loop.index, [self.builder.load(cell) for cell in cells])
            for cell, value in zip(cells, sums, strict=True):
                self.builder.store(value, cell)
        return [self.builder.load(cell) for cell in cells]


def _stages(count: int) -> list[tuple[list[int], list[int]]]:
    """The two orders of lanes each stage of a sum across adds; lanes of the second vector from ``count``."""
    size = count // 4
    starts = range(0, count, size)
    inside = [
        ([0, count, 1, count + 1], [2, count + 2, 3, count + 3]),
        ([0, 1, count, count + 1], [2, 3, count + 2, count + 3]),
    ]
    if size == 2:
        inside = [([0, count], [1, count + 1])]
    stages = [
        (
            [start + lane for start in starts for lane in low],
            [start + lane for start in starts for lane in high],
        )
        for low, high in inside
    ]
    even = [start + lane for start in (0, 2 * size, count, count + 2 * size) for lane in range(size)]
    return [*stages, (even, [lane + size for lane in even]), (even, [lane + size for lane in even])]


def _order(lanes: list[int]) -> Any:
    return ir.Constant(ir.VectorType(INT, len(lanes)), lanes)


def _size(kind: Any) -> int:
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.IntType):
        return element.width // 8
    return 4 if isinstance(element, ir.FloatType) else 8
