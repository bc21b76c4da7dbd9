"""The shape of what a client computes: what it received and holds, what it hands back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.rng import Keys
from tacit.types import Array, Arrays, Cohort, Index, Long, Rows, Segment


@dataclass(frozen=True)
class Broadcast:
    """What the server sent to everybody: the round's number and some shared arrays."""

    round: int
    arrays: Mapping[str, Array]


@dataclass(frozen=True)
class Letters:
    """What clients send to other clients: each client's recipient and its rows."""

    to: Index
    rows: Rows


@dataclass(frozen=True)
class Inbox:
    """The letters that arrived: client ``c`` reads ``members[offsets[c] : offsets[c + 1]]`` of ``rows``.

    Letters carry no sender; the order within a client's inbox says nothing.
    """

    offsets: Long
    members: Long
    rows: Rows


@dataclass(frozen=True)
class Work:
    """The result of local work: the update to send, the private state to keep, letters to peers."""

    update: Arrays
    private: Mapping[str, Array]
    letters: Letters | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RowForm:
    """Rows of an update that are ``gain (u.v_i - r_i) u + reg v_i``: public, and what audits solve.

    ``masked`` says that ``r_i`` is a rating less what a model on the device predicts.
    """

    reg: float
    gain: float = 1.0
    masked: bool = False


class LocalWork(ABC):
    """What clients compute in one exchange: the same code for a cohort of thousands and of one.

    ``dense`` says that a client's update is as large as what it received: then few fit in memory at once.
    """

    @property
    def dense(self) -> bool:
        """Sparse unless said otherwise."""
        return False

    def on(self, device: str) -> "LocalWork":
        """The same work computed on that device; work that knows only the CPU stays there."""
        del device
        return self

    @property
    def writes_letters(self) -> bool:
        """Whether clients write to other clients."""
        return False

    @property
    def row_form(self) -> RowForm | None:
        """How rows of the item table are made, where they are the gradient of one squared error."""
        return None

    def prepared(self, received: Broadcast) -> Broadcast:
        """The broadcast in the form the kernels like; called once, however many clients share it."""
        return received

    def negatives(self, received: Broadcast, cohort: Cohort, keys: Keys) -> Segment | None:
        """The items drawn as unrated in a round, for the null-model audit; fillers by default."""
        del received, keys
        return cohort.fillers

    def drawable(self, received: Broadcast, catalogue: int) -> NDArray[np.bool_]:
        """The items among which ``negatives`` are drawn; all by default."""
        del received
        return np.ones(catalogue, dtype=np.bool_)

    @abstractmethod
    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Compute."""
