"""FedNCF, DP-FedNCF, DP-FedNCF-DGC and Priv-FedNCF-Sub-Compress: a neural recommender in a federation.

FedNCF: Perifanis, Efraimidis: Federated Neural Collaborative Filtering, Knowledge-Based Systems 2022.
The others: Xue, Du, Chen, Li, Journal of Software 2026 (in Chinese), Algorithm 3.

    set-up (Priv-FedNCF-Sub-Compress): DP-SUB, see ``dp_sub``
    for t = 0 .. T-1:                                                                    Algorithm 3
        server: send item vectors (of the chosen items) and the network to some clients  lines 3-5
        each client: E epochs of Adam on own items and 4 sampled ones each               client, lines 2-3
        each client: deep layers made sparse, everything clipped, noise added            client, lines 4-6
        server: add FedSubAvg's mean of the changes                                      lines 6-9, Eq. 11

What leaves a device: the change of item vectors and of the network, every round it is asked; randomised bits
once. A person's two vectors stay. Adam starts anew with each round a client is asked.
Deviations. The printed order (the largest entries, then noise) has no guarantee: which entries are large is
sent in the clear. By default a public draw chooses the entries, a person's whole upload is clipped once and
noise follows; with DGC what was not sent is remembered. ``noise=published`` follows the print: each part
clipped to ``clip``, noise of deviation ``sigma * clip``, the claim left empty where places are told.
"Deep" is what comes after the second layer, as in the paper: 2,145 of 43,297 numbers of the network, so there
is little to gain; item vectors are 160 numbers each. DP-FedNCF-DGC compresses the network in this way with
momentum correction, local clipping, factor masking and warm-up; item vectors have no memory (it would be a
second catalogue on every device) and are sent whole.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.aggregate.submodel import SubModelSum
from tacit.errors import TacitError
from tacit.federation.sampling import FixedSize
from tacit.ledger.record import Traffic
from tacit.local.neural_epochs import NeuralEpochs
from tacit.local.residual import Residual
from tacit.local.work import LocalWork
from tacit.methods.dp_sub import (
    IN_THE_CLEAR,
    PAPER,
    SIGMA,
    Bits,
    Estimate,
    Noise,
    Redraw,
    as_published,
    budgeted,
    choosing,
    parameters,
    within,
)
from tacit.methods.twins import Twin, alone, central
from tacit.models.neural_cf import TABLES, NeuralCF, layers
from tacit.models.sub_model import Selected, Unselected
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Chain, Protection, chain, none
from tacit.protect.published_noise import PublishedNoise
from tacit.protect.shared_mask import SharedMask, kept
from tacit.round import Citation, Exchange, Method
from tacit.schedule import Warming
from tacit.server.step import Interpolation
from tacit.settings import Count, CountOrShare, Natural, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct

FEDNCF = Citation(
    title="Federated Neural Collaborative Filtering",
    authors="Perifanis, Efraimidis",
    year=2022,
    says="data stay on devices (no claim about the updates that do not)",
)
Averaged = Literal["holders", "mean"]


@dataclass(frozen=True)
class Recipe:
    """What all methods of the family share."""

    factors: int
    tower: str
    rounds: int
    rate: float
    epochs: int
    batch: int
    negatives: int
    clients: int | float
    adam: Literal["lazy", "dense"]

    @property
    def widths(self) -> tuple[int, ...]:
        """Twice the vector, then the layers, as in 256-128-64-32."""
        try:
            widths = tuple(int(width) for width in self.tower.split("-"))
        except ValueError:
            widths = ()
        if len(widths) < 2 or min(widths) < 1 or widths[0] % 2:
            raise TacitError(
                f"a tower of {self.tower!r}", "give widths such as 256-128-64-32, the first one even"
            )
        return widths

    def model(self) -> NeuralCF:
        """The network, all rows in play."""
        return NeuralCF(self.factors, self.widths, negatives=self.negatives)

    def method(self, name: str, protections: Chain, averaged: Averaged) -> Method:
        """Everything goes down; the change of touched rows comes back, of all rows where noise needs it."""
        guarded = bool(protections.stages)
        local = NeuralEpochs(
            self.rate, self.epochs, self.batch, self.negatives, len(self.widths) - 1, self.adam,
            sends="received" if guarded else "touched",
        )  # fmt: skip
        network = layers(len(self.widths) - 1)
        exchange = Exchange(
            name="train",
            sampling=FixedSize(self.clients),
            downlink=(*TABLES, *network),
            local=local,
            protections=protections,
            transport=direct(),
            aggregator=SubModelSum(TABLES, "mean" if guarded else averaged),
            exposes=IN_THE_CLEAR,
        )
        return Method(
            name=name,
            paper=FEDNCF if name == "fedncf" else PAPER,
            model=self.model(),
            rounds=self.rounds,
            exchanges=(exchange,),
            server=Interpolation(1.0),
            published_units=ItemParameters(
                sum(math.prod(shape) for _, shape in self.model().network_shapes())
            ),
        )

    def twinned(self, method: Method, twin: Twin, averaged: Averaged = "holders") -> Method:
        """The method itself, or the twin that is asked for."""
        if twin == "local":
            return alone(method)
        plain = self.method(method.name, none(), averaged)
        return central(plain, plain.exchanges[0]) if twin == "central" else method

    def shapes(self, names: tuple[str, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The shapes of some of the network's arrays."""
        return tuple((name, shape) for name, shape in self.model().network_shapes() if name in names)

    def deep(self) -> tuple[str, ...]:
        """What comes after the second layer."""
        return tuple(
            name for name in layers(len(self.widths) - 1) if not name.startswith(("layer1.", "layer2."))
        )


