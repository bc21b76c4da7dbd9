"""FedMF on implicit feedback, DP-FedMF and Priv-FedMF-Sub: factorisation with less to send and noise on it.

Xue, Du, Chen, Li: Communication-efficient Federated Recommendation Method with Differential Privacy,
Journal of Software 2026 (in Chinese), Algorithms 1 and 2.

    set-up (DP-SUB, Algorithm 1):
        each client: one randomised bit per item, kept with odds e^report_epsilon        client, lines 2-6
        server: likeliest true frequencies, keep the items above the mean                server, lines 3-7
    for t = 0 .. T-1:                                                                    Algorithm 2
        server: send the chosen rows V_sub to some clients                               lines 3-5
        each client: E epochs on own items and 4 sampled ones each, u and a copy of V    client, lines 2-5
        each client: clip, add noise, send the change of V_sub                           client, lines 6-7
        server: V <- V - rate * sum of what arrived                                      lines 6-9

What leaves a device: the randomised bits once; then, in rounds it is asked in, rows of gradients.
Deviations. The loss is the binary cross-entropy summed over a batch (Eq. 9 prints a residual without its
square). The change of a row over all epochs, divided by the rate, is sent once per round: noise per epoch
which only reaches the server as a sum would be wasted. Randomised bits are drawn once per person and kept
(``redraw=never``); published are fresh ones in each round (``redraw=round``): ten reveal nearly everything.
``noise=published`` is Eq. 10 with the scale the paper used, clip * E / epsilon per entry, whose guarantee for
a person is worse than its epsilon by the number of rows times the root of their length; ``noise=gaussian``
clips a person's whole upload instead. The paper's estimate rises with the reported share, so choosing above
the mean of either gives the same items: its ablation "without maximum likelihood" has no effect here, and a
fixed ``threshold`` shows one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.per_item import PerItemMean
from tacit.aggregate.submodel import ReportedShare, SubModelSum
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone, FixedSize
from tacit.ledger.record import Traffic
from tacit.local.logistic_factors import LogisticFactors
from tacit.local.own_bits import OwnBits
from tacit.local.residual import Residual
from tacit.methods.privacy_plan import OwnNoise
from tacit.methods.twins import Twin, alone, central
from tacit.models.logistic_factorisation import LogisticFactorisation
from tacit.models.sub_model import Selected, Unselected
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import Chain, chain, none
from tacit.protect.randomised_response import RandomisedResponse
from tacit.protect.row_laplace import RowLaplace
from tacit.protect.shared_mask import SharedMask, kept
from tacit.protect.sparsify import NonZero
from tacit.round import Citation, Exchange, Method, Surroundings
from tacit.schedule import Decaying, Warming
from tacit.server.step import Descent
from tacit.server.sub_model import Choosing
from tacit.settings import Count, CountOrShare, Dim, Natural, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct

PAPER = Citation(
    title="Communication-efficient Federated Recommendation Method with Differential Privacy",
    authors="Xue, Du, Chen, Li",
    year=2026,
    says="uploads satisfy differential privacy with a client budget of 2; bits about items another",
)
IN_THE_CLEAR = {
    Observer.SERVER: "the rows that change tell which items a person met, their values the person's vector",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's histories; no noise is added",
}
BITS_IN_THE_CLEAR = {
    **IN_THE_CLEAR,
    Observer.SERVER: "every person's history is reported as it is",
    Observer.RELEASE: "the choice of rows is an exact function of everyone's histories",
}
PLAIN = replace(PAPER, says="no claim of privacy (FedMF is the paper's baseline without noise)")
EPSILON, SIGMA = 2.0, 1.0  # of the published noise, and of normal noise
Noise = Literal["gaussian", "published", "none"]
Bits = Literal["randomised", "true"]
Redraw = Literal["never", "round"]
Estimate = Literal["likelihood", "none"]


@dataclass(frozen=True)
class Recipe:
    """What all methods of the family share."""

    dim: int
    rounds: int
    rate: float
    epochs: int
    batch: int
    negatives: int
    clients: int | float
    spread: float
    twin: Twin = "none"

    def method(self, name: str, protections: Chain, *, dense: bool) -> Method:
        """The whole table goes down; rows come back, the touched ones or all of them."""
        local = LogisticFactors(
            self.dim, self.rate, self.epochs, self.batch, self.negatives,
            sends="received" if dense else "touched",
        )  # fmt: skip
        exchange = Exchange(
            name="train",
            sampling=FixedSize(self.clients),
            downlink=("items",),
            local=local,
            protections=protections,
            transport=direct(),
            aggregator=SubModelSum() if dense else PerItemMean(divide=False),
            exposes=IN_THE_CLEAR,
        )
        method = Method(
            name=name,
            paper=PAPER,
            model=LogisticFactorisation(self.dim, self.spread, self.negatives),
            rounds=self.rounds,
            exchanges=(exchange,),
            server=Descent(Decaying(self.rate)),
            published_units=parameters,
        )
        return _twinned(method, local, self.twin)


def _twinned(method: Method, local: LogisticFactors, twin: Twin) -> Method:
    if twin == "none":
        return method
    if twin == "local":
        return alone(method)
    plain = replace(local, sends="touched", pool="catalogue")
    whole = replace(
        method.exchanges[0], local=plain, downlink=("items",), aggregator=PerItemMean(divide=False)
    )
    model = replace(method.model, sub_model=False)  # type: ignore[type-var]
    return central(replace(method, model=model, server=Descent(Decaying(local.rate)), settle=None), whole)


def implicit_fedmf(recipe: Recipe, *, sends: Literal["touched", "received"] = "touched") -> Method:
    """Federated matrix factorisation of implicit feedback; nothing is hidden."""
    return replace(recipe.method("fedmf", none(), dense=sends == "received"), paper=PLAIN)


@checked
def dp_fedmf(
    *,
    dim: Dim = 32,
    rounds: Count = 400,
    rate: Positive = 0.0015,
    epochs: Count = 5,
    batch: Count = 512,
    negatives: Count = 4,
    clients: CountOrShare = 0.1,
    spread: Positive = 0.1,
    noise: Noise = "gaussian",
    clip: NonNegative = 1.0,
    epsilon: Positive | None = None,
    sigma: Positive | None = None,
    share: Share = 1.0,
    warm_up: Natural = 4,
    momentum: NonNegative = 0.0,
    twin: Twin = "none",
) -> Method:
    """Implicit matrix factorisation with noise on every upload (clip + Laplace as published, or Gaussian).

    ``noise=gaussian`` clips a person's whole upload to ``clip`` and adds normal noise of ``sigma * clip``
    (by default 1), or as much as keeps a person's ``epsilon`` against whoever gets the model;
    ``noise=published`` clips row by row and adds Laplace noise of scale ``clip * epochs / epsilon`` (by
    default 2).
    ``share`` below 1 is deep gradient compression of the item table: so much of it travels after ``warm_up``
    rounds, and a device remembers what it did not send, with ``momentum``.

    Example:
        >>> dp_fedmf(noise="published", epsilon=2.0).exchanges[0].protections.stages
        (RowLaplace(scale=2.5, clip=5.0),)
        >>> dp_fedmf(clip=0.5, sigma=3.0).exchanges[0].protections.stages
        (Clip(size=0.5), GaussianNoise(noise=3.0, where='device'))
    """
    recipe = Recipe(dim, rounds, rate, epochs, batch, negatives, clients, spread, twin)
    budget, epsilon = budgeted(noise, epsilon, sigma)
    method = recipe.method("dp-fedmf", _noise(noise, clip, epsilon, sigma, epochs), dense=True)
    if share < 1 and twin == "none":
        if noise == "published":
            raise TacitError(
                "the published noise covers whole tables, and share leaves entries out",
                "add --protect topk:SHARE in its place, or choose noise=gaussian",
            )
        method = replace(method, settle=Remembering(Warming(share, warm_up), momentum, told=noise == "none"))
    return as_published(method if budget is None or twin != "none" else within(method, budget), noise)


def budgeted(noise: Noise, epsilon: float | None, sigma: float | None) -> tuple[float | None, float | None]:
    """What ``epsilon`` means: a budget for normal noise, or a part of the published noise's scale.

    Example:
        >>> budgeted("gaussian", 4.0, None), budgeted("published", 2.0, None)
        ((4.0, None), (None, 2.0))
    """
    if epsilon is None or noise == "published":
        return None, epsilon
    if noise == "none":
        raise TacitError(f"epsilon={epsilon:g} without noise", "leave it out, or choose noise=gaussian")
    if sigma is not None:
        raise TacitError("epsilon and sigma both say how much noise there is", "give one of them")
    return epsilon, None


def within(method: Method, epsilon: float) -> Method:
    """The method whose devices add as much normal noise as an epsilon needs, once it settles."""
    return replace(method, settle=OwnNoise(epsilon, method.settle))


@dataclass(frozen=True)
class Remembering:
    """Deep gradient compression of the item table, once its size is known.

    ``told``: the largest entries travel with their places. Otherwise those of a public draw do, without
    places, so that the noise's claim stays.
    """

    share: Warming
    momentum: float
    told: bool

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """The method whose devices keep what they did not send."""
        model, (train,) = method.model, method.exchanges
        assert isinstance(model, LogisticFactorisation)
        choice: Literal["largest", "shared"] = "largest" if self.told else "shared"
        work = Residual(train.local, ("items",), self.share, kept, self.momentum, 0.0, choice)
        last = NonZero() if self.told else SharedMask(self.share, (("items", (around.catalogue, model.dim)),))
        chain_ = replace(train.protections, stages=(*train.protections.stages, last))
        return replace(
            method,
            model=replace(model, memory=around.catalogue),
            exchanges=(replace(train, local=work, protections=chain_),),
        )


def _noise(noise: Noise, clip: float, epsilon: float | None, sigma: float | None, epochs: int) -> Chain:
    if noise == "none":
        return none()
    if noise == "published":
        if sigma is not None:
            raise TacitError("sigma has no effect on the published noise", "give epsilon, or noise=gaussian")
        return chain(RowLaplace((clip or 1.0) * epochs / (epsilon or EPSILON), clip * epochs))
    if epsilon is not None:
        raise TacitError(
            f"epsilon={epsilon:g} cannot be kept: the bits about items cost a person more", "give sigma"
        )
    return chain(Clip(clip), GaussianNoise(sigma or SIGMA, "device"))


def as_published(method: Method, noise: Noise) -> Method:
    """The method under the name of what it does: the print's noise is not a corrected mechanism."""
    return replace(method, mode="as-published") if noise == "published" else method


