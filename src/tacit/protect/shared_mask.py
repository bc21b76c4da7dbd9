"""A share of the entries of some arrays travels, the same for everybody, drawn without looking at anything.

Which entries are sent tells nothing, so it needs no noise and no ids: server and devices know the draw from
the round's number. What is left out should be remembered by the device (``local.residual``).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.protect.protection import Draws, Protection
from tacit.rng import Keys
from tacit.schedule import Warming
from tacit.types import Array, Arrays, RoundFacts, Rows, Steps

MASKED = ".masked"


def kept(name: str, round: int, size: int, share: float) -> Array:
    """The places of an array that travel in a round: public, in rising order.

    Example:
        >>> len(kept("layer3.weight", 0, 100, 0.25))
        25
    """
    seed = [round + 1, *name.encode()]
    draw = np.random.default_rng(seed).permutation(size)
    return np.sort(draw[: math.ceil(share * size)])


@dataclass(frozen=True)
class SharedMask(Protection):
    """Of the arrays in ``shapes``, only the entries that :func:`kept` draws for the round.

    The server puts them back into arrays of these shapes, zeros elsewhere.

    Formal guarantees:
        None of its own, and it spoils none: the places do not depend on anybody's data.
    """

    additive: ClassVar[bool] = True
    share: Warming
    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    def steps(self, incoming: Steps | None) -> Steps | None:
        """Whole numbers stay whole."""
        return incoming

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Leave out what does not travel in this round."""
        del bound, state
        found = dict(update)
        for name, shape in self.shapes:
            if name in found:
                array = found.pop(name)
                if isinstance(array, Rows):
                    raise TacitError(f"{name!r} is sparse already", "mask arrays that are sent whole")
                size = math.prod(shape)
                places = kept(name, draws.round, size, self.share.at(draws.round))
                found[name + MASKED] = array.reshape(len(array), size)[:, places]
        return found

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """Put what came back where it belongs."""
        del bound, keys
        found: dict[str, Any] = dict(total)
        for name, shape in self.shapes:
            summed = found.pop(name + MASKED, None)
            if summed is not None:
                whole = np.zeros(math.prod(shape), dtype=summed.dtype)
                whole[kept(name, facts.round, len(whole), self.share.at(facts.round))] = summed
                found[name] = whole.reshape(shape)
        return found, state

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Nothing gained, nothing lost."""
        del state, facts
        return claim
