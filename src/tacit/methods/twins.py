"""Twins: the same model without the federation's constraints, to say what they cost.

The local twin of matrix factorisation needs no training loop. A device alone never moves the vector of an
item it has not rated, and it is only ever asked about such items; so whatever it trained, all it can answer
with is what it knows of its owner, the mean rating.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.aggregator import Aggregator
from tacit.federation.federation import alike
from tacit.federation.sampling import Everyone
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.model import Model, Scorer
from tacit.protect.protection import none
from tacit.rng import Keys
from tacit.round import Exchange, Method
from tacit.schedule import Decaying
from tacit.server.step import Descent
from tacit.transport.direct import direct
from tacit.types import Array, Arrays, Cohort, Delivers, Floats, Index, RoundFacts

Twin = Literal["none", "central", "local"]

POOLED = {
    Observer.SERVER: "the central twin: all ratings lie at the server",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's ratings; no noise is added",
}


def pooled(exchange: Exchange) -> Exchange:
    """The same exchange where all data lie in one place."""
    return replace(
        exchange, sampling=Everyone(), protections=none(), transport=direct(), exposes=POOLED, part="everyone"
    )


def central(method: Method, exchange: Exchange, setup: tuple[Exchange, ...] = ()) -> Method:
    """The same model and optimiser on pooled data: one exchange with everybody in every round."""
    note = (
        "central twin: same model and optimiser on pooled data; bytes are those of plain federated training"
    )
    return replace(
        method,
        exchanges=(pooled(exchange),),
        setup=tuple(pooled(before) for before in setup),
        casting=alike,
        published_units=None,
        notes=(*method.notes, note),
    )


def alone(method: Method) -> Method:
    """Every device by itself: nothing is sent, and unseen items are answered with the owner's mean rating."""
    exchange = Exchange(
        name="alone",
        sampling=Everyone(),
        downlink=(),
        local=OwnMean(),
        protections=none(),
        transport=direct(),
        aggregator=NothingArrives(),
        exposes={observer: Nothing() for observer in Observer},
    )
    note = (
        "local twin: a device alone knows nothing of items it has not rated; it answers with its mean rating"
    )
    return replace(
        method,
        model=MeanOfOne(),
        rounds=1,
        exchanges=(exchange,),
        setup=(),
        server=Descent(Decaying(1.0)),
        casting=alike,
        published_units=None,
        settle=None,
        notes=(*method.notes, note),
    )


def own_means(cohort: Cohort) -> Floats:
    """Each client's mean rating (0 without ratings)."""
    clients = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
    sums = np.bincount(clients, weights=cohort.values, minlength=len(cohort))
    return (sums / np.maximum(np.diff(cohort.offsets), 1)).astype(np.float32)


@dataclass(frozen=True)
class OwnMean(LocalWork):
    """Keeps the mean of one's own ratings and sends nothing."""

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Look at one's own ratings."""
        del received, private, inbox, keys
        return Work({}, {"mean": own_means(cohort)})


@dataclass(frozen=True)
class NothingArrives(Aggregator):
    """The aggregation of an exchange in which nobody sends anything."""

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)

    def start(self, shared: Mapping[str, Array]) -> None:
        """No tally."""
        del shared

    def add(self, tally: Any, arrays: Arrays) -> None:
        """Nothing to add."""
        del tally, arrays

    def total(self, tally: Any) -> dict[str, Array]:
        """Nothing."""
        del tally
        return {}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """Nothing."""
        del total, facts
        return {}


@dataclass(frozen=True)
class Means:
    """Predicts everyone's own mean; orders nothing (all scores tie)."""

    means: Floats
    catalogue: int

    def scores(self, users: Index) -> Floats:
        """The same score for every item."""
        return np.repeat(self.means[users, np.newaxis], self.catalogue, axis=1)

    def predict(self, users: Index, items: Index) -> Floats:
        """One's own mean."""
        del items
        return self.means[users]


@dataclass(frozen=True)
class MeanOfOne(Model):
    """A model of one number per person."""

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """Only the size of the catalogue."""
        del keys
        return {"catalogue": np.array([catalogue], dtype=np.int64)}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Not known yet."""
        del keys
        return {"mean": np.zeros(len(users), dtype=np.float32)}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A newcomer's mean."""
        del shared
        return {"mean": own_means(cohort)}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Means."""
        return Means(private["mean"], int(shared["catalogue"][0]))
