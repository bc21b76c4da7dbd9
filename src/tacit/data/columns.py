"""Columns out of delimited bytes: fast where fields are plain digits, exact in what it refuses, and where.

The bytes are worked through in pieces that fit the cache. Within a piece all separators are found at
once, so that a missing or surplus field is noticed in the line it happens in and not as shifted numbers.
"""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError

Progress: TypeAlias = Callable[[int, int], None]
Kind: TypeAlias = Literal["whole", "number", "id"]
Bytes: TypeAlias = NDArray[np.uint8]
Column: TypeAlias = NDArray[Any]  # int64, float64 or text, as the kind of the field says

_PIECE = 1 << 22
_NEWLINE = 10
_LONGEST = 512
_PLAIN_NUMBER = frozenset(b"0123456789+-.eE")


@dataclass(frozen=True)
class Field:
    """A column that is wanted: its place in the line, what to call it in an error, and what it holds.

    Example:
        >>> Field(2, "rating", "number").name
        'rating'
    """

    place: int
    name: str
    kind: Kind


@dataclass(frozen=True)
class Table:
    r"""Delimited lines to be read: ``raw`` starts at line ``first_line`` of ``file``, after any header.

    Example:
        >>> table = Table("r.dat", b"1::2::4.5\n3::1::5\n", b"::", 3)
        >>> fields = [Field(0, "user", "whole"), Field(1, "item", "whole"), Field(2, "rating", "number")]
        >>> [column.tolist() for column in read_columns(table, fields)]
        [[1, 3], [2, 1], [4.5, 5.0]]
    """

    file: str
    raw: bytes
    delimiter: bytes
    fields: int
    first_line: int = 1
    quoted: bool = False


class _NotDigits(Exception):
    """A field is not made of plain digits."""


def read_columns(table: Table, fields: Sequence[Field], progress: Progress | None = None) -> list[Column]:
    r"""The wanted columns: ``int64`` for whole numbers, ``float64`` for numbers, integers or text for ids.

    Ids are integers only if all of them are, written the usual way (``007`` is text: it is not ``7``).
    What does not fit is refused with file, line and what was expected there.

    Example:
        >>> read_columns(Table("r.csv", b"a,1\nb\n", b",", 2), [Field(0, "user", "id")])
        Traceback (most recent call last):
        tacit.errors.TacitError: r.csv, line 2: expected 2 fields, found 1; correct or remove that line
    """
    if not table.raw.strip():
        raise TacitError(f"{table.file} holds no rows", "give a file with at least one interaction")
    if table.quoted and b'"' in table.raw:
        return _quoted_columns(table, fields)
    pieces: list[list[Column]] = []
    for start, buffer, ends in _pieces(table, progress):
        pieces.append([_piece_column(table, buffer, ends, field, start) for field in fields])
    return [_joined(field, [piece[at] for piece in pieces]) for at, field in enumerate(fields)]


def _pieces(table: Table, progress: Progress | None) -> Iterator[tuple[int, Bytes, NDArray[np.int64]]]:
    """Yield (line number, bytes, where each field ends) for runs of whole lines."""
    raw = table.raw
    total, at, line = len(raw), 0, table.first_line
    while raw[total - 1] in b"\r\n":
        total -= 1
    while at < total:
        cut = raw.rfind(b"\n", at, at + _PIECE) + 1 or raw.find(b"\n", at) + 1 or total
        piece = raw[at:cut] if cut < total else raw[at:total] + b"\n"
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n")
        mark = table.delimiter
        if len(mark) > 1:
            piece, mark = piece.replace(mark, b"\t"), b"\t"
        buffer = np.frombuffer(piece, dtype=np.uint8)
        ends = _field_ends(table, buffer, mark[0], line)
        yield line, buffer, ends
        at, line = cut, line + len(ends)
        if progress is not None:
            progress(min(at, total), total)


