"""PrivRec and DP-PrivRec: a network on public features, meta-learned, with differential privacy for users.

Wang, Yin, Chen, Nguyen, Zhou, Wang: Fast-adapting and Privacy-preserving Federated Recommender System,
arXiv:2104.00919 (VLDB Journal 2021). PrivRec is Algorithm 1, DP-PrivRec Algorithm 2.

    for round = 1 .. E1:                                                             line 2
        server: draw M people, send theta                                            line 3
        each of them: theta_u <- theta                                               line 11
            E2 times: theta_u <- theta_u - rate grad[L(theta_u) + reg/2 |theta_u - theta|^2]   lines 12-17
            send theta_u - theta                                                     lines 18-19
            DP: its norm clipped at S, and one bit: was it within S?                 Alg. 2, lines 21-25
        server: theta <- theta + meta_rate (sum + noise) / M                         line 7; Alg. 2, line 9
            DP: S moves so that a share ``quantile`` is within it                    Alg. 2, lines 10-11
    a device adapts theta to its owner by the same steps before it recommends        section 3.3

What leaves a device: the change of all parameters (never a raw interaction, never the owner's features).
The server can rebuild much from one such change; DP-PrivRec's noise, added by the server, does not protect
against the server itself. Deviations: the loss is taken at theta_u and the proximal term is squared (as
printed, line 14 takes L at theta and an unsquared norm without a gradient at the start); one batch per
epoch, by counts per group of equal items; negatives are unseen items. ``mode=as-published`` of dp-privrec
keeps Algorithm 2's arithmetic step for S, its bit taken after clipping (it is always 1, S only falls) and
its split of the noise; the default takes the bit before, moves S geometrically, splits as Andrew et al.,
draws people by Poisson's rule and keeps the noise inside the learning rate.

Table 1 cannot come from the model described. ML-1M's 3,706 films have 301 sets of genres: whoever sees
genres alone ties whole groups, and ranks them at Hits@10 about .04-.06 (the paper: .160; popularity: .11).
Ties are settled at random here, with worst and best case reported; see ``docs/methods/privrec.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.mean import Mean
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone, FixedSize
from tacit.local.meta import Maml, Reptile
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.methods.privacy_plan import Budget, planned
from tacit.methods.twins import POOLED, NothingArrives, Twin
from tacit.models.counts import Reading
from tacit.models.encoding import encoded
from tacit.models.features import Adapts, FeatureNetwork, layers_of
from tacit.protect.protection import none
from tacit.rng import Keys
from tacit.round import Citation, Exchange, Method, Surroundings
from tacit.server.step import AdamInterpolation, Interpolation, ServerStep
from tacit.settings import (
    Between,
    Count,
    CountOrShare,
    Natural,
    NonNegative,
    Positive,
    Share,
    checked,
)
from tacit.transport.direct import direct
from tacit.types import Array, Cohort

PAPER = Citation(
    title="Fast-adapting and Privacy-preserving Federated Recommender System",
    authors="Wang, Yin, Chen, Nguyen, Zhou, Wang",
    year=2021,
    says="data never leave the device; DP-PrivRec: user-level (epsilon, delta) for the model (Tables 3, 4)",
)
MAML_PAPER = Citation(
    title="Federated Meta-Learning with Fast Convergence and Efficient Communication",
    authors="Chen, Luo, Dong, Li, He",
    year=2018,
    says="data never leave the device",
)
FOFL_PAPER = Citation(
    title="A Simple and Efficient Federated Recommender System (FOFL-SELF in PrivRec's tables)",
    authors="Jalalirad, Scavuzzo, Capota, Sprague",
    year=2019,
    says="data never leave the device",
)
EXPOSES = {
    Observer.SERVER: "the server gets each device's whole change of the model under its sender's name",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's data; no noise is added",
}
COUNTED = (
    "the item feature {!r} adds up everybody's log and is known to all, without noise: no bound covers it"
)
Outer = Literal["plain", "adam"]
Below1 = Annotated[float, Between(0, 0.9999)]


@dataclass(frozen=True)
class Idle(LocalWork):
    """Nothing to do before the method is settled, or on devices that train only when asked to recommend."""

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Nothing."""
        del received, private, cohort, inbox, keys
        return Work({}, {})


