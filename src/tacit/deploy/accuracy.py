"""How good the lists of a running federation are, from one randomised bit of each person, now and then.

Each device leaves one entry of its history out of everything it trains on (drawn with its secret). Asked,
it looks whether that entry is among the first ten of the list worked out from the others, and answers with a
coin that tells the truth with odds ``e^epsilon`` (Warner 1965). The server counts; its estimate is unbiased.

What leaves a device: one bit per asking. It is ``epsilon``-private towards the server for all a person did.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tacit.account.claim import Adjacency, Claim, Observer
from tacit.account.events import Nothing, PureLocal
from tacit.account.local import keep_probability
from tacit.aggregate.aggregator import Aggregator
from tacit.config.top import best_places
from tacit.errors import TacitError
from tacit.federation.federation import Casting
from tacit.federation.sampling import Everyone
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.model import Model
from tacit.protect.protection import Protection, chain
from tacit.rng import Keyed, Keys, stream
from tacit.round import Exchange, Method
from tacit.server.step import ServerStep
from tacit.transport.direct import direct
from tacit.types import Array, Arrays, Cohort, Delivers, Index, RoundFacts

NAME = "accuracy"
HELD = "held out"  # among a cohort's extras: the entry left out, -1 if none
SHOWN = 10


@dataclass(frozen=True)
class Accuracy:
    """Ask everybody every so many rounds for one bit that is ``epsilon``-private.

    Example:
        >>> Accuracy.parsed("0.5:20"), Accuracy.parsed("2").due(10), Accuracy.parsed("2").due(0)
        (Accuracy(epsilon=0.5, every=20), True, False)
    """

    epsilon: float
    every: int = 10

    def __post_init__(self) -> None:
        if not (0 < self.epsilon <= 20 and self.every >= 1):
            raise TacitError(
                f"accuracy at epsilon {self.epsilon:g} every {self.every} rounds",
                "give an epsilon above 0 and up to 20, and 1 round or more, such as 1:10",
            )

    @classmethod
    def parsed(cls, text: str) -> "Accuracy":
        """From ``EPSILON`` or ``EPSILON:ROUNDS``."""
        epsilon, found, every = text.partition(":")
        try:
            return cls(float(epsilon), int(every)) if found else cls(float(epsilon))
        except ValueError as error:
            raise TacitError(f"{text!r} is not EPSILON or EPSILON:ROUNDS", "write it like 1:10") from error

    def due(self, round: int) -> bool:
        """Whether people are asked in this round, about the model it begins with."""
        return round > 0 and round % self.every == 0

    def told(self, answers: Array) -> list[dict[str, Any]]:
        """The estimates so far: the share of people whose entry is on their list, and its standard error.

        Example:
            >>> Accuracy(20.0).told(np.array([[10, 3, 12]]))[0]["hr@10"]
            0.25
        """
        lie = 1 - keep_probability(self.epsilon)
        found = []
        for round, hits, people in answers.tolist():
            seen = hits / people
            noise = math.sqrt(max(seen * (1 - seen), lie * (1 - lie)) / people)
            found.append(
                {
                    "round": round,
                    f"hr@{SHOWN}": round_to((seen - lie) / (1 - 2 * lie)),
                    "se": round_to(noise / (1 - 2 * lie)),
                    "people": people,
                    "epsilon": self.epsilon,
                }
            )
        return found


def round_to(value: float) -> float:
    """Four digits say enough of an estimate."""
    return round(value, 4)


def held_out(secret: bytes, run: str, items: Sequence[str]) -> str | None:
    """The entry that a device leaves out; nobody else can tell which. ``None`` of fewer than two.

    A longer history keeps the choice, or leaves out an entry that is new: never one that was trained on.

    Example:
        >>> first = held_out(bytes(32), "r", ["a", "b", "c"])
        >>> first == held_out(bytes(32), "r", ["c", "b", "a"]), held_out(bytes(32), "r", ["a"])
        (True, None)
    """

    def mark(item: str) -> bytes:
        return hashlib.blake2b(
            f"{run}/{item}".encode(), key=secret, digest_size=16, person=b"held out"
        ).digest()

    return min(items, key=mark) if len(items) > 1 else None


@dataclass(frozen=True)
class HeldOutHit(LocalWork):
    """Whether the entry that was left out is among the first of the list made from the others."""

    model: Model

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One bit per person; without an entry left out it is a miss."""
        del private, inbox, keys
        scorer = self.model.scorer(received.arrays, self.model.folded_in(received.arrays, cohort))
        left_out = cohort.extras.get(HELD, np.full(len(cohort), -1))
        bits = np.zeros((len(cohort), 1), dtype=np.float32)
        for row, item in enumerate(left_out.tolist()):
            if item >= 0:
                seen = cohort.items[cohort.offsets[row] : cohort.offsets[row + 1]]
                scores = np.asarray(scorer.scores(np.array([row], dtype=np.int32))[0], dtype=np.float64)
                bits[row] = item in best_places(scores, seen, SHOWN)
        return Work({"hit": bits}, {})