def _field_ends(table: Table, buffer: Bytes, mark: int, line: int) -> NDArray[np.int64]:
    is_newline = buffer == _NEWLINE
    ends = np.flatnonzero((buffer == mark) | is_newline)
    width = table.fields
    if len(ends) % width == 0:
        grid = is_newline[ends].reshape(-1, width)
        if grid[:, -1].all() and not grid[:, :-1].any():
            return ends.reshape(-1, width)
    found = np.diff(np.flatnonzero(is_newline[ends]), prepend=-1)
    bad = int(np.flatnonzero(found != width)[0])
    raise TacitError(
        f"{table.file}, line {line + bad}: expected {width} fields, found {found[bad]}",
        "correct or remove that line",
    )


def _piece_column(table: Table, buffer: Bytes, ends: NDArray[np.int64], field: Field, line: int) -> Column:
    place = field.place
    stops = ends[:, place]
    starts = ends[:, place - 1] + 1 if place else np.concatenate(([0], ends[:-1, -1] + 1))
    try:
        if field.kind == "number":
            return _plain_numbers(buffer, starts, stops)
        return _plain_wholes(buffer, starts, stops)
    except _NotDigits:
        texts = _texts(table, buffer, starts, stops, field, line)
    if field.kind == "id":
        _refuse_other_encodings(table, field, texts, line)
        return texts
    return _converted(table, field, texts, lambda row: line + row)


def _refuse_other_encodings(table: Table, field: Field, texts: NDArray[np.bytes_], line: int) -> None:
    for row in np.flatnonzero((texts.view(np.uint8).reshape(len(texts), -1) > 127).any(axis=1)).tolist():
        try:
            texts[row].decode("utf-8")
        except UnicodeDecodeError as error:
            shown = error.object.decode("latin-1")
            raise TacitError(
                f"{table.file}, line {line + row}: {field.name} {shown!r} is not UTF-8 text",
                "save the file as UTF-8",
            ) from error