@dataclass(frozen=True)
class Recipe:
    """A method's settings that decide the network and its training; complete only among real features."""

    local: Literal["reptile", "maml"]
    shape: Mapping[str, Any]
    descent: Mapping[str, Any]
    tuning: Mapping[str, Any]
    reading: Reading
    adapt: Adapts
    features: Mapping[str, Any]
    draws: Literal["sampled", "expected"] = "sampled"
    budget: Budget | None = None

    def __call__(self, method: Method, around: Surroundings) -> Method:
        """Encode the features, build the network, and plan the noise."""
        from tacit.models.network import Descent, Shape, names  # torch loads on first use

        encoding = encoded(around.items, around.about_people, around.catalogue, **self.features)
        shape = Shape(**self.shape)
        if shape.hidden and not encoding.items:
            if not shape.ids:
                raise TacitError("these data describe no items to the network", "give --set ids=16")
            shape = replace(shape, hidden=())
            method = replace(
                method, notes=(*method.notes, "no item features: items are known by their ids alone")
            )
        tuning = Descent(**self.tuning)
        model = FeatureNetwork(shape, self.reading, tuning, self.adapt, encoding, around.device)
        (exchange,) = method.exchanges
        if exchange.name == "train":
            own = Descent(**self.descent)
            local = Maml(model, own) if self.local == "maml" else Reptile(model, own, self.draws)
            exchange = replace(exchange, local=local, downlink=names(shape, encoding, around.catalogue))
        read = {field.name.removesuffix(".bin") for field in encoding.items}
        told = tuple(COUNTED.format(name) for name in around.items.from_log if name in read)
        method = replace(method, model=model, exchanges=(replace(exchange, assumes=told),))
        return method if self.budget is None else planned(method, self.budget, around)


def _composed(
    name: str, paper: Citation, recipe: Recipe, server: ServerStep, rounds: int, clients: float, twin: Twin
) -> Method:
    """The round that all methods of this family share."""
    budget = recipe.budget if twin == "none" else None
    exchange = Exchange(
        name="train",
        sampling=FixedSize(clients) if budget is None else budget.sampling(),
        downlink=(),
        local=Idle(),
        protections=none(),
        transport=direct(),
        aggregator=Mean(clients),
        exposes=EXPOSES,
    )
    method = Method(
        name=name,
        paper=paper,
        model=FeatureNetwork(None, recipe.reading, None, recipe.adapt),
        rounds=rounds,
        exchanges=(exchange,),
        server=server,
        predicts_ratings=recipe.reading.kind == "ratings",
        settle=replace(recipe, budget=budget),
        mode="accounted" if budget is None else budget.reported_mode(),
    )
    return _twinned(method, twin)


def _twinned(method: Method, twin: Twin) -> Method:
    """The same training where data lie at the server, or every device alone from a random start."""
    (exchange,) = method.exchanges
    if twin == "central":
        note = "central twin (PrivRec-CEN): the same people's tasks, drawn by the server from data it holds"
        return replace(method, exchanges=(replace(exchange, exposes=POOLED),), notes=(*method.notes, note))
    if twin == "local":
        note = "local twin: each device trains the network alone, from the same random start"
        nobody = {observer: Nothing() for observer in Observer}
        alone = replace(
            exchange, name="alone", sampling=Everyone(), aggregator=NothingArrives(), exposes=nobody
        )
        return replace(method, exchanges=(alone,), rounds=1, notes=(*method.notes, note))
    return method


def _features(about_items: str, about_people: str, bins: int, words: int) -> dict[str, Any]:
    return {"of_items": about_items, "of_people": about_people, "bins": bins, "words": words}


def _shape(embedding: int, hidden: str, units: str, head: str, ids: int) -> dict[str, Any]:
    layers = layers_of(hidden)
    if not layers and not ids:
        raise TacitError("a model without a network and without ids", "give --set hidden=64-32 or ids=16")
    return {"embedding": embedding, "hidden": layers, "units": units, "head": head, "ids": ids}


def _server(meta_rate: float, momentum: float, outer: str, decay: float) -> ServerStep:
    return AdamInterpolation(meta_rate, decay) if outer == "adam" else Interpolation(meta_rate, momentum)


def _reading(head: str, negatives: float, liked: float, low: Literal["ignore", "negative"]) -> Reading:
    return Reading("ratings" if head == "linear" else "implicit", negatives, liked, low)


