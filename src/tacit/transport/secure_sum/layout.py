"""How named arrays become one vector and come back: tables written out, counts of people beside them."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.rows import add_rows_grid, add_values_grid
from tacit.transport.secure_sum.masks import RINGS, Ring
from tacit.types import Array, Arrays, Long, RankOne, RoundFacts, Rows, Steps


@dataclass(frozen=True)
class Part:
    """One named array of a vector; a table's rows are followed by how many people stand behind each."""

    name: str
    shape: tuple[int, ...]
    rows: bool

    @property
    def length(self) -> int:
        """How many ring elements it takes."""
        return math.prod(self.shape) + (self.shape[0] if self.rows else 0)


@dataclass(frozen=True)
class Layout:
    """The named arrays of an update, in the order of their names.

    Example:
        >>> update = {"w": np.array([[1, -2]]), "bit": np.array([[1]])}
        >>> layout = Layout.of(update, RoundFacts(0, "train", 9, 9, 9))
        >>> vector = layout.vector(update, 0, 32)
        >>> vector.tolist(), layout.arrays(vector)["w"].tolist()
        ([1, 1, 4294967294], [[1, -2]])
    """

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, arrays: Arrays, facts: RoundFacts) -> "Layout":
        """The layout of these clients' updates; tables are as tall as those the server sent out."""
        parts = []
        for name in sorted(arrays):
            array = arrays[name]
            if not isinstance(array, Rows):
                parts.append(Part(name, array.shape[1:], rows=False))
                continue
            if name not in facts.received:
                raise TacitError(
                    f"a secure sum cannot tell how tall the table {name!r} is",
                    "send the table to its clients",
                )
            values = array.values.factors if isinstance(array.values, RankOne) else array.values
            parts.append(Part(name, (facts.received[name][0], values.shape[1]), rows=True))
        return cls(tuple(parts))

    @property
    def length(self) -> int:
        """How many ring elements one client sends."""
        return sum(part.length for part in self.parts)

    @property
    def table_rows(self) -> int:
        """How many rows of tables one client sends: all of them, whatever it touched."""
        return sum(part.shape[0] for part in self.parts if len(part.shape) == 2)

    def vector(self, arrays: Arrays, client: int, ring: int) -> Ring:
        """One client's vector: whole numbers modulo ``2**ring``."""
        pieces: list[Array] = []
        for part in self.parts:
            array = arrays[part.name]
            if isinstance(array, Rows):
                pieces.extend(_written_out(array, client, part.shape))
            else:
                pieces.append(array[client].reshape(-1))
        whole = np.concatenate(pieces).astype(np.int64)
        return whole.view(np.uint64).astype(RINGS[ring])

    def arrays(self, total: Ring) -> dict[str, Array | Rows]:
        """A sum as one update: signed whole numbers, and counts of people on a table's rows."""
        signed = total.view(np.dtype(f"<i{total.itemsize}")).astype(np.int64)
        found: dict[str, Array | Rows] = {}
        at = 0
        for part in self.parts:
            size = math.prod(part.shape)
            values = signed[at : at + size].reshape(part.shape)
            if part.rows:
                height = part.shape[0]
                counts = signed[at + size : at + size + height].astype(np.int32)
                one = np.zeros(1, dtype=np.int64)
                found[part.name] = Rows(one, one + height, np.arange(height, dtype=np.int32), values, counts)
            else:
                found[part.name] = values[np.newaxis]
            at += part.length
        return found


def _written_out(rows: Rows, client: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """One client's rows as a whole table, and one for each row that is there."""
    table, counts = np.zeros(shape, dtype=np.int64), np.zeros(shape[0], dtype=np.int64)
    mine = slice(int(rows.starts[client]), int(rows.starts[client] + rows.lengths[client]))
    known, zero = rows.values, np.zeros(1, dtype=np.int64)
    behind = None if rows.counts is None else rows.counts[mine]
    if isinstance(known, RankOne):
        factors = known.factors[client : client + 1]
        one = RankOne(known.coef[mine], factors, known.table, known.reg, known.grid)
        only = Rows(zero, zero + len(one.coef), rows.ids[mine], one)
        add_rows_grid(table, counts, only, bits=known.grid)
    else:
        values: Long = known[mine]
        add_values_grid(table, counts, Rows(zero, zero + len(values), rows.ids[mine], values, behind))
    return table.reshape(-1), counts


def refuse_points(arrays: Arrays) -> None:
    """Numbers with a point cannot be added in a ring.

    Example:
        >>> refuse_points({"w": np.ones((1, 2))})
        Traceback (most recent call last):
        tacit.errors.TacitError: 'w' has a point, a secure sum adds whole numbers; put grid or skellam last
    """
    for name, array in arrays.items():
        values = array.values if isinstance(array, Rows) else array
        whole = values.grid > 0 if isinstance(values, RankOne) else np.issubdtype(values.dtype, np.integer)
        if not whole:
            raise TacitError(
                f"{name!r} has a point, a secure sum adds whole numbers", "put grid or skellam last"
            )


def ring_for(steps: Steps, clients: int, length: int) -> int:
    """The smallest ring in which no sum of so many clients wraps around; refused where there is none.

    Example:
        >>> ring_for(Steps(size=2.0**-14, largest=2.0**19), clients=1000, length=77_826)
        32
        >>> ring_for(Steps(size=2.0**-32, largest=2.0**52), clients=6040, length=77_826)
        Traceback (most recent call last):
        tacit.errors.TacitError: a sum of 6040 clients could overflow 64 bits; use grid:32:1024 or less
    """
    reach = max(steps.reach(clients, length), float(clients))
    for ring in RINGS:
        if reach < 2.0 ** (ring - 1):
            return ring
    raise TacitError(
        f"a sum of {clients} clients could overflow 64 bits",
        "use grid:32:1024 or less",
    )
