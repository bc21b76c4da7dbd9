"""What crosses a wire: arrays to bytes and back, and the exact length without encoding.

A message is a 16-byte header, then each array: name, kind, type, shape, bytes. Sparse rows travel sorted
by id, so their order says nothing about which of them are fillers, and their ids packed where that is
shorter. Reading trusts nobody: every length is checked before it is used.
"""

import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.row_ids import Form, Sizes, id_sizes, packed_length, read_ids, written_ids
from tacit.kernels.rows import materialise, materialise_grid
from tacit.types import Array, Arrays, Index, Long, RankOne, Rows

_MAGIC = b"TCT1"
_HEADER = struct.Struct("<4sHHII")
_DTYPES = [np.dtype(name) for name in ("f4", "f8", "i4", "i8", "u1", "f2", "u4", "u8", "i1", "u2")]
_DENSE, _ROWS, _COUNTED, _CELLS = 0, 1, 2, 5  # a kind of rows, plus 2 where ids are packed
_LAST = _CELLS + 2
MAX_MESSAGE = 1 << 31


class Message(NamedTuple):
    """A decoded message: the round it belongs to and one client's arrays."""

    round: int
    arrays: dict[str, Array | Rows]


class Parts(NamedTuple):
    """What a client's message is made of: bytes of ids, bytes of values, and how many numbers they are."""

    ids: Long
    values: Long
    numbers: Long


def _value_type(rows: Rows) -> np.dtype[Any]:
    if isinstance(rows.values, RankOne):
        return np.dtype("i8") if rows.values.grid else rows.values.coef.dtype
    return rows.values.dtype


def _value_width(rows: Rows) -> int:
    shape = rows.values.factors.shape if isinstance(rows.values, RankOne) else rows.values.shape
    return int(np.prod(shape[1:], dtype=np.int64))


def _head_length(name: str, array: Array | Rows) -> int:
    dims = array.ndim - 1 if isinstance(array, np.ndarray) else 2 + len(array.whole)
    return 1 + len(name.encode()) + 3 + 4 * dims


def row_bytes(rows: Rows) -> int:
    """Bytes of one sparse row on the wire without its id: count if there is one, values.

    Example:
        >>> import numpy as np
        >>> one = np.zeros(1, "i8")
        >>> row_bytes(Rows(one, one + 2, np.array([5, 3], "i4"), np.ones((2, 20), "f4")))
        80
    """
    return (4 if rows.counts is not None else 0) + _value_type(rows).itemsize * _value_width(rows)


def _id_sizes(rows: Rows) -> Sizes:
    """The form and length of each client's ids."""
    return id_sizes(rows.starts, rows.lengths, rows.ids)


def parts(arrays: Arrays, clients: int) -> Parts:
    """What each client's message is made of; the rest of its length is headers.

    Example:
        >>> import numpy as np
        >>> parts({"bias": np.ones((1, 3), "f4")}, 1).values.tolist()
        [12]
    """
    ids, values, numbers = (np.zeros(clients, dtype=np.int64) for _ in range(3))
    for array in arrays.values():
        if isinstance(array, np.ndarray):
            count = int(np.prod(array.shape[1:], dtype=np.int64))
            values += array.dtype.itemsize * count
            numbers += count
        else:
            ids += _id_sizes(array).nbytes
            values += array.lengths * row_bytes(array)
            numbers += array.lengths * _value_width(array)
    return Parts(ids, values, numbers)


def nbytes(arrays: Arrays, clients: int, known: Parts | None = None) -> Long:
    """The length of each client's message, without encoding it; who has nothing to say sends nothing."""
    if not arrays:
        return np.zeros(clients, dtype=np.int64)
    length = np.full(clients, _HEADER.size, dtype=np.int64)
    for name, array in arrays.items():
        length += _head_length(name, array)
    inside = known or parts(arrays, clients)
    return length + inside.ids + inside.values


def broadcast_nbytes(arrays: Mapping[str, Array]) -> int:
    """The length of a message that is the same for everybody: its arrays have no client axis."""
    if not arrays:
        return 0
    return _HEADER.size + sum(
        _head_length(name, array[np.newaxis]) + array.nbytes for name, array in arrays.items()
    )


def _frame(body: bytes, round: int, arrays: int) -> bytes:
    return _HEADER.pack(_MAGIC, arrays, 0, round, zlib.crc32(body)) + body


def _encoded(name: str, kind: int, shape: tuple[int, ...], *parts: Array) -> bytes:
    raw = name.encode()
    dtype = _DTYPES.index(parts[-1].dtype)
    head = struct.pack(f"<B{len(raw)}sBBB{len(shape)}I", len(raw), raw, kind, dtype, len(shape), *shape)
    return head + b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def encode(arrays: Arrays, round: int, client: int = 0) -> bytes:
    """One client's message.

    Example:
        >>> import numpy as np
        >>> update = {"bias": np.array([[1.5, 2.5]], "f4")}
        >>> wire = encode(update, round=3)
        >>> len(wire) == int(nbytes(update, 1)[0]), decode(wire).round, decode(wire).arrays["bias"]
        (True, 3, array([[1.5, 2.5]], dtype=float32))
    """
    body = b""
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            body += _encoded(name, _DENSE, array.shape[1:], array[client])
        else:
            body += _encoded_rows(name, array, client)
    return _frame(body, round, len(arrays))