@checked
def privrec(
    *,
    rounds: Count = 100,
    clients: CountOrShare = 100,
    epochs: Count = 5,
    rate: Positive = 0.3,
    reg: NonNegative = 0.01,
    meta_rate: Positive = 0.05,
    outer: Outer = "adam",
    outer_decay: Share = 0.99,
    momentum: Below1 = 0.0,
    embedding: Natural = 0,
    hidden: str = "16-8",
    units: Literal["relu", "sigmoid"] = "relu",
    head: Literal["sigmoid", "linear"] = "sigmoid",
    ids: Natural = 32,
    id_rate: Positive = 0.1,
    own_reg: Positive = 1.0,
    about_items: str = "all",
    about_people: str = "all",
    bins: Natural = 16,
    words: Natural = 0,
    negatives: NonNegative = 20.0,
    liked: float = 0.0,
    low: Literal["ignore", "negative"] = "ignore",
    draws: Literal["sampled", "expected"] = "expected",
    adapt: Adapts = "user",
    tune_steps: Natural = 5,
    tune_rate: Positive = 0.3,
    twin: Twin = "none",
) -> Method:
    """A network on public features, meta-learned by REPTILE and adapted to its owner on each device.

    Example:
        >>> privrec(ids=0, hidden="64-32").name, privrec(twin="central").notes[0][:12]
        ('privrec', 'central twin')
    """
    own = {"reg": reg, "id_rate": id_rate, "own_reg": own_reg}
    recipe = Recipe(
        local="reptile",
        shape=_shape(embedding, hidden, units, head, ids),
        descent={"steps": epochs, "rate": rate, **own},
        tuning={"steps": tune_steps, "rate": tune_rate, **own},
        reading=_reading(head, negatives, liked, low),
        adapt=adapt,
        features=_features(about_items, about_people, bins, words),
        draws=draws,
    )
    return _composed(
        "privrec", PAPER, recipe, _server(meta_rate, momentum, outer, outer_decay), rounds, clients, twin
    )


@checked
def dp_privrec(
    *,
    epsilon: Positive | None = None,
    noise: Positive | None = None,
    clip: Positive = 0.5,
    quantile: Share = 0.5,
    clip_rate: NonNegative = 0.2,
    bit_noise: Positive | None = None,
    sampler: Literal["poisson", "fixed"] = "poisson",
    mode: Literal["corrected", "as-published"] = "corrected",
    z: Positive = 1.0,
    h: Annotated[float, Between(0.001, 0.999)] = 0.7,
    rounds: Count = 100,
    clients: CountOrShare = 300,
    epochs: Count = 20,
    rate: Positive = 1.0,
    reg: NonNegative = 0.01,
    meta_rate: Positive = 1.0,
    momentum: Below1 = 0.0,
    embedding: Natural = 0,
    hidden: str = "16-8",
    units: Literal["relu", "sigmoid"] = "relu",
    about_items: str = "all",
    about_people: str = "all",
    bins: Natural = 16,
    words: Natural = 0,
    negatives: NonNegative = 4.0,
    liked: float = 0.0,
    draws: Literal["sampled", "expected"] = "expected",
    adapt: Adapts = "user",
    tune_steps: Natural = 20,
    tune_rate: Positive = 1.0,
    twin: Twin = "none",
) -> Method:
    """PrivRec with user-level privacy of the model: epsilon 4, or what epsilon and noise say.

    With both, the run ends before its epsilon is exceeded.

    Example:
        >>> private = dp_privrec(epsilon=2, rounds=50, clients=200)
        >>> private.exchanges[0].sampling
        Poisson(amount=200)
    """
    method = privrec(
        rounds=rounds, clients=clients, epochs=epochs, rate=rate, reg=reg, meta_rate=meta_rate,
        momentum=momentum, outer="plain", ids=0, embedding=embedding, hidden=hidden, units=units,
        about_items=about_items, about_people=about_people, bins=bins, words=words, negatives=negatives,
        liked=liked, draws=draws, adapt=adapt, tune_steps=tune_steps, tune_rate=tune_rate,
    )  # fmt: skip
    literal = mode == "as-published"
    budget = Budget(
        clients, clip, quantile, clip_rate, bit_noise, "fixed" if literal else sampler,
        noise=noise, epsilon=epsilon,
        published=(z, h) if literal else None, meta_rate=meta_rate,
    )  # fmt: skip
    assert isinstance(method.settle, Recipe)
    recipe = replace(method.settle, budget=budget)
    return _composed("dp-privrec", PAPER, recipe, Interpolation(meta_rate, momentum), rounds, clients, twin)


