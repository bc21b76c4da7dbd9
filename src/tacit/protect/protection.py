"""What happens to an update before it leaves a device, and what that is worth: both in one class."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.account.claim import Bound, Claim
from tacit.rng import Keyed, Keys, normals_of
from tacit.types import Arrays, Cohort, Index, RoundFacts, Steps


@dataclass(frozen=True)
class Draws:
    """Where noise for some users comes from: repeatable in a simulation, unguessable on a device.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> Draws(SeededKeys(1), np.arange(2, dtype="i4"), "noise", 0).normals(3).shape
        (2, 3)
    """

    keys: Keys
    users: Index
    purpose: str
    round: int
    catalogue: int = 0

    def words(self, width: int) -> Keyed:
        """``width`` random 64-bit words per user."""
        return self.keys.words(self.users, self.purpose, self.round, width)

    def normals(self, width: int) -> NDArray[np.float64]:
        """``width`` standard normal numbers per user."""
        return normals_of(self.words(width + width % 2))[:, :width]


class Protection(ABC):
    """Every place a protection acts, and its bookkeeping.

    The hooks it does not need stay as they are here: they change nothing. ``event`` is abstract: nobody
    may forget what the protection does to the claim.
    """

    dense: ClassVar[bool] = False

    def init(self) -> Any:
        """Public state (a clipping bound that adapts); it may be broadcast."""
        return None

    def bound(self, incoming: Bound | None) -> Bound | None:
        """How much one unit can contribute after this stage; refuses what cannot be bounded."""
        return incoming

    def steps(self, incoming: Steps | None) -> Steps | None:
        """What the numbers stand for after this stage, if they are whole ones."""
        return incoming

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Before local work (fillers, randomised response)."""
        del keys, round
        return cohort

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """After local work, before anything leaves; ``keys`` holds one per client."""
        del bound, state, keys
        return update

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Right after ``on_client``: noise that must come from where nobody can guess it."""
        del bound, state, draws
        return update

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """On the total, after the transport; the stage that acted last on devices acts first here."""
        del bound, facts, keys
        return total, state

    @abstractmethod
    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """The claim after this stage, told after the exchange with who really answered."""


@dataclass(frozen=True)
class Chain:
    """Protections in the order they act.

    Example:
        >>> len(none().stages)
        0
    """

    stages: tuple[Protection, ...]

    def __post_init__(self) -> None:
        """Walk the bounds once, so that a chain that cannot work is refused when it is built."""
        self.bounds()

    def bounds(self) -> tuple[Bound | None, ...]:
        """The bound each stage receives, and the last one's result."""
        found: list[Bound | None] = [None]
        for stage in self.stages:
            found.append(stage.bound(found[-1]))
        return tuple(found)

    def steps(self) -> Steps | None:
        """What the whole numbers that leave a device stand for; ``None`` where they have a point."""
        found: Steps | None = None
        for stage in self.stages:
            found = stage.steps(found)
        return found

    @property
    def dense(self) -> bool:
        """Whether a stage turns sparse rows into whole tables: then few clients fit in the memory at once."""
        return any(stage.dense for stage in self.stages)

    def init(self) -> tuple[Any, ...]:
        """Each stage's first public state."""
        return tuple(stage.init() for stage in self.stages)

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Every stage's part before local work."""
        for stage in self.stages:
            cohort = stage.on_cohort(cohort, keys, round)
        return cohort

    def on_client(
        self, update: Arrays, states: tuple[Any, ...], cohort: Cohort, keys: Keys, purpose: str, round: int
    ) -> Arrays:
        """Every stage's part after local work."""
        for place, (stage, state, bound) in enumerate(zip(self.stages, states, self.bounds(), strict=False)):
            update = stage.on_client(
                update, bound, state, keys.users(cohort.users, f"{purpose}/{place}", round)
            )
            update = stage.noised(
                update,
                bound,
                state,
                Draws(keys, cohort.users, f"{purpose}/{place}/noise", round, cohort.catalogue),
            )
        return update

    def on_server(
        self, total: Arrays, states: tuple[Any, ...], facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, tuple[Any, ...]]:
        """Every stage's part on the total, last stage first: what was done last is undone first."""
        after = []
        for stage, state, bound in reversed(list(zip(self.stages, states, self.bounds(), strict=False))):
            total, changed = stage.on_server(total, bound, state, facts, keys)
            after.append(changed)
        return total, tuple(reversed(after))

    def event(self, claim: Claim, states: tuple[Any, ...], facts: RoundFacts) -> Claim:
        """The claim after the whole chain."""
        for stage, state in zip(self.stages, states, strict=True):
            claim = stage.event(claim, state, facts)
        return claim


def chain(*stages: Protection) -> Chain:
    """Protections one after the other."""
    return Chain(stages)


def none() -> Chain:
    """No protection, written out so that nobody has it by accident."""
    return Chain(())
