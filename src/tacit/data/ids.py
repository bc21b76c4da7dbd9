"""Raw ids on the outside, positions on the inside."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError, nearest


@dataclass(frozen=True)
class Ids:
    """Raw ids (integers or text) in the order of their positions.

    Example:
        >>> ids = Ids(np.array([10, 7, 42]))
        >>> ids.position("7"), ids.raw(2), len(ids)
        (1, 42, 3)
    """

    values: NDArray[np.int64] | NDArray[np.str_]
    kind: str = "id"

    def __len__(self) -> int:
        """How many ids there are."""
        return len(self.values)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {str(raw): position for position, raw in enumerate(self.values.tolist())}

    def raw(self, position: int) -> int | str:
        """The raw id at a position."""
        return self.values[position].item()

    def position(self, raw: int | str) -> int:
        """The position of a raw id; one clear error where there is none."""
        found = self._positions.get(str(raw))
        if found is None:
            close = nearest(str(raw), self._positions) if len(self._positions) <= 20_000 else "check the id"
            if close.startswith("known:"):
                close = f"ids look like {', '.join(map(str, self.values[:3].tolist()))}"
            raise TacitError(f"no {self.kind} {raw!r} in the data", close)
        return found