@checked
def nn_self(
    *,
    rounds: Count = 300,
    clients: CountOrShare = 30,
    steps: Count = 1,
    rate: Positive = 0.3,
    meta_rate: Positive = 0.3,
    embedding: Natural = 64,
    hidden: str = "64-32-16-8",
    units: Literal["relu", "sigmoid"] = "relu",
    about_items: str = "all",
    about_people: str = "all",
    bins: Natural = 0,
    words: Natural = 0,
    negatives: NonNegative = 4.0,
    liked: float = 0.0,
    adapt: Adapts = "all",
    tune_steps: Natural = 20,
    twin: Twin = "none",
) -> Method:
    """PrivRec's network meta-learned by MAML with second-order gradients (NN-SELF in PrivRec's tables).

    Example:
        >>> nn_self(steps=2).rounds
        300
    """
    recipe = Recipe(
        local="maml",
        shape=_shape(embedding, hidden, units, "sigmoid", 0),
        descent={"steps": steps, "rate": rate},
        tuning={"steps": tune_steps, "rate": rate},
        reading=_reading("sigmoid", negatives, liked, "ignore"),
        adapt=adapt,
        features=_features(about_items, about_people, bins, words),
    )
    return _composed("nn-self", MAML_PAPER, recipe, Interpolation(meta_rate), rounds, clients, twin)


@checked
def fofl_self(
    *,
    rounds: Count = 150,
    clients: CountOrShare = 100,
    epochs: Count = 5,
    ids: Count = 16,
    id_rate: Positive = 0.1,
    own_reg: Positive = 1.0,
    reg: NonNegative = 0.0,
    meta_rate: Positive = 0.05,
    outer: Outer = "adam",
    outer_decay: Share = 0.99,
    negatives: NonNegative = 20.0,
    liked: float = 0.0,
    draws: Literal["sampled", "expected"] = "expected",
    adapt: Adapts = "user",
    tune_steps: Natural = 20,
    twin: Twin = "none",
) -> Method:
    """Matrix factorisation meta-learned by REPTILE, no features (FOFL-SELF in PrivRec's tables).

    Example:
        >>> fofl_self(ids=8).server
        AdamInterpolation(rate=0.05, decay=0.99, first=0.9, second=0.99, tiny=1e-08)
    """
    own = {"reg": reg, "id_rate": id_rate, "own_reg": own_reg, "rate": 1.0}
    recipe = Recipe(
        local="reptile",
        shape=_shape(0, "none", "relu", "sigmoid", ids),
        descent={"steps": epochs, **own},
        tuning={"steps": tune_steps, **own},
        reading=_reading("sigmoid", negatives, liked, "ignore"),
        adapt=adapt,
        features=_features("none", "none", 0, 0),
        draws=draws,
    )
    return _composed(
        "fofl-self", FOFL_PAPER, recipe, _server(meta_rate, 0.0, outer, outer_decay), rounds, clients, twin
    )


def _paper(data: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Section 4.1's network on the features of section 3.2, and section 4.3's noise.

    Unstated in the paper, and chosen here: hidden sizes, step sizes, negatives, the step of the clip norm.
    """
    del given
    frappe = data.startswith("frappe")
    return {
        "about_items": "count+cost" if frappe else "genres", "liked": 0.0 if frappe else 3.0,
        "mode": "as-published", "clip": 35.0 if frappe else 40.0, "quantile": 0.9, "clip_rate": 1.0,
        "bins": 0, "words": 0, "ids": 0, "embedding": 64, "hidden": "64-32-16-8", "rounds": 100,
        "clients": 30, "epochs": 20, "rate": 0.3, "reg": 0.01, "meta_rate": 1.0, "outer": "plain",
        "negatives": 4.0, "adapt": "all", "draws": "sampled", "tune_rate": 0.3, "tune_steps": 20,
    }  # fmt: skip


METHODS = {"privrec": privrec, "dp-privrec": dp_privrec, "nn-self": nn_self, "fofl-self": fofl_self}
PRESETS = {"paper": _paper}
