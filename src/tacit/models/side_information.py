"""What is publicly known of items, one row of numbers each: inputs of models that see one person alone."""

from dataclasses import dataclass

import numpy as np

from tacit.data.interactions import Features
from tacit.errors import TacitError
from tacit.types import Floats, Index


@dataclass(frozen=True, eq=False)
class ItemTable:
    """One row per item; ``names`` say what the columns are.

    Example:
        >>> films = Features(
        ...     flags={"genres": np.array([[1, 0], [0, 1]], "u1")},
        ...     numbers={"year": np.array([1950, 1999], "f4")},
        ... )
        >>> item_table(films, periods=2).rows.tolist()
        [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """

    rows: Floats
    names: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.rows.shape[1]

    def of(self, items: Index) -> Floats:
        """The rows of some items; without columns there is nothing to look up."""
        return self.rows[items] if self.width else np.zeros((*items.shape, 0), dtype=np.float32)

    def __eq__(self, other: object) -> bool:
        """Equal columns with equal numbers."""
        if not isinstance(other, ItemTable):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        """By the columns' names."""
        return hash(self.names)


BLANK = ItemTable(np.zeros((0, 0), dtype=np.float32))
"""Nothing is known of any item."""


def item_table(features: Features, *, periods: int = 5) -> ItemTable:
    """Every feature as columns, but texts and what sums up people's logs.

    Flags and categories become 0 and 1, years ``periods`` flags of about equally many items. Other numbers
    are centred and scaled over the catalogue; those that share the part before a slash share one scale.
    """
    parts: list[Floats] = []
    names: list[str] = []
    for name, flags in features.flags.items():
        labels = features.labels.get(name, tuple(map(str, range(flags.shape[1]))))
        parts.append(flags.astype(np.float32))
        names += [f"{name}={label}" for label in labels]
    for name, codes in features.categories.items():
        size = max(int(codes.max(initial=-1)) + 1, len(features.labels.get(name, ())))
        parts.append(_one_hot(codes, size))
        names += [f"{name}={code}" for code in range(size)]
    if "year" in features.numbers:
        eras = _eras(features.numbers["year"], periods)
        parts.append(eras)
        names += [f"period={number}" for number in range(eras.shape[1])]
    others = [name for name in features.numbers if name not in {"year", *features.from_log}]
    for block in dict.fromkeys(name.split("/")[0] for name in others):
        members = [name for name in others if name.split("/")[0] == block]
        columns = np.stack([features.numbers[name] for name in members], axis=1)
        parts.append(_scaled(columns))
        names += members
    if not parts:
        raise TacitError(
            "these items have no features for a private model to look at",
            "use mask=user-mean, or data with features (ml-100k, lastfm-2k:bins=200-400-600-800,tags=20)",
        )
    return ItemTable(np.concatenate(parts, axis=1), tuple(names))


def _one_hot(codes: np.ndarray, size: int) -> Floats:
    found = np.zeros((len(codes), size), dtype=np.float32)
    known = np.flatnonzero(codes >= 0)
    found[known, codes[known]] = 1
    return found


def _eras(years: Floats, periods: int) -> Floats:
    known = np.isfinite(years)
    if not known.any() or periods < 2:
        return np.zeros((len(years), 0), dtype=np.float32)
    edges = np.unique(np.quantile(years[known], np.arange(1, periods) / periods))
    codes = np.searchsorted(edges, np.where(known, years, edges[0]), side="right")
    return _one_hot(np.where(known, codes, -1), len(edges) + 1)


def _scaled(columns: Floats) -> Floats:
    known = np.where(np.isfinite(columns), columns, np.nan)
    centred = np.nan_to_num(known - np.nanmean(known, axis=0))
    spread = float(np.sqrt((centred**2).mean()))
    return (centred / (spread or 1.0)).astype(np.float32)
