"""What compressed updates hold: each form that travels, back to the arrays it stands for.

``x`` may travel as itself; as half-precision numbers; as bytes with ``x.scale``, the size of a step per
client; as two thin factors ``x.left`` and ``x.right``; or as single cells of its rows.
"""

import math
from dataclasses import replace

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.types import Array, Arrays, Floats, Index, Long, RankOne, Rows

SCALE, LEFT, RIGHT = ".scale", ".left", ".right"


def unpacked(arrays: Arrays) -> Arrays:
    """Every array in full precision, as the client meant it; what was not compressed is handed on.

    Example:
        >>> told = {"x": np.array([[2, -1]], "i1"), "x.scale": np.array([[0.5]], "f4")}
        >>> unpacked(told)["x"].tolist()
        [[1.0, -0.5]]
    """
    plain = {
        name: _plain(array, arrays.get(name + SCALE))
        for name, array in arrays.items()
        if not name.endswith(SCALE)
    }
    found: dict[str, Array | Rows] = {}
    for name, array in plain.items():
        if name.endswith(LEFT):
            found[name.removesuffix(LEFT)] = _multiplied(array, plain[name.removesuffix(LEFT) + RIGHT])
        elif not name.endswith(RIGHT):
            found[name] = array
    return found


def _plain(array: Array | Rows, scale: Array | Rows | None) -> Array | Rows:
    """Full precision, steps multiplied out, cells back in their rows."""
    steps = None if scale is None else _wide(scale).reshape(-1)  # type: ignore[arg-type]
    if isinstance(array, np.ndarray):
        if steps is None:
            return _wide(array)
        return array.astype(np.float32) * steps.reshape(-1, *[1] * (array.ndim - 1))
    if isinstance(array.values, RankOne):
        return array
    values = _wide(array.values)
    if steps is not None:
        values = values.astype(np.float32) * _per_row(array, steps)[:, np.newaxis]
    rows = replace(array, values=values)
    if rows.whole:
        return whole_array(rows)
    return whole_rows(rows) if rows.cells else rows


def _wide(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _per_row(rows: Rows, numbers: Floats) -> Floats:
    """One number per client, at each of its rows."""
    found = np.zeros(len(rows.ids), dtype=numbers.dtype)
    for client, number in enumerate(numbers):
        found[rows.starts[client] : rows.starts[client] + rows.lengths[client]] = number
    return found


def _multiplied(left: Array | Rows, right: Array | Rows) -> Array | Rows:
    assert isinstance(right, np.ndarray)
    if isinstance(left, np.ndarray):
        return left @ right
    values = left.values
    assert not isinstance(values, RankOne)
    wide = np.zeros((len(left.ids), right.shape[2]), dtype=values.dtype)
    for client, factor in enumerate(right):
        mine = slice(int(left.starts[client]), int(left.starts[client] + left.lengths[client]))
        wide[mine] = values[mine] @ factor
    return replace(left, values=wide)


def whole_array(rows: Rows) -> Array:
    """Cells put back into the array they were taken from, zeros elsewhere.

    Example:
        >>> one = np.zeros(1, "i8")
        >>> cells = Rows(one, one + 2, np.array([4, 1], "i4"), np.array([[7], [5]], "f4"), None, 3, (2, 3))
        >>> whole_array(cells).tolist()
        [[[0.0, 5.0, 0.0], [0.0, 7.0, 0.0]]]
    """
    values = rows.values
    assert not isinstance(values, RankOne)
    size = math.prod(rows.whole)
    if len(rows.ids) and (rows.ids.min() < 0 or rows.ids.max() >= size):
        raise TacitError(
            f"an entry outside an array of {size} numbers", "the message was altered; it is not counted"
        )
    found = np.zeros((rows.clients, size), dtype=values.dtype)
    for client, numbers in enumerate(found):
        mine = slice(int(rows.starts[client]), int(rows.starts[client] + rows.lengths[client]))
        numbers[rows.ids[mine]] = values[mine, 0]
    return found.reshape(rows.clients, *rows.whole)


def whole_rows(rows: Rows) -> Rows:
    """Cells put back into rows: every row that has one, zeros elsewhere.

    Example:
        >>> one = np.zeros(1, "i8")
        >>> cells = Rows(one, one + 2, np.array([4, 1], "i4"), np.array([[7], [5]], "f4"), None, 3)
        >>> whole_rows(cells).ids.tolist(), whole_rows(cells).values.tolist()
        ([1, 0], [[0.0, 7.0, 0.0], [0.0, 5.0, 0.0]])
    """
    values = rows.values
    assert not isinstance(values, RankOne)
    if not len(rows.ids):
        return replace(rows, values=np.zeros((0, rows.cells), values.dtype), cells=0)
    lengths = np.zeros(rows.clients, dtype=np.int64)
    place = np.empty(len(rows.ids), dtype=np.int32)
    first = np.full(int(rows.ids.max()) // rows.cells + 1, -1, dtype=np.int64)
    _placed(rows.starts, rows.lengths, rows.ids, rows.cells, first, place, lengths)
    starts = np.cumsum(lengths) - lengths
    ids = np.empty(int(lengths.sum()), dtype=np.int32)
    wide = np.zeros((len(ids), rows.cells), dtype=values.dtype)
    _filled(rows.starts, rows.lengths, rows.ids, rows.cells, place, values, starts, ids, wide)
    return Rows(starts, lengths, ids, wide)


@kernel
def _placed(
    starts: Long, lengths: Long, ids: Index, width: int, first: Long, place: Index, found: Long
) -> None:
    """The place of each cell's row among its client's rows, in order of appearance."""
    for client in range(len(starts)):
        count = 0
        for at in range(starts[client], starts[client] + lengths[client]):
            row = ids[at] // width
            if first[row] < 0:
                first[row] = count
                count += 1
            place[at] = first[row]
        for at in range(starts[client], starts[client] + lengths[client]):
            first[ids[at] // width] = -1
        found[client] = count


@kernel
def _filled(
    starts: Long,
    lengths: Long,
    cells: Index,
    width: int,
    place: Index,
    values: Floats,
    row_starts: Long,
    ids: Index,
    wide: Floats,
) -> None:
    for client in range(len(starts)):
        for at in range(starts[client], starts[client] + lengths[client]):
            row = row_starts[client] + place[at]
            ids[row] = cells[at] // width
            wide[row, cells[at] % width] += values[at, 0]
