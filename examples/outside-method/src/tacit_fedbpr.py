"""Federated Bayesian personalised ranking: whoever met an item ranks it above one they did not.

Rendle, Freudenthaler, Gantner, Schmidt-Thieme: BPR: Bayesian Personalized Ranking from Implicit Feedback,
UAI 2009, trained here by federated averaging with the sum's noise added by the server.

    server: start V
    for t = 0 .. T-1:
        ask each client with probability q
        each asked client u, on its own device:
            repeat E times: for each met item p draw an unmet item n, and step along the gradient of
                ln sigmoid(u . (v_p - v_n)) - reg / 2 |.|^2                           BPR-Opt
            send V minus its own table, clipped to length C
        server: V <- V - (sum + noise of z C) / (q clients)

What leaves a device: a table as large as the catalogue's, of length C at most. The server sees it as it is,
so against the server nothing is promised; the noise is on the sum, so whoever is given the model sees a
sampled Gaussian mechanism in every round. Deviation: BPR steps pair by pair, this takes all pairs at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.mean import Mean
from tacit.federation.sampling import Poisson
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.rng import Keys, uniforms
from tacit.round import Citation, Exchange, Method
from tacit.schedule import Decaying
from tacit.server.step import Descent
from tacit.settings import Count, Dim, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct
from tacit.types import Array, Cohort, Index, Segment

PAPER = Citation(
    title="BPR: Bayesian Personalized Ranking from Implicit Feedback",
    authors="Rendle, Freudenthaler, Gantner, Schmidt-Thieme",
    year=2009,
)
EXPOSES = {
    Observer.SERVER: "the server sees each clipped table before the noise",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
}


@dataclass(frozen=True)
class RankedPairs(LocalWork):
    """A device's own steps on pairs of a met and an unmet item."""

    epochs: int
    rate: float
    reg: float

    @property
    def dense(self) -> bool:
        """A client sends a whole table."""
        return True

    def negatives(self, received: Broadcast, cohort: Cohort, keys: Keys) -> Segment:
        """An unmet item for each met one: what the null-model audit replays."""
        lists = [unmet_items(cohort, client, keys, received.round) for client in range(len(cohort))]
        return Segment(cohort.offsets[:-1], np.diff(cohort.offsets), np.concatenate([*lists, _NO_ITEMS]))

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Train each client's own copy, and send what changed."""
        del inbox
        items = received.arrays["items"]
        vectors, change = private["user"].copy(), np.zeros((len(cohort), *items.shape), dtype=np.float32)
        for client in range(len(cohort)):
            met = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
            unmet = unmet_items(cohort, client, keys, received.round)
            if len(unmet):
                vectors[client], table = self.trained(vectors[client], items.copy(), met, unmet)
                change[client] = items - table
        return Work({"items": change}, {"user": vectors})

    def trained(self, vector: Array, items: Array, met: Index, unmet: Index) -> tuple[Array, Array]:
        """A person's vector and the item table after the device's steps."""
        for _ in range(self.epochs):
            between = items[met] - items[unmet]
            doubt = 1 / (1 + np.exp(between @ vector))
            slope = doubt[:, np.newaxis] * vector
            np.add.at(items, met, self.rate * (slope - self.reg * items[met]))
            np.add.at(items, unmet, self.rate * (-slope - self.reg * items[unmet]))
            vector = vector + self.rate * (doubt @ between - self.reg * vector)
        return vector.astype(np.float32), items


_NO_ITEMS = np.zeros(0, dtype=np.int32)


def unmet_items(cohort: Cohort, client: int, keys: Keys, round: int) -> Index:
    """As many items that a client never met as it met, from its own key: grouping changes nothing."""
    met = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
    others = np.setdiff1d(np.arange(cohort.catalogue, dtype=np.int32), met, assume_unique=True)
    if not len(others):
        return _NO_ITEMS
    own = keys.users(cohort.users[client : client + 1], "fedbpr/unmet", round)
    return others[(uniforms(own, len(met))[0] * len(others)).astype(np.int64)]


@checked
def fedbpr(
    *,
    dim: Dim = 16,
    rounds: Count = 30,
    clients: Share = 0.5,
    epochs: Count = 4,
    rate: Positive = 0.1,
    reg: NonNegative = 0.01,
    step: Positive = 1.0,
    clip: Positive = 1.0,
    noise: Positive = 4.0,
) -> Method:
    """Personalised ranking from implicit feedback, averaged over clients with noise on the sum.

    Args:
        dim: Numbers per user and per item.
        rounds: Rounds of training.
        clients: The probability with which each client is asked in a round.
        epochs: Steps on a device in a round.
        rate: The size of a device's steps.
        reg: How strongly vectors are pulled to zero.
        step: What the server's mean is multiplied by.
        clip: The greatest length of what a client sends.
        noise: The standard deviation of the noise on the sum, in clip norms.

    Example:
        >>> fedbpr(dim=8).exchanges[0].local
        RankedPairs(epochs=4, rate=0.1, reg=0.01)
    """
    exchange = Exchange(
        name="train",
        sampling=Poisson(clients),
        downlink=("items",),
        local=RankedPairs(epochs, rate, reg),
        protections=chain(Clip(clip), GaussianNoise(noise, "server")),
        transport=direct(),
        aggregator=Mean(clients),
        exposes=EXPOSES,
    )
    return Method(
        name="fedbpr",
        paper=PAPER,
        model=MatrixFactorisation(dim, "normal", 0.1),
        rounds=rounds,
        exchanges=(exchange,),
        server=Descent(Decaying(step)),
    )


METHODS = {"fedbpr": fedbpr}