@dataclass(frozen=True)
class RandomisedHit(Protection):
    """A bit kept with odds ``e^epsilon``, with fresh coins at each asking.

    Formal guarantees:
        Each answer is ``epsilon``-private for everything a person did. ``adjacency`` is the one in which the
        method's own claims are made; with people coming and going, who is not there counts as a miss.

    ======================  ==========================================================
    edge case               what happens
    ======================  ==========================================================
    nothing to leave out    answered like a miss: that somebody answers tells nothing
    asked again             another event: epsilons add up over the askings
    ======================  ==========================================================
    """

    epsilon: float
    adjacency: Adjacency

    def on_client(self, update: Arrays, bound: Any, state: Any, keys: Keyed) -> Arrays:
        """Throw the coin."""
        del bound, state
        told: Any = update["hit"]
        coin = stream(keys, 1)[:, 0].astype(np.float64) / 2.0**64
        lie = coin >= keep_probability(self.epsilon)
        return {"hit": np.where(lie[:, None], 1 - told, told).astype(np.float32)}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """One local report to the server; nobody else sees it."""
        del state, facts
        alike = self.adjacency is Adjacency.ADD_REMOVE
        assumes = ("somebody who is not there counts as a miss",) if alike else ()
        claim = replace(claim, adjacency=self.adjacency)
        return claim.with_event(Observer.SERVER, PureLocal(self.epsilon), assumes)


@dataclass(frozen=True)
class HitCount(Aggregator):
    """How many said yes, of how many; an answer is a yes or a no, whatever number it is."""

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)

    def start(self, shared: Mapping[str, Array]) -> dict[str, Any]:
        """Nobody yet."""
        del shared
        return {"counts": np.zeros(2, dtype=np.int64)}

    def add(self, tally: dict[str, Any], arrays: Arrays) -> None:
        """Count."""
        told: Any = arrays["hit"]
        tally["counts"] = tally["counts"] + [int((told > 0.5).sum()), told.size]

    def total(self, tally: dict[str, Any]) -> dict[str, Array]:
        """The counts."""
        return dict(tally)

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The counts."""
        del facts
        return dict(total)


@dataclass(frozen=True)
class Noting(ServerStep):
    """The method's own step, with the counts of hits noted beside it, a line per asking."""

    inner: ServerStep

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The method's own."""
        return self.inner.init(shared)

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Counts go into the notes and touch nothing else."""
        own = {name: total for name, total in totals.items() if name != NAME}
        noted = state.get(NAME, np.zeros((0, 3), dtype=np.int64))
        rest = {name: array for name, array in state.items() if name != NAME}
        shared_after, after = self.inner.step(shared, own, rest, round)
        if NAME in totals and totals[NAME]["counts"][1]:
            noted = np.concatenate([noted, [[round, *totals[NAME]["counts"].tolist()]]])
        return shared_after, {**after, NAME: noted} if len(noted) else after


def measured(method: Method, accuracy: Accuracy) -> Method:
    """The method with one more exchange in which everybody is asked; its own rounds stay as they are."""

    def casting(people: Index, keys: Keys) -> Casting:
        found = method.casting(people, keys)
        return replace(found, parts={**found.parts, NAME: people})

    asking = Exchange(
        name=NAME,
        into=NAME,
        part=NAME,
        sampling=Everyone(),
        downlink=dict,
        local=HeldOutHit(method.model),
        protections=chain(RandomisedHit(accuracy.epsilon, _adjacency(method))),
        transport=direct(),
        aggregator=HitCount(),
        exposes={
            Observer.SERVER: "a bit without a randomiser",
            Observer.PROXY: Nothing(),
            Observer.PEER: Nothing(),
            Observer.RELEASE: Nothing(),
        },
    )
    return replace(
        method, exchanges=(*method.exchanges, asking), server=Noting(method.server), casting=casting
    )


def _adjacency(method: Method) -> Adjacency:
    """The one that the method's own claims use, so that a device can add up."""
    exchange = method.exchanges[-1]
    facts = RoundFacts(0, exchange.name, 2, 2, 2)
    claim = exchange.protections.event(Claim.unbounded(""), exchange.protections.init(), facts)
    return claim.adjacency
