"""What happens to an update before it leaves a device, and what that is worth: both in one class."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.account.claim import Bound, Claim, Observer
from tacit.errors import TacitError
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


class Form(Enum):
    """What a stage may leave in place of an array of numbers: a later stage has to be able to read it."""

    CHOSEN = "entries at places chosen by their size"
    STEPS = "steps of a grid, which are whole numbers already"
    FACTORS = "thin factors of a table"
    BYTES = "bytes in steps of their own, which are whole numbers already"
    REPORTS = "reports, which are whole numbers already"


ANY = frozenset(Form)
_UNBOUNDED = frozenset({Form.FACTORS, Form.BYTES, Form.REPORTS})


class Protection(ABC):
    """Every place a protection acts, and its bookkeeping.

    The hooks it does not need stay as they are here: they change nothing. ``event`` is abstract: nobody
    may forget what the protection does to the claim.
    """

    dense: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    """Whether the sum of what this stage sends is a function of the sum of what it got (a mask all share).

    Only behind such stages does noise that others added before still cover a person's share of the sum.
    """

    @property
    def leaves(self) -> Form | None:
        """What is left where arrays of numbers were; ``None`` where numbers stay numbers."""
        return None

    @property
    def reads(self) -> frozenset[Form]:
        """What it can work on besides arrays of numbers; a chain with anything else before it is refused."""
        return ANY

    @property
    def noises(self) -> Literal["", "device", "server"]:
        """Where it adds noise to numbers that its bound is a bound of, if it does."""
        return ""

    @property
    def beside(self) -> tuple[str, ...]:
        """Numbers it sends beside the update and takes off the total again."""
        return ()

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

    ================================  ==================================================================
    edge case                         what happens
    ================================  ==================================================================
    numbers a stage cannot read       refused when the chain is built (noise behind a grid or factors)
    longer again after server noise   refused: the noise was calibrated to what came before it
    a bit taken off before the noise  refused: adaptive clipping behind noise at the server
    ================================  ==================================================================

    Example:
        >>> len(none().stages)
        0
    """

    stages: tuple[Protection, ...]

    def __post_init__(self) -> None:
        """Walk the stages once, so that a chain that cannot work is refused when it is built."""
        self.steps()
        seen: set[Form] = set()
        for stage in self.stages:
            if unread := seen - stage.reads:
                found = min(form.value for form in unread)
                raise TacitError(
                    f"{_called(stage)} cannot work on {found}", "put it before the stage that leaves them"
                )
            seen |= set() if stage.leaves is None else {stage.leaves}
        self._refuse_longer()

    def _refuse_longer(self) -> None:
        """The server adds its noise to the sum of what leaves the last stage: that must be no longer."""
        noised: Bound | None = None
        beside: set[str] = set()
        for stage, after in zip(self.stages, self.bounds()[1:], strict=True):
            if noised is not None and (after is None or after.order > 2 or after.size > noised.size):
                raise TacitError(
                    f"{_called(stage)} may lengthen an update after noise at the server was calibrated to it",
                    "use half or topk in its place, let devices add the noise, or leave it out",
                )
            if stage.beside and (noised is not None or beside & {*stage.beside}):
                raise TacitError(
                    f"{_called(stage)} takes its number off the total before the noise is added, or twice",
                    "put it before the noise, once",
                )
            beside |= {*stage.beside}
            if stage.noises == "server":
                noised = after

    def bounds(self) -> tuple[Bound | None, ...]:
        """The bound each stage receives, and the last one's result."""
        found: list[Bound | None] = [None]
        for stage in self.stages:
            found.append(None if stage.leaves in _UNBOUNDED else stage.bound(found[-1]))
        return tuple(found)

    def steps(self) -> Steps | None:
        """What the whole numbers that leave a device stand for; ``None`` where they have a point."""
        found: Steps | None = None
        for stage in self.stages:
            found = stage.steps(found)
        return found

    @property
    def beside(self) -> tuple[str, ...]:
        """What travels beside an update."""
        return tuple(name for stage in self.stages for name in stage.beside)

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
        """The claim after the whole chain; whoever gets the model sees the sum at most."""
        for stage, state in zip(self.stages, states, strict=True):
            if not stage.additive:
                claim = replace(claim, summed=None)
            claim = stage.event(claim, state, facts)
        if claim.summed is None:
            return claim
        return claim.with_event(Observer.RELEASE, claim.summed.event, claim.summed.assumes)


def _called(stage: Protection) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in type(stage).__name__)[1:]


def chain(*stages: Protection) -> Chain:
    """Protections one after the other."""
    return Chain(stages)


def none() -> Chain:
    """No protection, written out so that nobody has it by accident."""
    return Chain(())