@dataclass(frozen=True)
class ItemParameters:
    """The paper's count: numbers of item vectors a client gets in a round; the network is left out."""

    network: int

    def __call__(self, by_exchange: Mapping[str, tuple[Traffic, int]]) -> dict[str, float]:
        """Per client and round."""
        return {"parameters_per_client": parameters(by_exchange)["parameters_per_client"] - self.network}


def _guard(
    noise: Noise,
    clip: float,
    sigma: float,
    mask: Protection | None = None,
    deep: tuple[str, ...] = (),
    share: float | None = 1.0,
) -> Chain:
    if noise == "published":
        return chain(PublishedNoise(clip, sigma, deep, share))
    after = () if mask is None else (mask,)
    return chain(*after) if noise == "none" else chain(Clip(clip), GaussianNoise(sigma, "device"), *after)


@checked
def fedncf(
    *,
    factors: Count = 32,
    tower: str = "256-128-64-32",
    rounds: Count = 400,
    rate: Positive = 0.0005,
    epochs: Count = 5,
    batch: Count = 256,
    negatives: Natural = 4,
    clients: CountOrShare = 0.1,
    adam: Literal["lazy", "dense"] = "lazy",
    averaged: Averaged = "holders",
    twin: Twin = "none",
) -> Method:
    """Neural collaborative filtering in a federation; nothing is hidden.

    ``tower`` holds twice the vector's length, then the layers' widths.

    Example:
        >>> fedncf(tower="16-8-4", factors=4).model.widths
        (16, 8, 4)
    """
    recipe = Recipe(factors, tower, rounds, rate, epochs, batch, negatives, clients, adam)
    return recipe.twinned(recipe.method("fedncf", none(), averaged), twin, averaged)


@checked
def dp_fedncf(
    *,
    factors: Count = 32,
    tower: str = "256-128-64-32",
    rounds: Count = 400,
    rate: Positive = 0.0005,
    epochs: Count = 5,
    batch: Count = 256,
    negatives: Natural = 4,
    clients: CountOrShare = 0.1,
    adam: Literal["lazy", "dense"] = "lazy",
    noise: Noise = "gaussian",
    clip: Positive = 1.0,
    epsilon: Positive | None = None,
    sigma: Positive | None = None,
    twin: Twin = "none",
) -> Method:
    """FedNCF with every upload clipped and normal noise on it.

    The noise has deviation ``sigma * clip`` (by default 1), or as much as keeps a person's ``epsilon``
    against whoever gets the model.

    Example:
        >>> dp_fedncf(clip=0.5).exchanges[0].protections.stages
        (Clip(size=0.5), GaussianNoise(noise=1.0, where='device'))
    """
    recipe = Recipe(factors, tower, rounds, rate, epochs, batch, negatives, clients, adam)
    method = recipe.method("dp-fedncf", _guard(noise, clip, sigma or SIGMA), "mean")
    return _within(recipe.twinned(as_published(method, noise), twin), noise, epsilon, sigma, twin)


def _within(method: Method, noise: Noise, epsilon: float | None, sigma: float | None, twin: Twin) -> Method:
    """The method within a budget, if one is given."""
    if epsilon is not None and noise == "published":
        raise TacitError("epsilon says nothing about the published noise", "give sigma, or noise=gaussian")
    budget, _ = budgeted(noise, epsilon, sigma)
    return method if budget is None or twin != "none" else within(method, budget)


