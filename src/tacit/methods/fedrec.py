"""FedMF, FedRec and FedRec++: rating prediction where the ratings stay on their devices.

Liang, Pan, Ming: FedRec++: Lossless Federated Recommendation with Explicit Feedback, AAAI 2021
(FedRec: Lin, Liang, Pan, Ming, IEEE Intelligent Systems 2020).

    server: choose denoisers (fedrec++) and start V                                  Algorithm 1, lines 1-2
    for t = 0 .. T-1:
        each ordinary client u, from the same old U_u and V:                         Algorithm 2
            draw |I'_u| = rho |I_u| unrated items                                    line 2
            give them the mean rating, after t_predict their own prediction          lines 3-4, Eq. 1
            U_u <- U_u - rate * mean gradient                                        lines 5-6, Eq. 7
            send e_ui U_u + reg V_i for i in I_u and I'_u to the server              lines 7-10, Eq. 3
            send the rows of I'_u to its denoiser as well (fedrec++)                 line 12, Eq. 8
        each denoiser: send own rated rows minus the rows received                   lines 17-19, Eq. 9
        server: V_i <- V_i - rate * sum / |people behind item i|                     lines 15-18, Eqs. 5-6
        rate <- decay * rate                                                         line 20

What leaves a device: gradient rows with their item ids to the server, each round; filler rows to a peer.
Deviations: V's gradient takes the *old* U (updating U first, as Algorithm 2 is printed, diverges at the
published rate); a denoiser subtracts itself from the counts as it does from the gradients, or |U_i|
would miss the denoisers who rated i; denoisers take part in every round on top of the clients drawn; its
rows travel negated, so the server only ever adds. Fillers protect neither ratings nor the rated set:
one upload gives both away, whatever rho is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.per_item import PerItemMean
from tacit.errors import TacitError
from tacit.federation.federation import Casting
from tacit.federation.sampling import Everyone, FixedSize
from tacit.ledger.record import Traffic
from tacit.local.factor_gradients import Denoising, FactorGradients
from tacit.methods.dp_sub import PRESETS as DP_SUB
from tacit.methods.dp_sub import Recipe, implicit_fedmf
from tacit.methods.twins import Twin, alone, central
from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.protect.grid import Grid
from tacit.protect.protection import Chain
from tacit.protect.pseudo_items import Fillers
from tacit.rng import Keys
from tacit.round import Citation, Exchange, Method
from tacit.schedule import Decaying
from tacit.server.step import Descent
from tacit.settings import (
    Count,
    CountOrShare,
    Dim,
    Natural,
    NonNegative,
    Positive,
    Share,
    checked,
    head_count,
    settings_of,
)
from tacit.transport.direct import direct
from tacit.types import Index

PAPER = Citation(
    title="FedRec++: Lossless Federated Recommendation with Explicit Feedback",
    authors="Liang, Pan, Ming",
    year=2021,
    says="rated items are hidden by fillers; denoisers learn nothing of who sent what, even with the server",
)
EXPOSES = {
    Observer.SERVER: "one upload reveals the ratings, the rated items and the user's vector exactly",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's ratings; no noise is added",
}
GRID_BITS, GRID_LIMIT = 32, 1024.0
PEER = {
    Observer.PEER: "filler rows reveal the sender's vector and mean rating, and repeat bytes of its upload"
}


@checked
def fedrec(
    *,
    dim: Dim = 20,
    rounds: Count = 300,
    rate: Positive = 0.4,
    decay: Share = 0.985,
    reg: NonNegative = 0.04,
    rho: NonNegative = 1.0,
    filling: Literal["average", "hybrid"] = "hybrid",
    t_predict: Natural = 40,
    t_local: Natural = 10,
    fillers: Literal["fresh", "kept"] = "fresh",
    clients: CountOrShare = 1.0,
    init: Literal["uniform", "normal"] = "uniform",
    spread: Positive = 0.005,
    sums: Literal["float", "grid"] = "float",
    precision: Literal["float32", "float64"] = "float32",
    twin: Twin = "none",
) -> Method:
    """Rating prediction with virtual ratings mixed in (FedRec); the fillers cost accuracy.

    Args:
        dim: Numbers per person and per item.
        rounds: Rounds of training.
        rate: The step size of both sides in round 0.
        decay: What the step size is multiplied by after each round.
        reg: The weight of the squared norms.
        rho: Fillers per rated item.
        filling: A filler's rating: the person's mean, or from round ``t_predict`` on a prediction.
        t_predict: The last round with mean filling.
        t_local: Private steps before a prediction fills.
        fillers: Drawn anew in each round (as published), or once and kept.
        clients: How many are asked in a round: a count, or a share with a point.
        init: The shape of the random start.
        spread: The half-width or standard deviation of the start.
        sums: Floats, or whole numbers on a grid of 2^-32 (exact, in any order).
        precision: Of the model's numbers.
        twin: The same model on pooled data (``central``), or every device alone (``local``).

    Example:
        >>> fedrec(rho=3.0, clients=0.6).exchanges[0].protections.stages
        (Fillers(rho=3.0, renew='round'),)
    """
    local = FactorGradients(dim, Decaying(rate, decay), reg, "all", filling, t_predict, t_local)
    ordinary = Exchange(
        name="train",
        sampling=FixedSize(clients),
        downlink=("items",),
        local=local,
        protections=_protections(rho, fillers, sums, GRID_LIMIT),
        transport=direct(),
        aggregator=PerItemMean(),
        exposes=EXPOSES,
    )
    method = Method(
        name="fedrec",
        paper=replace(PAPER, says="rated items are hidden by fillers"),
        model=MatrixFactorisation(dim, init, spread, precision=precision),
        rounds=rounds,
        exchanges=(ordinary,),
        server=Descent(Decaying(rate, decay)),
        predicts_ratings=True,
        published_units=_units,
    )
    return _twinned(method, local, twin)


@checked
def fedmf(
    *,
    feedback: Literal["explicit", "implicit"] = "explicit",
    dim: Dim | None = None,
    rounds: Count | None = None,
    rate: Positive | None = None,
    decay: Share = 0.985,
    reg: NonNegative = 0.04,
    clients: CountOrShare | None = None,
    init: Literal["uniform", "normal"] = "uniform",
    spread: Positive | None = None,
    sums: Literal["float", "grid"] = "float",
    precision: Literal["float32", "float64"] = "float32",
    epochs: Count = 5,
    batch: Count = 512,
    negatives: Natural = 4,
    sends: Literal["touched", "received"] = "touched",
    twin: Twin = "none",
) -> Method:
    """Plain federated matrix factorisation, of ratings or (feedback=implicit) of what was met; no privacy.

    With ratings it is FedRec without fillers, and the settings are those of :func:`fedrec`; ``epochs``,
    ``batch``, ``negatives`` and ``sends`` belong to implicit feedback (see ``dp_sub``), which in turn has no
    decay, reg, init, sums and precision; a setting of the other kind is refused. What is not given follows
    from ``feedback``: dim 20 or 32, rounds 300 or 400, rate 0.4 or 0.0015, all clients or a tenth, spread
    0.005 or 0.1.

    Example:
        >>> fedmf(dim=8).exchanges[0].protections.stages
        ()
        >>> fedmf(feedback="implicit").rounds
        400
    """
    _refuse_idle(
        feedback,
        {"epochs": epochs, "batch": batch, "negatives": negatives, "sends": sends},
        {"decay": decay, "reg": reg, "init": init, "sums": sums, "precision": precision},
    )
    if feedback == "implicit":
        recipe = Recipe(
            dim or 32, rounds or 400, rate or 0.0015, epochs, batch, negatives, clients or 0.1, spread or 0.1,
            twin,
        )  # fmt: skip
        return implicit_fedmf(recipe, sends=sends)
    dim, rounds, rate = dim or 20, rounds or 300, rate or 0.4
    clients, spread = clients or 1.0, spread or 0.005
    method = fedrec(
        dim=dim, rounds=rounds, rate=rate, decay=decay, reg=reg, rho=0.0, clients=clients, init=init,
        spread=spread, sums=sums, precision=precision, twin=twin,
    )  # fmt: skip
    paper = replace(PAPER, says="ratings never leave the device (no claim about the gradients that do)")
    return replace(method, name="fedmf", paper=paper)


def _refuse_idle(feedback: str, of_implicit: Mapping[str, Any], of_explicit: Mapping[str, Any]) -> None:
    """A setting of the other kind of feedback would be silently without effect."""
    other, idle = ("explicit", of_explicit) if feedback == "implicit" else ("implicit", of_implicit)
    for name, value in idle.items():
        if value != settings_of(fedmf)[name].default:
            raise TacitError(
                f"{name} does nothing with feedback={feedback}", f"leave it out, or set feedback={other}"
            )


@checked
def fedrec_plus_plus(
    *,
    dim: Dim = 20,
    rounds: Count = 300,
    rate: Positive = 0.4,
    decay: Share = 0.985,
    reg: NonNegative = 0.04,
    rho: Positive = 1.0,
    filling: Literal["average", "hybrid"] = "hybrid",
    t_predict: Natural = 40,
    t_local: Natural = 10,
    fillers: Literal["fresh", "kept"] = "fresh",
    clients: CountOrShare = 1.0,
    denoisers: CountOrShare = 1,
    init: Literal["uniform", "normal"] = "uniform",
    spread: Positive = 0.005,
    sums: Literal["float", "grid"] = "float",
    precision: Literal["float32", "float64"] = "float32",
    twin: Twin = "none",
) -> Method:
    """FedRec whose fillers are taken out again by denoising clients: as accurate as without fillers.

    The settings are those of :func:`fedrec`; ``denoisers`` says how many people denoise (a count, or a share
    with a point). They take part in every round, on top of ``clients``.

    Example:
        >>> [exchange.part for exchange in fedrec_plus_plus(denoisers=0.25).exchanges]
        ['ordinary', 'denoisers']
    """
    schedule = Decaying(rate, decay)
    local = FactorGradients(dim, schedule, reg, "rated", filling, t_predict, t_local, letters="fillers")
    ordinary = Exchange(
        name="train",
        part="ordinary",
        sampling=FixedSize(clients),
        downlink=("items",),
        local=local,
        protections=_protections(rho, fillers, sums),
        transport=direct(),
        aggregator=PerItemMean(precise=True),
        exposes={**EXPOSES, **PEER},
    )
    denoising = Exchange(
        name="denoise",
        part="denoisers",
        sampling=Everyone(),
        downlink=("items",),
        local=Denoising(replace(local, letters="none"), grid=GRID_BITS if sums == "grid" else 0),
        protections=_protections(0.0, fillers, sums),
        transport=direct(),
        aggregator=PerItemMean(precise=True),
        exposes=EXPOSES,
        reads_letters=True,
    )
    method = Method(
        name="fedrec++",
        paper=PAPER,
        model=MatrixFactorisation(dim, init, spread, precision=precision),
        rounds=rounds,
        exchanges=(ordinary, denoising),
        server=Descent(schedule),
        casting=Denoisers(denoisers),
        predicts_ratings=True,
        published_units=_units,
    )
    return _twinned(method, replace(local, letters="none"), twin)


@dataclass(frozen=True)
class Denoisers:
    """Chooses the denoisers once (Algorithm 1, line 1) and gives each about equally many senders."""

    amount: int | float

    def __call__(self, people: Index, keys: Keys) -> Casting:
        """Who denoises, and to whom each other person's letters go."""
        count = head_count(self.amount, len(people), "denoisers")
        if not 1 <= count < len(people):
            raise TacitError(
                f"denoisers={self.amount} of {len(people)} people",
                "leave at least one denoiser and one ordinary client",
            )
        shuffled = keys.generator("denoisers").permutation(people)
        denoisers, ordinary = shuffled[:count], shuffled[count:]
        peer = np.full(int(people.max()) + 1, -1, dtype=np.int32)
        peer[ordinary] = denoisers[np.arange(len(ordinary)) % count]
        return Casting({"ordinary": np.sort(ordinary), "denoisers": np.sort(denoisers)}, peer)


