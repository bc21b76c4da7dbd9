"""One person's own history, with the publisher's raw ids; positions exist only inside a run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError


@dataclass(frozen=True)
class History:
    """What one person did: raw item ids, values, and when (unix seconds; 0 where nobody knows).

    Example:
        >>> history = History.of([("x", 4.0, None), ("y", 5.0, 1700000000)])
        >>> history.items, len(history)
        (('x', 'y'), 2)
    """

    items: tuple[str, ...]
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.items), len(self.values)} | (
            {len(self.times)} if self.times is not None else set()
        )
        if len(lengths) != 1:
            raise TacitError("a history whose columns differ in length", "give one value per item")
        if not np.isfinite(self.values).all():
            raise TacitError("a history holds a value that is not a finite number", "correct or remove it")

    def __len__(self) -> int:
        """How many entries."""
        return len(self.items)

    @classmethod
    def empty(cls) -> "History":
        """Nothing yet."""
        return cls((), np.zeros(0, dtype=np.float32))

    @classmethod
    def of(cls, rows: list[tuple[str, float, int | None]]) -> "History":
        """A history from rows of item, value, time."""
        timed = any(when is not None for _, _, when in rows)
        times = np.array([when or 0 for _, _, when in rows], dtype=np.int64) if timed else None
        values = np.array([value for _, value, _ in rows], dtype=np.float32)
        return cls(tuple(str(item) for item, _, _ in rows), values, times)

    def rows(self) -> list[tuple[str, float, int | None]]:
        """The entries one by one; a time nobody knows is None."""
        times = [None] * len(self) if self.times is None else [int(when) or None for when in self.times]
        return list(zip(self.items, self.values.tolist(), times, strict=True))

    def merged(self, newer: "History") -> tuple["History", int]:
        """Both together, and how many entries are new or changed; of two about one item the later wins.

        Later is by time; where a time is missing or equal, the one given now wins. Merging the same
        rows again changes nothing.

        Example:
            >>> old = History.of([("x", 4.0, 10), ("y", 1.0, 10)])
            >>> both, changed = old.merged(History.of([("x", 2.0, 5), ("y", 3.0, 20), ("z", 5.0, 1)]))
            >>> both.rows(), changed
            ([('x', 4.0, 10), ('y', 3.0, 20), ('z', 5.0, 1)], 2)
        """
        known = {item: (item, value, when) for item, value, when in self.rows()}
        changed = 0
        for row in newer.rows():
            before = known.get(row[0])
            if before == row or (before is not None and _older(row[2], before[2])):
                continue
            known[row[0]] = row
            changed += 1
        return History.of(list(known.values())), changed

    def without(self, item: str) -> "History":
        """The same history less one item."""
        return History.of([row for row in self.rows() if row[0] != item])


def _older(this: int | None, that: int | None) -> bool:
    return this is not None and that is not None and this < that
