"""DPLCF: item neighbours estimated from randomised histories; scores computed on devices.

Gao, Huang, Lin, Liu, Wang, Wang: DPLCF: Differentially Private Local Collaborative Filtering, SIGIR 2020.

    each client, once: send a bit per item, flipped with probability 1 / (1 + e^eps)
    server: unbiased counts n_i and pair counts n_ij from the bits' moments
            s_ij <- n_ij / sqrt(n_i n_j); keep each item's strongest neighbours, send them to everybody
    device: score_j <- sum of s_ij over the items i that the owner truly met

What leaves a device: one randomised bit per item, once. ``epsilon`` is a bit's; a person's is as many times
that as there are items, which is what is reported. Deviation: similarities are cosines of unbiased counts
(the paper's choice among several); counts at or below zero make no neighbours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.bit_moments import BitMoments
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone
from tacit.local.presence import MetBits
from tacit.methods.twins import Twin, alone, central
from tacit.models.model import Model, Scorer
from tacit.protect.protection import chain
from tacit.protect.randomised_bits import RandomisedBits
from tacit.rng import Keys
from tacit.round import Citation, Exchange, Method, Surroundings
from tacit.server.step import ServerStep
from tacit.settings import Count, NonNegative, Positive, checked
from tacit.transport.direct import direct
from tacit.types import Array, Cohort, Floats, Index

PAPER = Citation(
    title="DPLCF: Differentially Private Local Collaborative Filtering",
    authors="Gao, Huang, Lin, Liu, Wang, Wang",
    year=2020,
    says="epsilon-differential privacy for each single interaction",
)
_ROWS = 512  # of the pair counts worked on at a time: all of them do not fit in memory four times
MOST_ITEMS = 20_000
EXPOSES = {
    Observer.SERVER: "histories without a randomiser",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "histories without a randomiser",
}


@dataclass(frozen=True)
class NeighbourScores:
    """Sums of similarities to what each person met; histories stay private."""

    histories: sparse.csr_array
    similar: sparse.csr_array

    def scores(self, users: Index) -> Floats:
        """One row per user."""
        return (self.histories[users] @ self.similar).toarray()

    def predict(self, users: Index, items: Index) -> Floats:
        """One number per pair."""
        both = self.histories[users].multiply(self.similar.T[items])
        return np.asarray(both.sum(axis=1)).ravel()


@dataclass(frozen=True)
class Neighbours(Model):
    """Each item's ``most`` strongest neighbours are shared; a person's history is the private half.

    Histories are kept as private arrays of one bit per item.
    """

    most: int
    adapts: ClassVar[bool] = True

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """No neighbours known."""
        del keys
        shape = catalogue, min(self.most, catalogue)
        return {
            "neighbours": np.zeros(shape, dtype=np.int32),
            "similarity": np.zeros(shape, dtype=np.float32),
        }

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Everybody's history is on the device already; nothing else is private."""
        del users, keys
        return {}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """The client's history as bits."""
        catalogue = len(shared["neighbours"])
        bits = np.zeros((len(cohort), catalogue), dtype=np.uint8)
        bits[np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets)), cohort.items] = 1
        return {"history": np.packbits(bits, axis=1)}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Sums of similarities."""
        neighbours, similarity = shared["neighbours"], shared["similarity"]
        catalogue = len(neighbours)
        starts = np.arange(catalogue + 1) * neighbours.shape[1]
        shape = catalogue, catalogue
        similar = sparse.csr_array((similarity.ravel(), neighbours.ravel(), starts), shape=shape)
        packed: Any = private["history"]
        blocks = [
            sparse.csr_array(np.unpackbits(packed[low : low + 4096], axis=1, count=catalogue)).astype("f4")
            for low in range(0, len(packed), 4096)
        ]
        return NeighbourScores(sparse.csr_array(sparse.vstack(blocks)), similar)


@dataclass(frozen=True)
class NeighbourStep(ServerStep):
    """Similarities from the moments of bits kept with odds ``e^epsilon``; ``damp`` is added to each count.

    Bits that never flip are those of an infinite ``epsilon``.

    The moments of a flipped bit follow from those of the true one: with ``a = tanh(epsilon / 2)`` its mean is
    ``(1 - a) / 2 + a m``, and covariances of different bits shrink by ``a^2``.
    """

    epsilon: float
    most: int
    damp: float

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Each item's strongest neighbours."""
        del round
        moments: Mapping[str, Any] = totals["bits"]
        reports, slope = int(moments["reports"][0]), math.tanh(self.epsilon / 2)
        flipped = (1 - slope) / 2
        seen: Any = moments["single"]
        counts = np.maximum((seen - reports * flipped) / slope, 0.0) + self.damp
        weights = np.zeros(len(seen), dtype=np.float32)
        np.divide(1.0, np.sqrt(counts), out=weights, where=counts > 0, casting="same_kind")
        found: list[tuple[Any, Any]] = []
        for first in range(0, len(seen), _ROWS):
            some = slice(first, first + _ROWS)
            both = seen[some, np.newaxis] + seen
            pairs = (moments["pairs"][some] - flipped * both + reports * flipped**2) / slope**2
            similar = pairs.astype(np.float32) * weights[some, np.newaxis] * weights
            similar[np.arange(len(similar)), np.arange(first, first + len(similar))] = 0.0
            found.append(_strongest(similar, shared["neighbours"].shape[1]))
        best, similarity = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return {**shared, "neighbours": best, "similarity": similarity}, state


