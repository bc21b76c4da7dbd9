"""Normal noise: on the sum, added by the server, or on each update, added by its own device.

The two differ in whom they protect against. Noise added by the server protects people from whoever is given
the model, and does nothing against the server, which saw each update before. Noise added on devices protects
against the server as well, at the price of much more of it in the sum.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tacit.account.claim import Adjacency, Bound, Claim, Observer, Summed
from tacit.account.events import Gaussian
from tacit.account.gaussian import check_noise
from tacit.errors import TacitError
from tacit.protect.protection import Draws, Form, Protection
from tacit.rng import Keys
from tacit.settings import Positive, checked
from tacit.types import Array, Arrays, RoundFacts, Rows

_SERVER = np.array([-1], dtype=np.int32)
EVERYBODYS = "everybody who answered added their own noise"


@dataclass(frozen=True)
class GaussianNoise(Protection):
    """Independent normal noise on every number; its deviation is ``noise`` times one person's bound.

    ``where="server"``: added once, to the sum. ``where="device"``: added by each device to its own update.
    On a device the noise comes from the operating system's cryptographic generator; in a simulation it is
    keyed, so that runs repeat.

    Formal guarantees:
        A Gaussian event for whoever gets the model (server), or for the server too (device; then
        neighbours differ in what one person holds, not in whether they take part: that is seen). With noise
        on devices the server sees one upload's noise; whoever gets the model sees at most the sum, with the
        noise of everybody who answered, unless a later stage changes uploads one by one.

    ===========================  ====================================================
    edge case                    what happens
    ===========================  ====================================================
    no bound before it           refused when the chain is built
    bound of another norm        refused: normal noise is calibrated to the Euclidean norm
    counts beside the sums       refused: they would be published without noise
    sparse rows on a device      refused: the ids tell what was touched
    after a grid, svd, int8      refused when the chain is built: its unit is not theirs; before a grid, or
                                 skellam, which is noise on whole numbers
    after topk, on a device      refused when the chain is built: the places tell
    floating point               doubles; an ideal Gaussian has no gaps, see ``rng.normals_of``
    ===========================  ====================================================

    Example:
        >>> from tacit.protect.clip import Clip
        >>> from tacit.protect.protection import chain
        >>> chain(Clip(0.5), GaussianNoise(1.2)).bounds()[-1]
        Bound(order=2, size=0.5)
        >>> chain(GaussianNoise(1.2))
        Traceback (most recent call last):
        tacit.errors.TacitError: noise without a bound protects nobody; put clip(...) before it
    """

    noise: float
    where: Literal["server", "device"] = "server"

    def __post_init__(self) -> None:
        check_noise(self.noise)

    @property
    def noises(self) -> Literal["device", "server"]:
        """Where it acts."""
        return self.where

    @property
    def reads(self) -> frozenset[Form]:
        """Plain numbers; chosen entries only where their places are not what is to be hidden."""
        return frozenset({Form.CHOSEN}) if self.where == "server" else frozenset()

    def bound(self, incoming: Bound | None) -> Bound:
        """What was bounded before; without it the noise would hide nothing."""
        if incoming is None:
            raise TacitError("noise without a bound protects nobody", "put clip(...) before it")
        if incoming.order != 2:
            raise TacitError(
                f"normal noise behind a bound of norm order {incoming.order}", "put clip(...) before it"
            )
        return incoming

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Each device's own noise."""
        del state
        if self.where == "server" or not update:
            return update
        return self._with_noise(update, bound, draws)

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """The server's noise, on the sum."""
        counts = [name for name in total if name.endswith(".count")]
        if counts:
            raise TacitError(
                f"{counts[0]!r} would be published without noise",
                "choose a method that divides by the expected cohort (its aggregation is a mean)",
            )
        if self.where == "device":
            return total, state
        draws = Draws(keys, _SERVER, f"{facts.exchange}/server noise", facts.round)
        stacked = {name: array[np.newaxis] for name, array in total.items()}  # type: ignore[index]
        return {name: array[0] for name, array in self._with_noise(stacked, bound, draws).items()}, state

    def _with_noise(self, arrays: Arrays, bound: Bound | None, draws: Draws) -> dict[str, Array]:
        assert bound is not None
        dense = {name: self._dense(name, array) for name, array in arrays.items()}
        widths = [math.prod(array.shape[1:]) for array in dense.values()]
        drawn = self.noise * bound.size * draws.normals(sum(widths))
        parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
        return {
            name: (array + part.reshape(array.shape)).astype(array.dtype)
            for (name, array), part in zip(dense.items(), parts, strict=True)
        }

    @staticmethod
    def _dense(name: str, array: Array | Rows) -> Any:
        if isinstance(array, Rows):
            raise TacitError(
                f"noise on the sparse rows of {name!r} leaves their ids in the clear",
                "use a method that sends whole tables",
            )
        if not np.issubdtype(array.dtype, np.floating):
            raise TacitError(
                f"normal noise on the whole numbers of {name!r}", "put gaussian before grid, or use skellam"
            )
        return array

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Whoever is given the model; with noise on devices the server too, from each upload alone."""
        del state
        bound = self.bound(claim.bound)
        shown = Gaussian(self.noise * bound.size, bound.size)
        if self.where == "server":
            alone = "the server adds the noise, and shows nobody a sum without it"
            return claim.with_event(Observer.RELEASE, shown, (alone,))
        own = ("each device adds its own noise", "that a report was sent is not hidden")
        together = Gaussian(math.sqrt(max(1, facts.answered)) * shown.noise_std, bound.size)
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE, summed=Summed(together, (EVERYBODYS,)))
        return claim.with_event(Observer.SERVER, shown, own).with_event(Observer.RELEASE, shown, own[:1])


@checked
def gaussian(*, noise: Positive = 1.0, where: Literal["server", "device"] = "server") -> GaussianNoise:
    """Normal noise of ``noise`` clip norms: on the sum by the server, or on each update by its device.

    Example:
        >>> gaussian(noise=1.2)
        GaussianNoise(noise=1.2, where='server')
    """
    return GaussianNoise(noise, where)


PROTECTIONS = {"gaussian": gaussian}
