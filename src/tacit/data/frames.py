"""Interactions given in memory: a data frame, columns by name, or rows; and their way into a file."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Dataset, Scale
from tacit.data.sources.tables import OPTIONS, Raw, assembled, cleaned, needed_columns, placed
from tacit.data.spec import settled
from tacit.errors import TacitError

_ROLES = ("user", "item", "rating", "timestamp")
_SHAPES = "give a data frame, a mapping of columns, or rows of (user, item[, rating[, timestamp]])"
_NAME = "table"


def from_memory(table: Any, options: Mapping[str, str] | None = None) -> Dataset:
    """A data set from a data frame (pandas, polars), a mapping of columns, or rows.

    Columns are found by the usual names, as in a file; rows are ``(user, item)``, maybe with a rating and a
    timestamp. ``options`` are those of a table file: ``duplicates``, ``scale``, ``person``.

    Example:
        >>> data = from_memory({"user": ["ann", "bob"], "item": [3, 5], "rating": [4, 1]})
        >>> data.user_ids.values.tolist(), data.scale
        (['ann', 'bob'], Scale(low=1.0, high=4.0, step=1.0))
        >>> from_memory([("ann", "x"), ("bob", "y")]).scale is None
        True
    """
    columns = _columns(table)
    names, given = list(columns), settled(_NAME, OPTIONS, options or {})
    remedy = "rename the columns to user, item, rating, timestamp"
    wanted = placed("the table", names, needed_columns(given), "its columns", remedy)
    chosen = {role: columns[names[place]] for role, place in wanted.items()}
    lengths = {role: len(column) for role, column in chosen.items()}
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{role} {length}" for role, length in lengths.items())
        raise TacitError(f"columns of different lengths ({told})", "give one value per interaction")
    if not lengths["item"]:
        raise TacitError("the table holds no rows", "give at least one interaction")
    raw = {role: _checked(role, column) for role, column in chosen.items()}
    return assembled(Raw(raw, "the table", "row", 0), _NAME, given)


def _columns(table: Any) -> dict[str, NDArray[Any]]:
    if isinstance(table, Mapping):
        return {str(name): np.asarray(column) for name, column in table.items()}
    names = getattr(table, "columns", None)
    if names is not None and hasattr(table, "__getitem__"):
        return {str(name): table[name].to_numpy() for name in names}
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return _by_place(_rows(table))
    if isinstance(table, np.ndarray):
        return _by_place(table)
    raise TacitError(f"a {type(table).__name__} is no table of interactions", _SHAPES)


def _rows(rows: Sequence[Any]) -> NDArray[np.object_]:
    if not all(isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) for row in rows):
        raise TacitError("these rows are not tuples", _SHAPES)
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise TacitError(f"rows of different lengths {sorted(widths)}", _SHAPES)
    made = np.empty((len(rows), widths.pop() if widths else 2), dtype=object)
    for place, row in enumerate(rows):
        made[place] = list(row)
    return made


def _by_place(table: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if table.ndim != 2 or not 2 <= table.shape[1] <= 4:
        raise TacitError(f"an array of shape {table.shape} is no table of interactions", _SHAPES)
    return {role: table[:, place] for place, role in enumerate(_ROLES[: table.shape[1]])}


def _checked(role: str, column: NDArray[Any]) -> NDArray[Any]:
    """A column as whole ids or numbers, whatever a frame or a list made of it."""
    if column.ndim != 1:
        raise TacitError(f"the column for {role} has {column.ndim} dimensions", "give one value per row")
    missing = np.flatnonzero(_is_missing(column))
    if len(missing):
        raise TacitError(f"the table, row {missing[0]}: no value for {role}", "fill or remove that row")
    is_id = role in {"user", "item"}
    if column.dtype.kind == "O":
        column = _unwrapped(column, is_id=is_id)
    if is_id and column.dtype.kind == "f" and (column == np.floor(column)).all():
        column = column.astype(np.int64)
    found = cleaned("the table", role, column)
    if found.dtype.kind == "U":
        bad = [row for row, name in enumerate(found.tolist()) if not name or "\0" in name]
        if bad:
            raise TacitError(f"the table, row {bad[0]}: {str(found[bad[0]])!r} is no id", "give a name")
    return found


def _is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    kind = column.dtype.kind
    if kind == "f":
        return np.isnan(column)
    if kind == "M":
        return np.isnat(column)
    if kind == "O":
        return np.array([_is_nothing(value) for value in column.tolist()], dtype=np.bool_)
    return np.zeros(len(column), dtype=np.bool_)


def _is_nothing(value: Any) -> bool:
    """Nothing, not a number, or pandas' missing value (comparing that one is neither true nor false)."""
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value


def _unwrapped(column: NDArray[Any], *, is_id: bool) -> NDArray[Any]:
    """Python objects as a plain column: whole numbers, numbers, or text; mixed ids become text."""
    values = column.tolist()
    if all(isinstance(value, int | np.integer) for value in values):
        return np.array(values, dtype=np.int64)
    if all(isinstance(value, int | float | np.number) for value in values):
        return np.array(values, dtype=np.float64)
    if is_id and all(isinstance(value, str | int) for value in values):
        return np.array([str(value) for value in values], dtype=np.str_)
    return column


def written_table(dataset: Dataset, path: Path) -> str:
    """Write a log as CSV and return the options with which :func:`tacit.data.load` reads the same data set.

    Example:
        >>> import tempfile
        >>> from tacit.data.load import load
        >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
        >>> options = written_table(from_memory([("ann", "x", 4), ("bob", "y", 2)]), file)
        >>> options, load(f"{file}:{options}").interactions.values.tolist()
        ('scale=2.0-4.0-1.0', [4.0, 2.0])
    """
    log = dataset.interactions
    plain = dataset.scale is None and bool((log.values == 1).all())
    columns = {"user": dataset.user_ids.values[log.users], "item": dataset.item_ids.values[log.items]}
    rows: dict[str, Any] = {name: ids.tolist() for name, ids in columns.items()}
    if not plain:
        rows["rating"] = log.values.astype(str).tolist()  # the shortest text that is the same number
    if log.times is not None:
        rows["timestamp"] = log.times.tolist()
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\r\n")  # so that both are quoted inside an id
            writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))
            file.flush()
            os.fsync(file.fileno())
    except UnicodeEncodeError as error:
        raise TacitError(f"the id {error.object!r} is not Unicode text", "clean the ids") from error
    if plain:
        return ""
    return "scale=none" if dataset.scale is None else _declared(dataset.scale)


def _declared(scale: Scale) -> str:
    parts = [repr(float(part)) for part in (scale.low, scale.high, scale.step)]
    readable = scale.low >= 0 and not any("e" in part for part in parts)
    return f"scale={'-'.join(parts)}" if readable else "scale=auto"
