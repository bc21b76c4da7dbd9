"""FedMMF: each device fits a model of its own on item features; the federation factorises what is left over.

Yang, Tan, Liu, Fan, Chen, Yang, Chen: Practical and Secure Federated Recommendation with Personalized Masks,
2021 (Algorithm 2).

    each party u: fit f_u on own ratings and public item features            lines 4-6, Eq. 10
        masked rating r_ui <- r_ui - f_u(i)                                  line 7, Eq. 11
    for t = 1 .. T:
        each party u:
            p_u <- p_u - rate * sum over K_u of (reg p_u - e_ui q_i)         lines 19-20, Eq. 7
            send reg q_i - e_ui p_u for i in K_u, with the new p_u           lines 21-22, Eq. 6
        server: q_i <- q_i - rate * secure sum                               lines 14-15
    prediction: p_u . q_i + f_u(i)                                           Eq. 12

What leaves a device: with the secure sum (the default) a masked share of an exact sum, in each round; with
``plain=true`` the gradient rows of the masked ratings with their item ids. The private model never leaves.

Masks do not protect. Two plain uploads give all masked ratings away, and these order and nearly equal the
true ones: a model that predicts well leaves most of a rating over (``tacit reproduce fedmmf/table2``).
Theorem 1 of the paper bounds an error of learning and speaks of no observer. So the plain path is off by
default, and the claim is unbounded on either: an exact sum shows rows that one person added alone.

Deviations: Eq. 7 is printed with the sign reversed; the penalty of private models (unstated) is
``mask_reg * |weights|^2`` beside the sum of squared errors, biases free; either all parties are masked only
or all sum securely (the paper lets each choose, by a test of its mask that it does not define); the sum is
ours, not Fig. 2 (see ``docs/methods/fedmmf.md``). ``mask=user-mean``, ``global-mean`` and ``none`` are
controls that the paper lacks: none is plain factorisation with the same steps, and tuned it beats every mask
on ML-100K.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.common_mean import CommonMean
from tacit.aggregate.per_item import PerItemMean
from tacit.federation.sampling import Everyone
from tacit.local.masked_factors import FitsMask, MaskedGradients, TellsMean
from tacit.methods.twins import NothingArrives, Twin, central
from tacit.models.masked_factorisation import Mask, MaskedFactorisation
from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.models.private import FactorisationMachine, Fitting, Form, Linear, Network, OwnMean
from tacit.models.side_information import item_table
from tacit.protect.grid import Grid
from tacit.protect.protection import Chain, none
from tacit.round import Citation, Exchange, Method, Surroundings
from tacit.schedule import Decaying
from tacit.server.keeping import Keeping
from tacit.server.step import Descent
from tacit.settings import Between, Count, Dim, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct
from tacit.transport.secure_sum.carrier import secure_sum

PAPER = Citation(
    title="Practical and Secure Federated Recommendation with Personalized Masks",
    authors="Yang, Tan, Liu, Fan, Chen, Yang, Chen",
    year=2021,
    says="masked ratings leak no privacy and may be sent in plain text; others sum by secret sharing",
)
EXPOSES = {
    Observer.SERVER: "two uploads reveal all masked ratings exactly, and with them most ratings",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's masked ratings; no noise is added",
}
SILENT: Mapping[Observer, str | Nothing] = {observer: Nothing() for observer in Observer}
# 19 bits hold a gradient's entry: a sum of 4,000 people then fits 32 bits.
GRADIENTS = Grid(bits=14, limit=32.0)
SUMS = Grid(bits=8, limit=2.0**20)
Periods = Annotated[int, Between(1, 50)]


@checked
def fedmmf(
    *,
    order: Literal["one", "two", "high"] = "one",
    mask: Literal["personal", "user-mean", "global-mean", "none"] = "personal",
    mask_reg: Positive = 30.0,
    mask_dim: Dim = 4,
    mask_hidden: Count = 16,
    mask_steps: Count = 150,
    periods: Periods = 5,
    dim: Dim = 20,
    rounds: Count = 150,
    rate: Positive = 0.004,
    decay: Share = 1.0,
    reg: NonNegative = 0.1,
    spread: Positive = 0.1,
    plain: bool = False,
    twin: Twin = "none",
) -> Method:
    """Ratings less a private model of each device on item features, factorised under a secure sum.

    Args:
        order: The private model: linear, factorisation machine, or a network of one hidden layer.
        mask: What is taken off: the private model, or a control (own mean, everybody's mean, nothing).
        mask_reg: The weight of the private model's squared size, beside the sum of squared errors.
        mask_dim: Numbers per feature in the factorisation machine.
        mask_hidden: Units of the network.
        mask_steps: Full steps of its training (the linear one is solved at once).
        periods: Into how many release periods years are cut.
        dim: Numbers per person and per item.
        rounds: Rounds of training.
        rate: The step size of both sides. Gradients are summed over people, so large federations need less.
        decay: What the step size is multiplied by after each round.
        reg: The weight of the squared norms, per rating.
        spread: The standard deviation of the start.
        plain: Send gradients of masked ratings as they are, straight to the server. Not private.
        twin: The same model on pooled data (``central``), or every device alone (``local``).

    Example:
        >>> (
        ...     fedmmf().exchanges[0].transport.delivers.value,
        ...     fedmmf(plain=True).exchanges[0].transport.delivers.value,
        ... )
        ('sum', 'reports')
    """
    form = _form(order, mask_dim, mask_hidden) if mask == "personal" else None
    masked = Mask(
        OwnMean() if mask == "user-mean" else form,
        Fitting(mask_reg, mask_steps),
        common=mask == "global-mean",
    )
    if twin == "local":
        alone = Mask(OwnMean() if masked.form is None else masked.form, masked.fitting)
        return replace(_alone("fedmmf", alone, periods), paper=PAPER)
    schedule = Decaying(rate, decay)
    train = Exchange(
        name="train",
        sampling=Everyone(),
        downlink=("items", "mean") if masked.common else ("items",),
        local=MaskedGradients(dim, schedule, reg, masked),
        protections=none() if plain else Chain((GRADIENTS,)),
        transport=direct() if plain else secure_sum(),
        aggregator=PerItemMean(divide=False),
        exposes=EXPOSES,
    )
    method = Method(
        name="fedmmf",
        paper=PAPER,
        model=MaskedFactorisation(masked, MatrixFactorisation(dim, "normal", spread)),
        rounds=rounds,
        exchanges=(train,),
        server=Keeping(Descent(schedule), "mean"),
        setup=_before(masked, plain=plain),
        predicts_ratings=True,
        settle=Looking(periods) if form is not None else None,
    )
    return replace(central(method, train), setup=method.setup) if twin == "central" else method


def _form(order: str, dim: int, hidden: int) -> Form:
    if order == "one":
        return Linear()
    return FactorisationMachine(dim) if order == "two" else Network(hidden)


def _before(mask: Mask, *, plain: bool) -> tuple[Exchange, ...]:
    """What happens before round 1: private models are fitted in silence, or the common mean is summed."""
    if mask.form is not None:
        return (_silent("fit", mask),)
    if not mask.common:
        return ()
    told = "each person's sum and number of ratings" if plain else "the exact sum of everybody's ratings"
    return (
        Exchange(
            name="mean",
            sampling=Everyone(),
            downlink=(),
            local=TellsMean(),
            protections=none() if plain else Chain((SUMS,)),
            transport=direct() if plain else secure_sum(),
            aggregator=CommonMean(),
            exposes={**EXPOSES, Observer.SERVER: told},
            into="mean",
        ),
    )


def _silent(name: str, mask: Mask) -> Exchange:
    return Exchange(
        name=name,
        sampling=Everyone(),
        downlink=(),
        local=FitsMask(mask),
        protections=none(),
        transport=direct(),
        aggregator=NothingArrives(),
        exposes=SILENT,
        into=name,
    )


@dataclass(frozen=True)
class Looking:
    """Hands the public item features to every place that fits or reads a private model."""

    periods: int

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """The method among these items."""
        model = method.model
        assert isinstance(model, MaskedFactorisation)
        seen = replace(model.mask, table=item_table(around.items, periods=self.periods))

        def looking(exchange: Exchange) -> Exchange:
            local = exchange.local
            if isinstance(local, FitsMask | MaskedGradients):
                return replace(exchange, local=replace(local, mask=seen))
            return exchange

        return replace(
            method,
            model=replace(model, mask=seen),
            setup=tuple(map(looking, method.setup)),
            exchanges=tuple(map(looking, method.exchanges)),
        )


def _alone(name: str, mask: Mask, periods: int) -> Method:
    return Method(
        name=name,
        paper=PAPER,
        model=MaskedFactorisation(mask, None),
        rounds=1,
        exchanges=(_silent("alone", mask),),
        server=Descent(Decaying(1.0)),
        predicts_ratings=True,
        settle=None if isinstance(mask.form, OwnMean) else Looking(periods),
        notes=("every device by itself: its own model on public item features; nothing is sent",),
    )


@checked
def local_lr(*, reg: Positive = 30.0, periods: Periods = 5) -> Method:
    """Every device alone: ridge regression of its owner's ratings on item features.

    Example:
        >>> local_lr().rounds
        1
    """
    return _alone("local-lr", Mask(Linear(), Fitting(reg)), periods)


@checked
def local_fm(*, reg: Positive = 10.0, dim: Dim = 4, steps: Count = 150, periods: Periods = 5) -> Method:
    """Every device alone: a factorisation machine on item features.

    Example:
        >>> local_fm().model.mask.form
        FactorisationMachine(dim=4)
    """
    return _alone("local-fm", Mask(FactorisationMachine(dim), Fitting(reg, steps)), periods)


@checked
def local_nn(*, reg: Positive = 10.0, hidden: Count = 16, steps: Count = 150, periods: Periods = 5) -> Method:
    """Every device alone: a network of one hidden layer on item features.

    Example:
        >>> local_nn().model.mask.form
        Network(hidden=16)
    """
    return _alone("local-nn", Mask(Network(hidden), Fitting(reg, steps)), periods)


def _paper(data: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that land near Table 4 on ML-100K; the paper states none of them."""
    del data
    if given.get("mask") == "none":
        return {"dim": 20, "rate": 0.001, "reg": 0.03, "rounds": 260}
    order = given.get("order", "one")
    return {"dim": 20, "rate": 0.004, "reg": 0.1, "rounds": 100, "mask_reg": 3.0 if order == "one" else 10.0}


METHODS = {"fedmmf": fedmmf, "local-lr": local_lr, "local-fm": local_fm, "local-nn": local_nn}
PRESETS = {"paper": _paper}
