"""Anybody's own log: CSV or TSV with a header, Parquet, or RecBole's ``.inter``."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.columns import Field, Kind, Progress, Table, read_columns, settled_ids
from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Interactions, Scale, ordered
from tacit.data.source import numbered
from tacit.data.spec import Option
from tacit.errors import TacitError

SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq", ".inter")
OPTIONS = (
    Option("duplicates", "refuse", "when a pair occurs twice", ("refuse", "last", "mean")),
    Option("scale", "auto", "the ratings' range, as 1-5 or 0.5-5-0.5 (with the step), or none for counts"),
    Option("columns", "header", "names for a file without a header, as user/item/rating/timestamp"),
    Option("person", "none", "whose log it is, where no column names users"),
)
_ALIASES = {
    "user": ("user", "userid", "user_id", "uid", "customer", "customerid", "customer_id", "reviewerid"),
    "item": (
        "item", "itemid", "item_id", "iid", "movie", "movieid", "movie_id", "artistid", "artist_id",
        "product", "productid", "product_id", "asin", "bookid", "book_id", "business_id", "song_id",
        "trackid",
    ),
    "rating": ("rating", "ratings", "stars", "score", "value", "weight", "overall", "count", "cnt"),
    "timestamp": ("timestamp", "time", "ts", "unixtime", "unix_time", "unixreviewtime", "timestamps"),
}  # fmt: skip
_KINDS: Mapping[str, Kind] = {"user": "id", "item": "id", "rating": "number", "timestamp": "number"}
_STEPS = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01)
_MOST_LEVELS = 1001


@dataclass(frozen=True)
class Raw:
    """Columns as read (``user``, ``item``, maybe more), and how to name a row of them in an error."""

    columns: Mapping[str, NDArray[np.generic]]
    file: str
    unit: str
    first: int

    def at(self, row: int) -> str:
        """Where a row stands, in words."""
        return f"{self.file}, {self.unit} {self.first + row}"

    def of(self, person: str) -> "Raw":
        """The same rows as one person's, unless a column says whose they are."""
        if "user" in self.columns:
            return self
        return replace(self, columns={"user": np.full(len(self.columns["item"]), person), **self.columns})


def read_table(path: Path, settings: Mapping[str, str], progress: Progress | None = None) -> Dataset:
    r"""A data set from a table of interactions; one clear line names file and line of what is wrong.

    Columns are found by the usual names (user, userId, user_id:token, movieId, rating, timestamp …).
    Without a rating column the log is implicit: every value is 1 and there is no scale.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from tacit.data.load import load
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "mine.csv"
        ...     _ = path.write_text("user,item,rating\nann,x,4\nbob,x,1\nann,y,5\n")
        ...     data = load(str(path))
        >>> data.user_ids.values.tolist(), data.interactions.values.tolist(), data.scale
        (['ann', 'bob'], [4.0, 5.0, 1.0], Scale(low=1.0, high=5.0, step=1.0))
    """
    is_parquet = path.suffix.lower() in {".parquet", ".pq"}
    needed = needed_columns(settings)
    raw = _parquet(path, needed) if is_parquet else _delimited(path, settings["columns"], needed, progress)
    return assembled(raw, path.stem, settings)


def needed_columns(settings: Mapping[str, str]) -> Sequence[str]:
    """Which columns must be there: who and what, or what alone in one person's own history."""
    return ("user", "item") if settings["person"] == "none" else ("item",)


def assembled(raw: Raw, name: str, settings: Mapping[str, str]) -> Dataset:
    """A data set from columns, checked; ``settings`` are the values of ``OPTIONS``."""
    raw = raw.of(settings["person"])
    notes: tuple[str, ...] = ()
    values = _values(raw)
    scale = _scale(raw, values, settings["scale"])
    people, things = numbered(raw.columns["user"]), numbered(raw.columns["item"])
    log = Interactions(people.positions, things.positions, values.astype(np.float32), _times(raw))
    kept, repeated = _without_duplicates(raw, log, settings["duplicates"])
    if repeated:
        notes += (f"{repeated} repeated pairs were settled by duplicates={settings['duplicates']}",)
    if scale is None and "rating" in raw.columns:
        notes += ("values are taken as strengths or counts, not as ratings on a scale",)
    return Dataset(
        name=name,
        interactions=kept,
        user_ids=Ids(people.ids, "user"),
        item_ids=Ids(things.ids, "item"),
        scale=scale,
        notes=notes,
    )