@checked
def priv_fedmf_sub(
    *,
    dim: Dim = 32,
    rounds: Count = 400,
    rate: Positive = 0.0015,
    epochs: Count = 5,
    batch: Count = 512,
    negatives: Count = 4,
    clients: CountOrShare = 0.1,
    spread: Positive = 0.1,
    noise: Noise = "gaussian",
    clip: NonNegative = 1.0,
    epsilon: Positive | None = None,
    sigma: Positive | None = None,
    bits: Bits = "randomised",
    bit_epsilon: Positive = 2.0,
    redraw: Redraw = "never",
    estimate: Estimate = "likelihood",
    threshold: Share | None = None,
    pool: Literal["catalogue", "received"] = "catalogue",
    unselected: Unselected = "last",
    twin: Twin = "none",
) -> Method:
    """DP-FedMF on a sub-model: rows of items that randomised answers say are met often.

    The paper's ablations: ``estimate=none`` (no maximum likelihood), ``bits=true`` (true reports),
    ``noise=none`` (nothing on the gradients). ``threshold`` replaces the mean frequency.

    Example:
        >>> method = priv_fedmf_sub(bit_epsilon=1.0, noise="none", threshold=0.05)
        >>> method.server.epsilon, method.server.threshold
        (1.0, 0.05)
    """
    recipe = Recipe(dim, rounds, rate, epochs, batch, negatives, clients, spread)
    whole = recipe.method("priv-fedmf-sub", _noise(noise, clip, epsilon, sigma, epochs), dense=True)
    local = replace(_local(whole), pool=pool)
    train = replace(whole.exchanges[0], local=local, downlink=Selected(("items",)), aggregator=SubModelSum())
    model = LogisticFactorisation(dim, spread, negatives, sub_model=True, unselected=unselected)
    method = choosing(
        replace(whole, model=model, exchanges=(train,)), bits, bit_epsilon, redraw, estimate, threshold
    )
    return as_published(_twinned(method, local, twin), noise)