def _encoded_rows(name: str, rows: Rows, client: int) -> bytes:
    kind = _CELLS if rows.cells else _ROWS if rows.counts is None else _COUNTED
    width = rows.cells or _value_width(rows)
    mine = slice(int(rows.starts[client]), int(rows.starts[client] + rows.lengths[client]))
    order = np.argsort(rows.ids[mine], kind="stable")
    one = np.array([mine.start], dtype=np.int64)
    form = int(_id_sizes(Rows(one, rows.lengths[client : client + 1], rows.ids, rows.values)).forms[0])
    ids = written_ids(rows.ids[mine][order], form)
    counts = [] if rows.counts is None else [rows.counts[mine][order]]
    values = _values_of(rows, mine, client)[order]
    return _encoded(name, kind + 2 * form, (len(order), width, *rows.whole), ids, *counts, values)


def _values_of(rows: Rows, mine: slice, client: int) -> Array:
    known = rows.values
    if not isinstance(known, RankOne):
        return known[mine]
    zero = np.zeros(1, dtype=np.int64)
    one = RankOne(known.coef[mine], known.factors[client : client + 1], known.table, known.reg, known.grid)
    only = Rows(zero, zero + len(one.coef), rows.ids[mine], one)
    return materialise_grid(only, known.grid) if known.grid else materialise(only)


def encode_broadcast(arrays: Mapping[str, Array], round: int) -> bytes:
    """A message that is the same for everybody."""
    return encode({name: array[np.newaxis] for name, array in arrays.items()}, round)


class _Reader:
    """Takes bytes from the front of a buffer and refuses to run past its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._body):
            raise TacitError("a message ends too early", "it was truncated or altered; it is not counted")
        self._at += size
        return self._body[self._at - size : self._at]

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        count = 1
        for side in shape:
            count *= side
        raw = self.take(count * dtype.itemsize)
        return np.frombuffer(raw, dtype=dtype).reshape(shape).copy()

    def finished(self) -> bool:
        return self._at == len(self._body)


def _decoded(reader: _Reader) -> tuple[str, Array | Rows]:
    name = reader.take(reader.take(1)[0]).decode("utf-8", errors="replace")
    kind, dtype_code, dims = reader.take(3)
    sparse_dims = dims == 2 or (kind >= _CELLS and dims > 2)
    if dtype_code >= len(_DTYPES) or kind > _LAST or (kind != _DENSE and not sparse_dims):
        raise TacitError(
            "a message holds an array of unknown kind", "both sides need the same version of Tacit"
        )
    shape = struct.unpack(f"<{dims}I", reader.take(4 * dims))
    dtype = _DTYPES[dtype_code]
    if kind == _DENSE:
        return name, reader.array(dtype, (1, *shape))
    cells, counted = kind >= _CELLS, kind < _CELLS and kind % 2 == 0
    form = (kind - (_CELLS if cells else _ROWS)) // 2
    count, width, *whole = shape
    if whole and math.prod(whole) * dtype.itemsize > MAX_MESSAGE:
        raise TacitError("a message holds entries of an array too large to be one", "it is not counted")
    ids = _decoded_ids(reader, count, form)
    counts = reader.array(np.dtype("i4"), shape[:1]).view(np.int32) if counted else None
    values = reader.array(dtype, (count, 1 if cells else width))
    zero = np.zeros(1, dtype=np.int64)
    return name, Rows(zero, zero + count, ids, values, counts, width if cells else 0, tuple(whole))


def _decoded_ids(reader: _Reader, count: int, form: int) -> Index:
    if form == Form.PLAIN:
        return read_ids(reader.array(np.dtype("u1"), (4 * count,)), count, form)
    head = reader.array(np.dtype("u1"), (4,))
    rest = packed_length(int(head.view("<u4")[0]), count) - len(head)
    return read_ids(np.concatenate([head, reader.array(np.dtype("u1"), (rest,))]), count, form)


def decode(wire: bytes) -> Message:
    """Read one client's message; anything malformed is one clear error."""
    if not _HEADER.size <= len(wire) <= MAX_MESSAGE:
        raise TacitError(f"a message of {len(wire)} bytes cannot be one of ours", "it is not counted")
    magic, arrays, _, round, checksum = _HEADER.unpack_from(wire)
    body = wire[_HEADER.size :]
    if magic != _MAGIC or zlib.crc32(body) != checksum:
        raise TacitError(
            "a message does not carry our mark and checksum", "it was damaged; it is not counted"
        )
    reader = _Reader(body)
    found = dict(_decoded(reader) for _ in range(arrays))
    if not reader.finished() or len(found) != arrays:
        raise TacitError("a message holds more than it declares", "it is not counted")
    return Message(round, found)


def decode_broadcast(wire: bytes) -> Message:
    """Read a message that is the same for everybody."""
    message = decode(wire)
    return Message(
        message.round,
        {name: array[0] for name, array in message.arrays.items() if isinstance(array, np.ndarray)},
    )
