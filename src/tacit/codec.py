"""What crosses a wire: arrays to bytes and back, and the exact length without encoding.

A message is a 16-byte header, then each array: name, kind, type, shape, bytes. Sparse rows travel sorted
by id, so their order says nothing about which of them are fillers. Reading trusts nobody: every length
is checked before it is used.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.rows import materialise, materialise_grid
from tacit.types import Array, Arrays, Long, RankOne, Rows

_MAGIC = b"TCT1"
_HEADER = struct.Struct("<4sHHII")
_DTYPES = [np.dtype(name) for name in ("f4", "f8", "i4", "i8", "u1", "f2", "u4", "u8", "i1", "u2")]
_DENSE, _ROWS, _COUNTED = 0, 1, 2
MAX_MESSAGE = 1 << 31


class Message(NamedTuple):
    """A decoded message: the round it belongs to and one client's arrays."""

    round: int
    arrays: dict[str, Array | Rows]


def _value_type(rows: Rows) -> np.dtype[Any]:
    if isinstance(rows.values, RankOne):
        return np.dtype("i8") if rows.values.grid else rows.values.coef.dtype
    return rows.values.dtype


def _value_width(rows: Rows) -> int:
    shape = rows.values.factors.shape if isinstance(rows.values, RankOne) else rows.values.shape
    return int(np.prod(shape[1:], dtype=np.int64))


def _head_length(name: str, dims: int) -> int:
    return 1 + len(name.encode()) + 3 + 4 * dims


def row_bytes(rows: Rows) -> int:
    """Bytes of one sparse row on the wire: id, count if there is one, values.

    Example:
        >>> import numpy as np
        >>> one = np.zeros(1, "i8")
        >>> row_bytes(Rows(one, one + 2, np.array([5, 3], "i4"), np.ones((2, 20), "f4")))
        84
    """
    return 4 + (4 if rows.counts is not None else 0) + _value_type(rows).itemsize * _value_width(rows)


def nbytes(arrays: Arrays, clients: int) -> Long:
    """The length of each client's message, without encoding it; who has nothing to say sends nothing."""
    if not arrays:
        return np.zeros(clients, dtype=np.int64)
    length = np.full(clients, _HEADER.size, dtype=np.int64)
    for name, array in arrays.items():
        if isinstance(array, Rows):
            length += _head_length(name, 2) + array.lengths * row_bytes(array)
        else:
            length += _head_length(name, array.ndim - 1) + array.dtype.itemsize * int(
                np.prod(array.shape[1:])
            )
    return length


def broadcast_nbytes(arrays: Mapping[str, Array]) -> int:
    """The length of a message that is the same for everybody: its arrays have no client axis."""
    if not arrays:
        return 0
    return _HEADER.size + sum(_head_length(name, array.ndim) + array.nbytes for name, array in arrays.items())


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
        >>> len(wire) == nbytes(update, 1)[0], decode(wire).round, decode(wire).arrays["bias"]
        (True, 3, array([[1.5, 2.5]], dtype=float32))
    """
    body = b""
    for name, array in arrays.items():
        if isinstance(array, Rows):
            mine = slice(int(array.starts[client]), int(array.starts[client] + array.lengths[client]))
            order = np.argsort(array.ids[mine], kind="stable")
            values = _values_of(array, mine, client)[order]
            shape = (len(order), _value_width(array))
            if array.counts is None:
                body += _encoded(name, _ROWS, shape, array.ids[mine][order], values)
            else:
                body += _encoded(
                    name, _COUNTED, shape, array.ids[mine][order], array.counts[mine][order], values
                )
        else:
            body += _encoded(name, _DENSE, array.shape[1:], array[client])
    return _frame(body, round, len(arrays))


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
    if dtype_code >= len(_DTYPES) or kind > _COUNTED or (kind != _DENSE and dims != 2):
        raise TacitError(
            "a message holds an array of unknown kind", "both sides need the same version of Tacit"
        )
    shape = struct.unpack(f"<{dims}I", reader.take(4 * dims))
    dtype = _DTYPES[dtype_code]
    if kind == _DENSE:
        return name, reader.array(dtype, (1, *shape))
    ids = reader.array(np.dtype("i4"), shape[:1]).view(np.int32)
    counts = reader.array(np.dtype("i4"), shape[:1]).view(np.int32) if kind == _COUNTED else None
    values = reader.array(dtype, shape)
    zero = np.zeros(1, dtype=np.int64)
    return name, Rows(zero, zero + shape[0], ids, values, counts)


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
        {name: array[0] for name, array in message.arrays.items() if not isinstance(array, Rows)},
    )