def _delimited(path: Path, names: str, needed: Sequence[str], progress: Progress | None) -> Raw:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TacitError(f"cannot read {path} ({error.strerror})", "check the path") from error
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise TacitError(
            f"{path.name} is empty", "give a file with a header line and one interaction per line"
        )
    if raw[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\0" in raw[:4096]:
        raise TacitError(f"{path.name} is not plain UTF-8 text", "save it as a UTF-8 text file")
    line, newline, body = raw.partition(b"\n")
    first = line.rstrip(b"\r").decode("utf-8", "replace")
    delimiter = "\t" if path.suffix.lower() in {".inter", ".tsv", ".tab"} else _sniffed(first)
    if names == "header":
        header = [name.strip().strip('"') for name in first.split(delimiter)]
        start = 2
    else:
        header, body, start = names.split("/"), line + newline + body, 1
    wanted = placed(path.name, header, needed)
    table = Table(
        path.name, body, delimiter.encode(), len(header), start, quoted=path.suffix.lower() != ".inter"
    )
    fields = [Field(place, name, _KINDS[name]) for name, place in wanted.items()]
    columns = read_columns(table, fields, progress)
    return Raw(dict(zip(wanted, columns, strict=True)), path.name, "line", start)


def _sniffed(line: str) -> str:
    return max(",\t;| ", key=lambda mark: (line.count(mark), -",\t;| ".index(mark)))


def placed(
    file: str,
    header: Sequence[str],
    needed: Sequence[str],
    top: str = "line 1",
    remedy: str = "add a header line, or name the columns with :columns=user/item/rating/timestamp",
) -> dict[str, int]:
    """Where each column we know stands; typed names such as ``user_id:token`` count without the type."""
    plain = [name.lower().partition(":")[0].strip() for name in header]
    wanted: dict[str, int] = {}
    for role, aliases in _ALIASES.items():
        found = [place for place, name in enumerate(plain) if name in aliases]
        if len(found) > 1:
            both = " and ".join(repr(header[place]) for place in found[:2])
            raise TacitError(
                f"{file}, {top}: both {both} could be the {role}", "rename or remove one of them"
            )
        if found:
            wanted[role] = found[0]
    for role in needed:
        if role not in wanted:
            shown = ", ".join(header[:8])
            raise TacitError(
                f"{file}, {top}: expected a column named {role} ({role}Id, {role}_id), found {shown}",
                remedy,
            )
    return wanted


def _parquet(path: Path, needed: Sequence[str]) -> Raw:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise TacitError("reading Parquet needs pyarrow", "run: pip install 'tacit[tables]'") from error
    try:
        opened = parquet.ParquetFile(path)
        wanted = placed(path.name, opened.schema_arrow.names, needed)
        names = {role: opened.schema_arrow.names[place] for role, place in wanted.items()}
        table = opened.read(columns=list(names.values()))
    except (OSError, ValueError) as error:
        raise TacitError(f"{path.name} is not a readable Parquet file", "check the file") from error
    if not table.num_rows:
        raise TacitError(f"{path.name} holds no rows", "give a file with at least one interaction")
    columns: dict[str, NDArray[np.generic]] = {}
    for role, name in names.items():
        missing = np.flatnonzero(table[name].is_null().to_numpy())
        if len(missing):
            raise TacitError(
                f"{path.name}, row {missing[0] + 1}: no value for {role}", "fill or remove that row"
            )
        columns[role] = cleaned(path.name, role, table[name].to_numpy())
    return Raw(columns, path.name, "row", 1)


def cleaned(file: str, role: str, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """A column of a typed table as ids or numbers; one clear line where it is neither."""
    kind = values.dtype.kind
    if role == "timestamp" and kind == "M":
        return values.astype("datetime64[s]").astype(np.int64)
    if _KINDS[role] == "number":
        if kind not in "iufb":
            raise TacitError(f"{file}: the column for {role} does not hold numbers", "store it as numbers")
        return values.astype(np.float64)
    if kind in "iu":
        return values.astype(np.int64)
    if kind == "U":
        return settled_ids(values)
    if kind == "O" and all(isinstance(value, str) for value in values.tolist()):
        return settled_ids(values.astype(np.str_))
    raise TacitError(f"{file}: the column for {role} holds neither integers nor text", "store ids as either")


def _values(raw: Raw) -> NDArray[np.float64]:
    if "rating" not in raw.columns:
        return np.ones(len(raw.columns["user"]))
    values = raw.columns["rating"].astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise TacitError(
            f"{raw.at(int(bad[0]))}: rating {values[bad[0]]} is not finite", "correct or remove it"
        )
    return values


def _times(raw: Raw) -> NDArray[np.int64] | None:
    if "timestamp" not in raw.columns:
        return None
    times = raw.columns["timestamp"].astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(times) & (np.abs(times) < 2.0**53)))
    if len(bad):
        raise TacitError(f"{raw.at(int(bad[0]))}: timestamp is not a finite number", "use unix seconds")
    return np.floor(times).astype(np.int64)


