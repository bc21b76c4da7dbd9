"""Noise on the parts of a network as DP-SUB's Algorithm 3 prints it: each part clipped on its own."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import Gaussian, NonPrivate
from tacit.errors import TacitError
from tacit.protect.clip import norms, scaled, shrunk
from tacit.protect.protection import Draws, Form, Protection
from tacit.protect.sparsify import NonZero, TopK
from tacit.rng import Keyed
from tacit.types import Array, Arrays, RoundFacts, Rows


@dataclass(frozen=True)
class PublishedNoise(Protection):
    """Two parts, ``deep`` and the rest: the deep one made sparse, both clipped and noised (Eqs. 12 to 14).

    Noise of deviation ``sigma * clip`` goes on the numbers that are sent. ``share`` is what is left of the
    deep arrays, the largest entries; 1 leaves them whole, ``None`` says that the local work chose already and
    put zeros elsewhere.

    Formal guarantees:
        With ``share=1``: a Gaussian event for two releases, each of norm ``clip``. Below 1 none, for the
        places of the largest entries are told without noise. The paper calls either epsilon-private.
    """

    clip: float
    sigma: float
    deep: tuple[str, ...] = ()
    share: float | None = 1.0

    def __post_init__(self) -> None:
        if self.clip <= 0 or self.sigma <= 0 or (self.share is not None and not 0 < self.share <= 1):
            raise TacitError(
                f"noise with clip={self.clip}, sigma={self.sigma}, share={self.share}",
                "give clip and sigma above 0, and a share above 0 and at most 1",
            )

    @property
    def sparse(self) -> bool:
        """Whether places are told."""
        return bool(self.deep) and self.share != 1

    @property
    def parts(self) -> int:
        """How many releases a client makes."""
        return 2 if self.deep else 1

    @property
    def noises(self) -> Literal["device"]:
        """Each device adds its own."""
        return "device"

    @property
    def leaves(self) -> Form | None:
        """What is left of the deep arrays, where some of it is left out."""
        return Form.CHOSEN if self.sparse else None

    @property
    def reads(self) -> frozenset[Form]:
        """Plain numbers only."""
        return frozenset()

    def bound(self, incoming: Bound | None) -> Bound:
        """Both parts together."""
        del incoming
        return Bound(2, self.clip * math.sqrt(self.parts))

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Keep the largest deep entries, then clip part by part."""
        deep: Arrays = {name: update[name] for name in self.deep if name in update}
        rest = {name: array for name, array in update.items() if name not in deep}
        if deep and self.sparse:
            choice = NonZero() if self.share is None else TopK(self.share)
            deep = choice.on_client(deep, bound, state, keys)
        found: dict[str, Array | Rows] = {}
        for part in (rest, deep):
            if part:
                found |= scaled(part, shrunk(norms(part), self.clip))
        return found

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Noise on whatever is sent."""
        del bound, state
        found: dict[str, Array | Rows] = {}
        for name, array in update.items():
            if isinstance(array, Rows) and not array.cells:
                raise TacitError(
                    f"noise on the sparse rows of {name!r} leaves their ids in the clear",
                    "use a method that sends whole tables",
                )
            own = replace(draws, purpose=f"{draws.purpose}/{name}")
            if isinstance(array, Rows):
                values: Any = array.values
                drawn = own.normals(math.prod(array.whole))
                noise = np.concatenate([one[:sent] for one, sent in zip(drawn, array.lengths, strict=True)])
                found[name] = replace(array, values=values + self._scaled(noise[:, np.newaxis], values))
            else:
                noise = own.normals(math.prod(array.shape[1:])).reshape(array.shape)
                found[name] = array + self._scaled(noise, array)
        return found

    def _scaled(self, noise: Any, values: Any) -> Any:
        return (self.sigma * self.clip * noise).astype(values.dtype)

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """What the numbers promise; nothing where places are told."""
        del state, facts
        if self.sparse:
            told = NonPrivate("the places of the largest entries are sent without noise")
            return claim.with_event(Observer.SERVER, told).with_event(Observer.RELEASE, told)
        size = self.clip * math.sqrt(self.parts)
        event = Gaussian(self.sigma * self.clip, size)
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE).with_bound(Bound(2, size))
        return claim.with_event(Observer.SERVER, event).with_event(Observer.RELEASE, event)