def _plain_wholes(buffer: Bytes, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    widths = stops - starts
    longest, shortest = int(widths.max()), int(widths.min())
    if shortest < 1 or longest > 18:
        raise _NotDigits
    values = np.zeros(len(widths), dtype=np.int64)
    last = stops - 1
    for place in range(longest):
        if place < shortest:
            digits = buffer[last - place] - np.uint8(48)
            values += digits.astype(np.int64) * 10**place
        else:
            rows = np.flatnonzero(widths > place)
            digits = buffer[last[rows] - place] - np.uint8(48)
            values[rows] += digits.astype(np.int64) * 10**place
        if digits.max() > 9:
            raise _NotDigits
    if longest > 1 and ((buffer[starts] == 48) & (widths > 1)).any():
        raise _NotDigits
    return values


def _plain_numbers(buffer: Bytes, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.float64]:
    """Digits with at most one point. The digits are summed exactly and divided once, so rounding is right."""
    widths = stops - starts
    longest = int(widths.max())
    if int(widths.min()) < 1 or longest > 15:
        raise _NotDigits
    sums, weight = np.zeros(len(widths)), np.ones(len(widths))
    scale, points = np.ones(len(widths)), np.zeros(len(widths), dtype=np.int8)
    for place in range(longest):
        inside = widths > place
        letters = np.where(inside, buffer[np.maximum(stops - 1 - place, 0)], np.uint8(48))
        point = letters == 46
        digits = np.where(point, np.uint8(0), letters - np.uint8(48))
        if digits.max() > 9:
            raise _NotDigits
        sums += digits * weight
        scale[point] = weight[point]
        points += point
        weight = np.where(point, weight, weight * 10.0)
    if points.max() > 1 or ((points == 1) & (widths == 1)).any():
        raise _NotDigits
    return sums / scale


def _texts(
    table: Table,
    buffer: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    field: Field,
    line: int,
) -> NDArray[np.bytes_]:
    widths = stops - starts
    empty = np.flatnonzero(widths == 0)
    if len(empty):
        raise _bad(table.file, line + int(empty[0]), field, "")
    longest = int(widths.max())
    if longest > _LONGEST:
        raise TacitError(
            f"{table.file}, line {line + int(widths.argmax())}: {field.name} has {longest} characters",
            "check the file's separator and quotes",
        )
    places = starts[:, None] + np.arange(longest)
    letters = np.where(places < stops[:, None], buffer[np.minimum(places, len(buffer) - 1)], np.uint8(0))
    return np.ascontiguousarray(letters).view(f"S{longest}").ravel()


def _bad(file: str, line: int, field: Field, found: str) -> TacitError:
    expected = {"whole": "a whole number", "number": "a finite number", "id": "an id"}[field.kind]
    return TacitError(
        f"{file}, line {line}: expected {expected} for {field.name}, found {found!r}",
        "correct or remove that line",
    )


def _converted(
    table: Table, field: Field, texts: NDArray[np.bytes_], line_of: Callable[[int], int]
) -> Column:
    """Numbers written in other ways (signs, exponents), or the first one that is none."""
    try:
        values = texts.astype(np.int64 if field.kind == "whole" else np.float64)
        clean = all(_PLAIN_NUMBER.issuperset(text.strip()) for text in texts.tolist())
        if clean and np.isfinite(values).all():
            return values
    except (ValueError, OverflowError):
        pass
    for row, text in enumerate(texts.tolist()):
        if not _is_number(text, field.kind):
            raise _bad(table.file, line_of(row), field, text.decode("utf-8", "replace"))
    raise TacitError(f"{table.file}: {field.name} cannot be read as numbers", "check the column")


def _is_number(text: bytes, kind: Kind) -> bool:
    try:
        value = int(text) if kind == "whole" else float(text)
    except ValueError:
        return False
    return _PLAIN_NUMBER.issuperset(text.strip()) and abs(value) < (2**63 if kind == "whole" else np.inf)


def _joined(field: Field, pieces: Sequence[Column]) -> Column:
    if field.kind != "id" or all(piece.dtype.kind == "i" for piece in pieces):
        return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
    return settled_ids(np.concatenate([piece.astype("S") for piece in pieces]))


def settled_ids(texts: NDArray[Any]) -> NDArray[Any]:
    """Ids as integers if every one is an integer in its usual spelling, else as text.

    Example:
        >>> settled_ids(np.array([b"7", b"-2"])), settled_ids(np.array([b"7", b"07"]))
        (array([ 7, -2]), array(['7', '07'], dtype='<U2'))
    """
    try:
        numbers = texts.astype(np.int64)
        if (numbers.astype(texts.dtype.kind) == texts).all():
            return numbers
    except (ValueError, OverflowError):
        pass
    return texts if texts.dtype.kind == "U" else np.char.decode(texts, "utf-8")


def _quoted_columns(table: Table, fields: Sequence[Field]) -> list[Column]:
    """The general way for files with quotes: the standard reader, field by field."""
    try:
        text = table.raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = table.first_line + table.raw.count(b"\n", 0, error.start)
        raise TacitError(f"{table.file}, line {line} is not UTF-8 text", "save the file as UTF-8") from error
    kept: list[list[str]] = [[] for _ in fields]
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter.decode(), strict=True)
    try:
        for row in reader:
            line = table.first_line + reader.line_num - 1
            if len(row) != table.fields:
                raise TacitError(
                    f"{table.file}, line {line}: expected {table.fields} fields, found {len(row)}",
                    "correct or remove that line",
                )
            lines.append(line)
            for column, field in zip(kept, fields, strict=True):
                if not row[field.place]:
                    raise _bad(table.file, line, field, "")
                column.append(row[field.place])
    except csv.Error as error:
        line = table.first_line + reader.line_num - 1
        raise TacitError(f"{table.file}, line {line}: {error}", "check the quotes") from error
    return [_from_texts(table, field, column, lines) for field, column in zip(fields, kept, strict=True)]


def _from_texts(table: Table, field: Field, column: list[str], lines: list[int]) -> Column:
    texts = np.char.encode(np.array(column, dtype=np.str_), "utf-8")
    if field.kind == "id":
        return settled_ids(texts)
    return _converted(table, field, texts, lines.__getitem__)