def _local(method: Method) -> LogisticFactors:
    local = method.exchanges[0].local
    assert isinstance(local, LogisticFactors)
    return local


def choosing(
    method: Method, bits: Bits, epsilon: float, redraw: Redraw, estimate: Estimate, threshold: float | None
) -> Method:
    """DP-SUB (Algorithm 1) for a method whose exchange sends down the chosen rows."""
    asked = epsilon if bits == "randomised" else None
    read = asked if estimate == "likelihood" else None
    return replace(method, server=Choosing(method.server, read, threshold), settle=Asking(asked, redraw))


@dataclass(frozen=True)
class Asking:
    """Puts DP-SUB before the first round, and with fresh coins after every round as well."""

    epsilon: float | None
    redraw: Redraw

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """The method with the exchange in which everybody reports."""
        guard = none()
        if self.epsilon is not None:
            guard = chain(RandomisedResponse(self.epsilon, around.catalogue, self.redraw))
        ask = Exchange(
            name="report",
            sampling=Everyone(),
            downlink=(),
            local=OwnBits(),
            protections=guard,
            transport=direct(),
            aggregator=ReportedShare(),
            exposes=BITS_IN_THE_CLEAR,
            into="reports",
        )
        again = (replace(ask, name="report-again"),) if self.redraw == "round" else ()
        notes = (*method.notes, *self._told(around.catalogue, method.rounds))
        return replace(method, setup=(ask,), exchanges=(*method.exchanges, *again), notes=notes)

    def _told(self, items: int, rounds: int) -> tuple[str, ...]:
        """What the bits alone cost, in the units that the paper mixes."""
        if self.epsilon is None:
            return ()
        draws = rounds + 1 if self.redraw == "round" else 1
        each = f"{self.epsilon * draws:g} per item, {2 * self.epsilon * draws:g} per swap of two items"
        drawn = f"drawn anew in each round, {draws} times" if draws > 1 else "drawn once and kept"
        return (f"randomised bits alone, {drawn}: ε = {each}, {items * self.epsilon * draws:g} per person",)


def parameters(by_exchange: Mapping[str, tuple[Traffic, int]]) -> dict[str, float]:
    """The paper's count: numbers of the item tables that a client gets in a round, one direction only."""
    train, clients = by_exchange["train"]
    return {"parameters_per_client": train.numbers_down / max(1, clients)}


def _paper(data: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The published recipe, with the step size that lands on its accuracy (0.001 as printed is too short)."""
    size = {"clients": 100, "batch": 256} if data.startswith("ml-100k") else {"clients": 200, "batch": 512}
    shared = {"dim": 32, "rounds": 400, "rate": 0.0015, "epochs": 5, "negatives": 4, "spread": 0.1}
    published = given.get("noise", "published") == "published"
    noise = {"noise": "published", "epsilon": EPSILON} if published else {}
    return {**shared, **size, **noise, "clip": 1.0, "bit_epsilon": 2.0}


METHODS = {"dp-fedmf": dp_fedmf, "priv-fedmf-sub": priv_fedmf_sub}
PRESETS = {"paper": _paper}
