"""DP-SUB's noise on gradients: each row clipped on its own, Laplace numbers on every entry."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import Laplace, NonPrivate
from tacit.errors import TacitError
from tacit.kernels.laplace import add_laplace
from tacit.protect.protection import Draws, Form, Protection
from tacit.rng import Keyed
from tacit.settings import Between, NonNegative, checked
from tacit.types import Array, Arrays, RoundFacts, Rows


@dataclass(frozen=True)
class RowLaplace(Protection):
    """Each row of an update at most ``clip`` long (0: as long as it is), then Laplace(``scale``) per entry.

    This is Eq. 10 of the DP-SUB paper, which takes a sensitivity of one for it. A person moves every row of
    what is sent, and a row of ``d`` entries and length ``clip`` is up to ``clip * sqrt(d)`` long in the norm
    that Laplace noise needs; two histories differ by twice that in each row, so a person's epsilon is
    ``2 * rows * sqrt(d) * clip / scale`` per upload.

    Formal guarantees:
        That epsilon, for one history in place of another, per upload, against everybody. That
        something was sent is seen. Without a clip, or where nothing says how many rows there are: none.

    ==============================  ================================================================
    edge case                       what happens
    ==============================  ================================================================
    rows with ids (a sparse upload) refused: which rows are there would be told without noise
    a row of zeros                  gets noise like any other
    ==============================  ================================================================
    """

    scale: float
    clip: float = 1.0

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.clip < 0:
            raise TacitError(
                f"row-laplace with scale={self.scale} and clip={self.clip}",
                "give a scale above 0, and a clip above 0 (or 0 to leave rows as they are)",
            )

    @property
    def noises(self) -> Literal["device"]:
        """Each device adds its own."""
        return "device"

    @property
    def reads(self) -> frozenset[Form]:
        """Plain numbers only."""
        return frozenset()

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Shorten long rows."""
        del bound, state, keys
        return {name: self._clipped(name, array) for name, array in update.items()}

    def _clipped(self, name: str, array: Any) -> Array:
        if isinstance(array, Rows) or not isinstance(array, np.ndarray):
            raise TacitError(
                f"{name!r} is sent with the ids of the rows a person touched, which noise cannot hide",
                "send every row (--set sends=received), or leave row-laplace out",
            )
        if self.clip == 0:
            return array
        lengths = np.sqrt(np.einsum("...d,...d->...", array, array))[..., np.newaxis]
        return array * np.minimum(1, self.clip / np.maximum(lengths, 1e-30)).astype(array.dtype)

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Noise on every entry."""
        del bound, state
        found = {name: np.array(array, order="C") for name, array in update.items()}
        for place in range(len(draws.users)):
            one = draws.users[place : place + 1]
            for name, array in found.items():
                words = draws.keys.words(one, f"{draws.purpose}/{name}", draws.round, array[place].size)
                add_laplace(array[place], words, self.scale)
        return found

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Laplace noise on everything a person sends, for the server and for everybody after it."""
        del state
        shapes = [shape for name, shape in facts.received.items() if name != "selected" and shape]
        if self.clip == 0 or not shapes:
            missing = "bounds" if self.clip == 0 else "counts"
            reason = NonPrivate(f"noise on gradients that nothing {missing}")
            return claim.with_event(Observer.SERVER, reason).with_event(Observer.RELEASE, reason)
        length = self.clip * sum(math.prod(shape[:-1]) * math.sqrt(shape[-1]) for shape in shapes)
        event = Laplace(self.scale, length, sum(math.prod(shape) for shape in shapes))
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE)
        own = ("each device adds its own noise", "that a report was sent is not hidden")
        return claim.with_event(Observer.SERVER, event, own).with_event(Observer.RELEASE, event, own[:1])


@checked
def row_laplace(
    *, scale: Annotated[float, Between(0, open_low=True)] = 2.5, clip: NonNegative = 1.0
) -> RowLaplace:
    """Clip each row of an update and add Laplace noise to every entry (as DP-SUB publishes it).

    Example:
        >>> row_laplace(scale=2.5)
        RowLaplace(scale=2.5, clip=1.0)
    """
    return RowLaplace(scale, clip)


PROTECTIONS = {"row-laplace": row_laplace}