@checked
def dp_fedncf_dgc(
    *,
    factors: Count = 32,
    tower: str = "256-128-64-32",
    rounds: Count = 400,
    rate: Positive = 0.0005,
    epochs: Count = 5,
    batch: Count = 256,
    negatives: Natural = 4,
    clients: CountOrShare = 0.1,
    adam: Literal["lazy", "dense"] = "lazy",
    noise: Noise = "gaussian",
    clip: Positive = 1.0,
    epsilon: Positive | None = None,
    sigma: Positive | None = None,
    share: Share = 0.1,
    warm_up: Natural = 4,
    momentum: NonNegative = 0.9,
    local_clip: NonNegative = 1.0,
    twin: Twin = "none",
) -> Method:
    """DP-FedNCF with deep gradient compression of the network.

    ``share`` of the network's entries travel after ``warm_up`` rounds; what is left out waits on the device
    with its ``momentum``, after the change was clipped to ``local_clip``.

    Example:
        >>> work = dp_fedncf_dgc(share=0.01).exchanges[0].local
        >>> [round(work.share.at(t), 3) for t in (0, 2, 4)]
        [1.0, 0.1, 0.01]
    """
    recipe = Recipe(factors, tower, rounds, rate, epochs, batch, negatives, clients, adam)
    names = layers(len(recipe.widths) - 1)
    schedule = Warming(share, warm_up)
    mask = SharedMask(schedule, recipe.shapes(names))
    method = recipe.method(
        "dp-fedncf-dgc", _guard(noise, clip, sigma or SIGMA, mask, names, share=None), "mean"
    )
    train = method.exchanges[0]
    choice: Literal["shared", "largest"] = "largest" if noise == "published" else "shared"
    local = Residual(_dense(train.local), names, schedule, kept, momentum, local_clip, choice)
    model = replace(recipe.model(), memory=True)
    method = replace(method, model=model, exchanges=(replace(train, local=local),))
    return _within(recipe.twinned(as_published(method, noise), twin), noise, epsilon, sigma, twin)


def _dense(local: LocalWork) -> NeuralEpochs:
    assert isinstance(local, NeuralEpochs)
    return replace(local, sends="received")


@checked
def priv_fedncf_sub_compress(
    *,
    factors: Count = 32,
    tower: str = "256-128-64-32",
    rounds: Count = 400,
    rate: Positive = 0.0005,
    epochs: Count = 5,
    batch: Count = 256,
    negatives: Natural = 4,
    clients: CountOrShare = 0.1,
    adam: Literal["lazy", "dense"] = "lazy",
    noise: Noise = "gaussian",
    clip: Positive = 1.0,
    sigma: Positive = 1.0,
    share: Share = 0.1,
    bits: Bits = "randomised",
    bit_epsilon: Positive = 2.0,
    redraw: Redraw = "never",
    estimate: Estimate = "likelihood",
    threshold: Share | None = None,
    pool: Literal["catalogue", "received"] = "catalogue",
    unselected: Unselected = "last",
    twin: Twin = "none",
) -> Method:
    """FedNCF on a sub-model, deep layers compressed, noise on every upload (share=1: without compression).

    Example:
        >>> method = priv_fedncf_sub_compress(share=1.0, noise="none")
        >>> method.exchanges[0].protections.stages
        ()
    """
    recipe = Recipe(factors, tower, rounds, rate, epochs, batch, negatives, clients, adam)
    deep = recipe.deep()
    mask = SharedMask(Warming(share), recipe.shapes(deep)) if share < 1 and deep else None
    method = recipe.method("priv-fedncf-sub-compress", _guard(noise, clip, sigma, mask, deep, share), "mean")
    train = method.exchanges[0]
    network = layers(len(recipe.widths) - 1)
    local = replace(_dense(train.local), pool=pool)
    train = replace(
        train, local=local, downlink=Selected(TABLES, network), aggregator=SubModelSum(TABLES, "mean")
    )
    model = replace(recipe.model(), sub_model=True, unselected=unselected)
    method = choosing(
        replace(method, model=model, exchanges=(train,)), bits, bit_epsilon, redraw, estimate, threshold
    )
    return recipe.twinned(as_published(method, noise), twin)


def _paper(data: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The published recipe; sigma, not stated, is the classical one for a budget of 2 at delta 1e-5."""
    del given
    size = {"clients": 100, "batch": 256} if data.startswith("ml-100k") else {"clients": 200, "batch": 512}
    shared = {"factors": 32, "tower": "256-128-64-32", "rounds": 400, "rate": 0.0005, "epochs": 5}
    return {
        **shared,
        **size,
        "negatives": 4,
        "noise": "published",
        "clip": 1.0,
        "sigma": 2.42,
        "bit_epsilon": 2.0,
    }


METHODS = {
    "fedncf": fedncf,
    "dp-fedncf": dp_fedncf,
    "dp-fedncf-dgc": dp_fedncf_dgc,
    "priv-fedncf-sub-compress": priv_fedncf_sub_compress,
}
PRESETS = {"paper": _paper}
