"""From features to the inputs of a network: one-hot rows, and which items look the same.

User and item ids never enter. Items with equal features are one group: a network that sees features alone
gives all of a group one score, so a client's data matter only as counts per group.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Features
from tacit.errors import TacitError, nearest
from tacit.types import Array, Cohort, Floats, Index

_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Field:
    """One feature: ``slots`` embeddings are looked up for it, each among ``rows``.

    A category is one slot, a set of flags one slot per flag with a row for absent and one for present, a
    number one slot and one row that it multiplies, words one slot of which several rows may be taken.
    """

    name: str
    kind: Literal["category", "flag", "number", "word"]
    rows: int
    slots: int = 1

    @property
    def width(self) -> int:
        """How many columns of a design it takes."""
        return self.rows * self.slots


@dataclass(frozen=True, eq=False)
class Encoding:
    """The fields of both sides, and each group's design; ``groups[i]`` is the group of item ``i``.

    Example:
        >>> kinds = Features(flags={"genre": np.array([[1, 0], [0, 1], [1, 0]], "u1")})
        >>> found = encoded(kinds, Features(), 3)
        >>> found.groups.tolist(), found.designs.tolist()
        ([0, 1, 0], [[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    """

    people: tuple[Field, ...]
    items: tuple[Field, ...]
    groups: Index
    designs: NDArray[np.float32]

    def __eq__(self, other: object) -> bool:
        """Equal fields, groups and designs."""
        if not isinstance(other, Encoding):
            return NotImplemented
        return (
            (self.people, self.items) == (other.people, other.items)
            and np.array_equal(self.groups, other.groups)
            and np.array_equal(self.designs, other.designs)
        )

    def __hash__(self) -> int:
        """By the fields."""
        return hash((self.people, self.items))

    def cells(self, *, apart: bool) -> Index:
        """What each item is to a network: its group, or (``apart``) itself where ids are known too."""
        return np.arange(len(self.groups), dtype=np.int32) if apart else self.groups

    def profiles(self, cohort: Cohort) -> NDArray[np.float32]:
        """Each client's own design, made on its device; what it does not know is left at zero."""
        parts = [
            _scale(field) * _columns(field, cohort.extras.get(f"about/{field.name}"), len(cohort))
            for field in self.people
        ]
        empty = np.zeros((len(cohort), 0), dtype=np.float32)
        return np.concatenate([empty, *parts], axis=1, dtype=np.float32)


def encoded(
    items: Features,
    about_people: Features,
    catalogue: int,
    *,
    of_items: str = "all",
    of_people: str = "all",
    bins: int = 0,
    words: int = 0,
) -> Encoding:
    """Choose features by name (``all``, ``none`` or names joined by ``+``) and encode them.

    ``all`` leaves out what sums up people's logs (``Features.from_log``), which must be named: ``all+count``.

    ``bins`` adds each number of an item as a category of that many quantiles of the catalogue; ``words``
    adds that many of the commonest words of titles. Items' numbers are centred and scaled over the public
    catalogue; people's are theirs, so they are divided by a constant.
    """
    columns = _item_columns(items, catalogue, _chosen(of_items, items, "item"), bins, words)
    fields = tuple(field for field, _ in columns)
    whole = np.concatenate(
        [np.zeros((catalogue, 0), "f4"), *(part for _, part in columns)], axis=1, dtype=np.float32
    )
    designs, groups = np.unique(whole, axis=0, return_inverse=True)
    people = tuple(_people_fields(about_people, _chosen(of_people, about_people, "user")))
    return Encoding(people, fields, groups.reshape(-1).astype(np.int32), designs)


def _chosen(text: str, features: Features, whose: str) -> list[str]:
    known = [*features.categories, *features.flags, *features.numbers]
    wanted = [] if text in {"none", ""} else text.split("+")
    for name in wanted:
        if name not in {*known, "all"}:
            raise TacitError(f"no {whose} feature is called {name!r}", nearest(name, [*known, "all", "none"]))
    if "all" in wanted:
        return [name for name in known if name in wanted or name not in features.from_log]
    return wanted


def _rows_of(features: Features, name: str) -> int:
    labels = features.labels.get(name, ())
    codes = features.categories[name]
    return max(len(labels), int(codes.max(initial=-1)) + 1, 1)


def _item_columns(
    features: Features, catalogue: int, chosen: Sequence[str], bins: int, words: int
) -> list[tuple[Field, NDArray[np.float32]]]:
    found: list[tuple[Field, NDArray[np.float32]]] = []

    def add(field: Field, column: Array) -> None:
        found.append((field, _columns(field, column, catalogue)))

    for name in chosen:
        if name in features.categories:
            add(Field(name, "category", _rows_of(features, name)), features.categories[name])
        elif name in features.flags:
            flags = features.flags[name]
            add(Field(name, "flag", 2, flags.shape[1]), flags)
        else:
            number = features.numbers[name]
            add(Field(name, "number", 1), _standard(number))
            if bins:
                add(Field(f"{name}.bin", "category", bins), _binned(number, bins))
    titles = features.texts.get("title")
    if words and titles is not None:
        common = _common_words(titles, words)
        if common:
            add(Field("title", "word", len(common)), _bags(titles, common))
    return found


def _people_fields(features: Features, chosen: Iterable[str]) -> Iterable[Field]:
    for name in chosen:
        if name in features.categories:
            yield Field(name, "category", _rows_of(features, name))
        elif name in features.flags:
            yield Field(name, "flag", 2, len(features.labels.get(name, ())))
        elif name not in features.categories:
            yield Field(name, "number", 1)


def _scale(field: Field) -> np.float32:
    """People's numbers are theirs alone, so no mean or spread of them is known: a constant must do."""
    return np.float32(0.01 if field.kind == "number" else 1)


def _columns(field: Field, column: Array | None, count: int) -> NDArray[np.float32]:
    """A field's part of the design, one row per person or item."""
    design = np.zeros((count, field.width), dtype=np.float32)
    if column is None:
        return design
    values: Floats = column
    if field.kind == "category":
        there = np.flatnonzero((values >= 0) & (values < field.rows))
        design[there, values[there].astype(np.int64)] = 1
    elif field.kind == "flag":
        on = values.astype(np.int64)
        design[np.arange(count)[:, np.newaxis], 2 * np.arange(field.slots) + on] = 1
    elif field.kind == "word":
        design[:] = values
    else:
        design[:, 0] = np.nan_to_num(values)
    return design


def _standard(number: Floats) -> NDArray[np.float32]:
    """Centred and scaled over the catalogue; unknown becomes the mean."""
    known = number[np.isfinite(number)]
    if not len(known):
        return np.zeros(len(number), dtype=np.float32)
    spread = float(known.std()) or 1.0
    return np.nan_to_num((number - known.mean()) / spread).astype(np.float32)


def _binned(number: Floats, bins: int) -> Index:
    known = np.isfinite(number)
    edges = (
        np.unique(np.quantile(number[known], np.linspace(0, 1, bins + 1)[1:-1]))
        if known.any()
        else np.zeros(0)
    )
    codes = np.searchsorted(edges, np.where(known, number, 0), side="right")
    return np.where(known, codes, -1).astype(np.int32)


def _words_of(title: str) -> set[str]:
    return set(_WORD.findall(title.lower()))


def _common_words(titles: Iterable[str], words: int) -> Mapping[str, int]:
    counts = Counter(word for title in titles for word in _words_of(str(title)))
    kept = sorted((word for word in counts if counts[word] > 1), key=lambda word: (-counts[word], word))
    return {word: place for place, word in enumerate(kept[:words])}


def _bags(titles: Iterable[str], common: Mapping[str, int]) -> NDArray[np.float32]:
    rows = [[common[word] for word in _words_of(str(title)) if word in common] for title in titles]
    bags = np.zeros((len(rows), len(common)), dtype=np.float32)
    for row, places in zip(bags, rows, strict=True):
        row[places] = 1.0
    return bags