def _strongest(similar: Floats, most: int) -> tuple[Index, Floats]:
    """The places of each row's largest numbers, rising, and the numbers, none below zero."""
    best = np.argpartition(-similar, most - 1, axis=1)[:, :most].astype(np.int32)
    best.sort(axis=1)
    return best, np.maximum(np.take_along_axis(similar, best, axis=1), 0.0)


@checked
def dplcf(
    *, epsilon: Positive = 2.5, neighbours: Count = 50, damp: NonNegative = 10.0, twin: Twin = "none"
) -> Method:
    """Item neighbours from one randomised bit per item and person; epsilon is a bit's, not a person's.

    Args:
        epsilon: Local privacy of one bit: of whether one item was met.
        neighbours: How many neighbours of each item are kept and sent to devices.
        damp: What is added to an item's count before similarities are formed: rare items get weaker ones.
        twin: The same neighbours from true histories (``central``), or every device alone (``local``).

    Example:
        >>> dplcf(neighbours=10).model
        Neighbours(most=10)
    """
    exchange = Exchange(
        name="bits",
        into="bits",
        sampling=Everyone(),
        downlink=(),
        local=MetBits(),
        protections=chain(RandomisedBits(epsilon, 1)),
        transport=direct(),
        aggregator=BitMoments(1),
        exposes=EXPOSES,
    )
    method = Method(
        name="dplcf",
        paper=PAPER,
        model=Neighbours(neighbours),
        rounds=1,
        exchanges=(exchange,),
        server=NeighbourStep(epsilon, neighbours, damp),
        settle=_settled,
    )
    if twin == "local":
        return alone(method)
    if twin == "central":
        return replace(central(method, exchange), server=NeighbourStep(math.inf, neighbours, damp))
    return method


def _settled(method: Method, around: Surroundings) -> Method:
    """One bit for each item there is, where all pairs of them can be counted."""
    if around.catalogue > MOST_ITEMS:
        size = 4e-9 * around.catalogue**2
        raise TacitError(
            f"the counts of all pairs of {around.catalogue} items would take {size:.1f} GB",
            f"take a catalogue of at most {MOST_ITEMS} items, or ldp-spectral",
        )
    (exchange,) = method.exchanges
    stages = (
        replace(stage, bits=around.catalogue) if isinstance(stage, RandomisedBits) else stage
        for stage in exchange.protections.stages
    )
    whole = replace(exchange, protections=chain(*stages), aggregator=BitMoments(around.catalogue))
    return replace(method, exchanges=(whole,))


METHODS = {"dplcf": dplcf}