def _scale(raw: Raw, values: NDArray[np.float64], declared: str) -> Scale | None:
    """The declared scale, checked; else the coarsest usual step that all values fit on."""
    if "rating" not in raw.columns or declared == "none":
        return None
    if declared == "auto":
        return _inferred(values)
    scale = _parsed_scale(declared)
    outside = np.flatnonzero((values < scale.low) | (values > scale.high))
    if len(outside):
        raise TacitError(
            f"{raw.at(int(outside[0]))}: rating {values[outside[0]]:g} is outside "
            f"{scale.low:g} to {scale.high:g}",
            "correct it or declare another scale",
        )
    off = np.flatnonzero(~_on_grid(values, scale.low, scale.step))
    if len(off):
        raise TacitError(
            f"{raw.at(int(off[0]))}: rating {values[off[0]]:g} is not "
            f"{scale.low:g} plus steps of {scale.step:g}",
            "declare the step, as in scale=0.5-5-0.5",
        )
    return scale


def _parsed_scale(text: str) -> Scale:
    try:
        low, high, *rest = (float(part) for part in text.split("-"))
        step = rest[0] if rest else 1.0
        if len(rest) <= 1 and low < high and 0 < step <= high - low:
            return Scale(low, high, step)
    except ValueError:
        pass
    raise TacitError(f"cannot read scale={text}", "write scale=1-5, scale=0.5-5-0.5 or scale=none")


def _on_grid(values: NDArray[np.float64], low: float, step: float) -> NDArray[np.bool_]:
    steps = (values - low) / step
    return np.abs(steps - np.rint(steps)) < 1e-6


def _inferred(values: NDArray[np.float64]) -> Scale | None:
    low, high = float(values.min()), float(values.max())
    if low == high:
        return None
    for step in _STEPS:
        if (high - low) / step < _MOST_LEVELS and _on_grid(values, low, step).all():
            return Scale(low, high, step) if (high - low) / step <= 100 else None
    return None


def _without_duplicates(raw: Raw, log: Interactions, choice: str) -> tuple[Interactions, int]:
    """The log in order, one row per pair, and how many rows that took away."""
    keys = log.users.astype(np.int64) << 32 | log.items
    order = np.argsort(keys, kind="stable")
    if choice == "last" and log.times is not None:
        order = np.lexsort((log.times, keys))
    again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if not len(again):
        return ordered(log), 0
    if choice == "refuse":
        rows = np.sort(np.stack([order[again], order[again + 1]]), axis=0)
        first = int(rows[1].argmin())
        before, row = int(rows[0, first]), int(rows[1, first])
        user, item = raw.columns["user"][row], raw.columns["item"][row]
        raise TacitError(
            f"{raw.at(row)} repeats user {user}, item {item} of {raw.unit} {raw.first + before}",
            "remove one, or add :duplicates=last or :duplicates=mean",
        )
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[again] = False
    last = order[is_last]
    kept = log.take(last)
    if choice == "mean":
        group = np.concatenate(([0], np.cumsum(is_last[:-1])))
        sums = np.bincount(group, weights=log.values[order].astype(np.float64))
        means = (sums / np.bincount(group)).astype(np.float32)
        kept = Interactions(kept.users, kept.items, means, kept.times)
    return kept, len(again)
