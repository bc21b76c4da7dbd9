"""FedLR, FedFM and FedNN: one model on profiles and item features, trained by everybody's gradients.

The baselines of Yang and others (Practical and Secure Federated Recommendation with Personalized Masks, 2021,
Table 4), which tell what features alone are worth once people share a model:

    server: start theta
    for t = 0 .. T-1:
        each client: send the gradient of its squared errors at theta
        server: Adam step on the mean over people

What leaves a device: the exact gradient of a small model in each round, from which the number and the sum of
its owner's ratings, and much of the profile, can be read off; nothing bounds it.
Deviations: the paper states neither features, optimiser nor sizes. Here: age group, gender and occupation
where the data have them, and the item columns that the private models of ``fedmmf`` see; one gradient per
round. The local twins are ``local-lr``, ``local-fm`` and ``local-nn``, regularised as those are.
"""

from dataclasses import dataclass, replace
from typing import Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.mean import Mean
from tacit.data.interactions import Features
from tacit.federation.sampling import Everyone
from tacit.local.context_gradient import ContextGradient
from tacit.methods.fedmmf import PAPER, Periods, local_fm, local_lr, local_nn
from tacit.methods.twins import Twin, central
from tacit.models.context import Context, ContextModel
from tacit.models.encoding import encoded
from tacit.models.private import FactorisationMachine, Form, Linear, Network
from tacit.models.side_information import item_table
from tacit.protect.protection import none
from tacit.round import Exchange, Method, Surroundings
from tacit.schedule import Decaying
from tacit.server.adam import Adam
from tacit.settings import Count, Dim, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct

EXPOSES = {
    Observer.SERVER: "a small model's gradient gives away the number and sum of the ratings, and the profile",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's ratings; no noise is added",
}
About = Literal["all", "none"]


@checked
def fed_lr(
    *,
    rounds: Count = 200,
    rate: Positive = 0.1,
    decay: Share = 0.98,
    reg: NonNegative = 0.0,
    periods: Periods = 5,
    about: About = "all",
    twin: Twin = "none",
) -> Method:
    """One linear model for everybody on profiles and item features.

    Example:
        >>> fed_lr().rounds
        200
    """
    shared = _method("fed-lr", Linear(), rounds, Decaying(rate, decay), reg, Knowing(periods, about))
    return _twinned(shared, twin, local_lr(periods=periods))


@checked
def fed_fm(
    *,
    dim: Dim = 4,
    rounds: Count = 200,
    rate: Positive = 0.1,
    decay: Share = 0.98,
    reg: NonNegative = 0.0,
    periods: Periods = 5,
    about: About = "all",
    twin: Twin = "none",
) -> Method:
    """One factorisation machine for everybody on profiles and item features.

    Example:
        >>> fed_fm(dim=8).name
        'fed-fm'
    """
    schedule, form = Decaying(rate, decay), FactorisationMachine(dim)
    shared = _method("fed-fm", form, rounds, schedule, reg, Knowing(periods, about))
    return _twinned(shared, twin, local_fm(dim=dim, periods=periods))


@checked
def fed_nn(
    *,
    hidden: Count = 16,
    rounds: Count = 200,
    rate: Positive = 0.1,
    decay: Share = 0.98,
    reg: NonNegative = 0.0,
    periods: Periods = 5,
    about: About = "all",
    twin: Twin = "none",
) -> Method:
    """One network of one hidden layer for everybody on profiles and item features.

    Example:
        >>> fed_nn(hidden=8).exchanges[0].transport.delivers.value
        'reports'
    """
    schedule, form = Decaying(rate, decay), Network(hidden)
    shared = _method("fed-nn", form, rounds, schedule, reg, Knowing(periods, about))
    return _twinned(shared, twin, local_nn(hidden=hidden, periods=periods))


def _method(name: str, form: Form, rounds: int, schedule: Decaying, reg: float, knowing: "Knowing") -> Method:
    context = Context(form)
    exchange = Exchange(
        name="train",
        sampling=Everyone(),
        downlink=("theta",),
        local=ContextGradient(context),
        protections=none(),
        transport=direct(),
        aggregator=Mean(clients=1.0),
        exposes=EXPOSES,
    )
    return Method(
        name=name,
        paper=replace(PAPER, says="a baseline; nothing is claimed"),
        model=ContextModel(context),
        rounds=rounds,
        exchanges=(exchange,),
        server=Adam(schedule, reg=reg, table="theta"),
        predicts_ratings=True,
        settle=knowing,
    )


def _twinned(method: Method, twin: Twin, one: Method) -> Method:
    """On pooled data the same steps are taken; a device alone fits the same form to its owner's ratings."""
    if twin == "central":
        return central(method, method.exchanges[0])
    return replace(one, name=method.name, paper=method.paper) if twin == "local" else method


@dataclass(frozen=True)
class Knowing:
    """Hands out what is publicly known of items, and how profiles are written."""

    periods: int
    about: About

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """The method among these people and items."""
        model = method.model
        assert isinstance(model, ContextModel)
        items = item_table(around.items, periods=self.periods)
        people = encoded(Features(), around.about_people, around.catalogue, of_people=self.about)
        context = replace(model.context, items=items, people=people)
        train = replace(method.exchanges[0], local=ContextGradient(context))
        return replace(method, model=ContextModel(context), exchanges=(train,))


METHODS = {"fed-lr": fed_lr, "fed-fm": fed_fm, "fed-nn": fed_nn}
