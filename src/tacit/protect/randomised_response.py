"""Randomised response about every item: met or not, told with a coin that lies now and then."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.account.claim import Adjacency, Claim, Observer, Unit
from tacit.account.local import lies_below, randomised_bits
from tacit.errors import TacitError
from tacit.kernels.responses import respond, truth
from tacit.protect.protection import Protection
from tacit.rng import Keyed, Keys
from tacit.types import Cohort, Index, RoundFacts

_PURPOSE = "randomised response"
_CACHED = 1 << 16  # words worked on at a time: they stay in the cache


@dataclass(frozen=True)
class RandomisedResponse(Protection):
    """One bit per item, kept with odds ``e^epsilon`` (Warner 1965; DP-SUB, Eq. 7).

    ``redraw="never"`` derives a person's coins from a secret that does not change: the same history is
    answered in the same way however often it is asked for, and costs one answer. ``"round"``: fresh ones.
    A coin is a 64-bit word, on a device from a cryptographic generator.
    The local work finds the answer in the cohort's ``bits``.

    Formal guarantees:
        Each answer is ``epsilon``-private for one item being there or not, ``2 epsilon`` for one item being
        another one, and ``items * epsilon`` for a whole history. A kept answer costs this once; a history
        that grows is another history, and its changed bits are fresh evidence about these items only.

    ===========================  =====================================================================
    edge case                    what happens
    ===========================  =====================================================================
    a person with no items       takes no part (that nothing was sent is not hidden)
    fresh coins in each round    the events add up: ten answers at epsilon 2 reveal nearly every item
    epsilon above 44             one word in 2^64 lies: more than claimed, never none
    ===========================  =====================================================================
    """

    epsilon: float
    items: int
    redraw: Literal["never", "round"] = "never"

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.items < 1:
            raise TacitError(
                f"randomised response with epsilon={self.epsilon} about {self.items} items",
                "give epsilon above 0 and the size of the catalogue",
            )

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Answer about every item."""
        bits = truth(cohort.offsets, cohort.items, cohort.catalogue)
        some = max(1, _CACHED // cohort.catalogue)
        for first in range(0, len(cohort), some):
            part = slice(first, first + some)
            words = self._words(cohort.users[part], keys, round, cohort.catalogue)
            respond(bits[part], words, lies_below(self.epsilon))
        return replace(cohort, extras={**cohort.extras, "bits": bits})

    def _words(self, users: Index, keys: Keys, round: int, width: int) -> Keyed:
        if self.redraw == "never":
            return keys.kept_words(users, _PURPOSE, width)
        return keys.words(users, _PURPOSE, round, width)

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """So many randomised bits, seen by the server; whoever gets the model sees what it makes of them.

        Neighbours hold different histories: that a person answered at all is seen.
        """
        del state, facts
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE)
        answer = randomised_bits(self.epsilon, self.items, Unit.USER, claim.adjacency)
        return claim.with_event(Observer.SERVER, answer).with_event(Observer.RELEASE, answer)