def _protections(rho: float, fillers: str, sums: str, limit: float | None = None) -> Chain:
    stages = [Fillers(rho, "never" if fillers == "kept" else "round")] if rho > 0 else []
    return Chain((*stages, *([Grid(GRID_BITS, limit)] if sums == "grid" else [])))


def _twinned(method: Method, local: FactorGradients, twin: Twin) -> Method:
    if twin == "none":
        return method
    if twin == "local":
        return alone(method)
    whole = replace(method.exchanges[0], local=replace(local, user_step="rated"))
    return central(method, whole)


def _units(by_exchange: Mapping[str, tuple[Traffic, int]]) -> dict[str, float]:
    """Table 3's cost per iteration, in latent vectors, counted as the paper counts.

    An ordinary client is charged what it sends, to server and peer; a denoiser what it receives and sends;
    in the mean over all clients a denoiser's rows count twice (vector and count) and receiving is free.
    """
    train, ordinary = by_exchange["train"]
    denoise, denoisers = by_exchange.get("denoise", (Traffic(), 0))
    sent = train.rows_up + train.rows_out
    everyone = ordinary + denoisers
    units = {"ordinary_client": sent / ordinary, "client": (sent + 2 * denoise.rows_up) / everyone}
    if denoisers:
        units["denoising_client"] = (denoise.rows_in + denoise.rows_up) / denoisers
    return units


def _paper(data: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The published recipe: accuracy of Table 2. The decaying step starves it; the default does better."""
    if given.get("feedback") == "implicit":
        return DP_SUB["paper"](data, given)
    first = (10, 10) if given.get("rho", 1.0) <= 1 else (5, 15)
    t_predict, t_local = (10, 15) if data.startswith("ml-1m") else first
    shared = {
        "dim": 20,
        "rounds": 100,
        "rate": 0.8,
        "decay": 0.9,
        "reg": 0.001,
        "init": "uniform",
        "spread": 0.005,
    }
    return {**shared, "t_predict": t_predict, "t_local": t_local}


METHODS = {"fedmf": fedmf, "fedrec": fedrec, "fedrec++": fedrec_plus_plus}
PRESETS = {"paper": _paper}
