"""FMF-LDP: implicit feedback where the server sees single randomised bits, shuffled among everybody's.

Minto, Haller, Haddadi, Livshits: Stronger Privacy for Federated Collaborative Filtering with Implicit
Feedback, RecSys 2021; the randomiser after Nguyên, Xiao, Yang, Hui, Shin, Shin, 2016.

    server: start V ~ N(0, spread^2)                                          Algorithm 2, line 1
    for t = 0 .. T-1:
        each client u: x_u in closed form from V                              line 4, Eq. 4
            k times: draw an entry (i, f) of its gradient g = -2 c (p - x.v_i) x_f    lines 5-7, Eqs. 5-6
                send (i, f) and a bit that is one with probability
                (g (e^eps - 1) + e^eps + 1) / (2 e^eps + 2), g projected on [-1, 1]   Algorithm 1
        proxy: split messages into reports, strip senders, shuffle            section 3.1.2
        server: mean over clients of +-B at the entries, a step along it      lines 10-12, Eqs. 8-9

What leaves a device: ``k`` reports of an entry's number and a bit, each sealed to the server, each round.
Only the ``k`` entries are ever computed.

``mode=as-published`` is the recipe that lands on the paper's nine cells, most of it unstated there: the mean
is not divided by k (which estimates k times the gradient), values are not rescaled, 20 steps of plain descent
at 5e-4 along the same aggregate. The default divides by k, stretches values by ``scale`` before they are
projected (and takes that out again), and steps with Adam. ``mechanism=rotated`` clips a person's whole
gradient, turns it by a public random rotation and asks for entries of that: no range is wasted, the wire is
the same. ``mechanism=privunit`` spends a report on ``coordinates`` rotated entries at once (PrivUnitG).
Deviations: the paper's claim "user-level k eps" leaves out the rounds: k eps T is counted here, and what
honest shuffling makes of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.aggregator import Aggregator
from tacit.aggregate.item_gradient import ItemGradientMean
from tacit.aggregate.report_mean import ReportMean
from tacit.aggregate.vector_mean import VectorReportMean
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone
from tacit.ledger.record import Traffic
from tacit.local.als import ClosedFormEntries, ClosedFormGradient
from tacit.methods.twins import Twin, alone, central
from tacit.models.implicit_factors import ImplicitFactors
from tacit.protect.one_bit import OneBit
from tacit.protect.priv_unit import PrivUnit, best_cap, radius
from tacit.protect.protection import Protection, chain
from tacit.round import Citation, Exchange, Method
from tacit.schedule import Decaying
from tacit.server.adam import Adam
from tacit.server.repeated import RepeatedDescent
from tacit.settings import Count, Dim, NonNegative, Positive, checked
from tacit.transport.shuffle_proxy import ShuffleProxy

Mechanism = Literal["auto", "one-bit", "rotated", "privunit"]
PAPER = Citation(
    title="Stronger Privacy for Federated Collaborative Filtering with Implicit Feedback",
    authors="Minto, Haller, Haddadi, Livshits",
    year=2021,
    says="k*epsilon local differential privacy per user (per epoch: the epochs are not counted)",
)
EXPOSES = {
    Observer.SERVER: "reports without a randomiser",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "reports without a randomiser",
}


@dataclass(frozen=True)
class Recipe:
    """What a mode means where nothing else is said."""

    alpha: float
    rate: float
    scale: float
    optimiser: Literal["adam", "descent"]


STEPS_PUBLISHED = 20
PUBLISHED = Recipe(alpha=0.0, rate=5e-4, scale=1.0, optimiser="descent")
CORRECTED = {
    "one-bit": Recipe(alpha=0.0, rate=1.0, scale=3.0, optimiser="descent"),
    "rotated": Recipe(alpha=1.0, rate=1e-2, scale=0.5, optimiser="adam"),
    "privunit": Recipe(alpha=1.0, rate=1e-2, scale=1.0, optimiser="adam"),
}


@checked
def fmf_ldp(
    *,
    dim: Dim = 5,
    rounds: Count = 20,
    epsilon: Positive = 2.5,
    k: Count = 100,
    mode: Literal["corrected", "as-published"] = "corrected",
    mechanism: Mechanism = "auto",
    alpha: NonNegative | None = None,
    reg: Positive = 1e-6,
    rate: Positive | None = None,
    scale: Positive | None = None,
    optimiser: Literal["auto", "adam", "descent"] = "auto",
    clip: Positive = 1.0,
    coordinates: Count = 16,
    spread: Positive = 0.01,
    n_min: Count = 100,
    twin: Twin = "none",
) -> Method:
    """Implicit factorisation from single shuffled one-bit reports under local differential privacy.

    What is ``None`` or ``auto`` is what the mode and mechanism say: see ``PUBLISHED`` and ``CORRECTED``.

    Args:
        dim: Numbers per user and per item.
        rounds: Rounds of training; everybody answers in each.
        epsilon: Local privacy of one report.
        k: Reports of a person in a round; they spend ``k * epsilon``.
        mode: ``corrected``, or ``as-published`` (not divided by ``k``, no rescaling, 20 steps of descent).
        mechanism: ``one-bit``, a bit about an entry; ``rotated``, about an entry of the rotated gradient;
            ``privunit``, a vector about ``coordinates`` such entries.
        alpha: How much more sure a met item is than an unmet one: confidence ``1 + alpha`` against one.
        reg: Ridge of the users' closed form and of the items.
        rate: The server's step size.
        scale: What values are multiplied by before they are projected on the randomiser's range.
        optimiser: The server's step: ``adam``, or plain ``descent``.
        clip: The length a person's whole gradient is clipped to (``rotated`` and ``privunit``).
        coordinates: Entries that one report of ``privunit`` is about.
        spread: Standard deviation of the first item vectors.
        n_min: How many people's reports the proxy waits for.
        twin: The same model on pooled data (``central``), or every device alone (``local``).

    Example:
        >>> fmf_ldp(k=10, epsilon=1.0).exchanges[0].protections.stages
        (OneBit(epsilon=1.0, reports=10, dim=5, rotated=True, scale=0.5),)
        >>> fmf_ldp(mode="as-published").server
        RepeatedDescent(schedule=Decaying(rate=0.0005, decay=1.0), reg=1e-06, steps=20, table='items')
    """
    published = mode == "as-published"
    if mechanism == "auto":
        mechanism = "one-bit" if published else "rotated"
    if published and mechanism != "one-bit":
        raise TacitError(f"mechanism={mechanism} is not in the paper", "use it with mode=corrected")
    recipe = PUBLISHED if published else CORRECTED[mechanism]
    alpha, rate, scale = (
        own if given is None else given
        for given, own in ((alpha, recipe.alpha), (rate, recipe.rate), (scale, recipe.scale))
    )
    guard, aggregator = _randomised(
        mechanism, epsilon, k, dim, scale, clip, coordinates, divide=not published
    )
    exchange = Exchange(
        name="train",
        sampling=Everyone(),
        downlink=("items",),
        local=ClosedFormEntries(alpha, reg, mechanism != "one-bit", clip),
        protections=chain(guard),
        transport=ShuffleProxy(n_min),
        aggregator=aggregator,
        exposes=EXPOSES,
    )
    adam = (recipe.optimiser if optimiser == "auto" else optimiser) == "adam"
    descent = RepeatedDescent(Decaying(rate), reg, STEPS_PUBLISHED if published else 1)
    method = Method(
        name="fmf-ldp",
        paper=PAPER,
        model=ImplicitFactors(dim, alpha, reg, spread),
        rounds=rounds,
        exchanges=(exchange,),
        server=Adam(Decaying(rate), reg) if adam else descent,
        mode="as-published" if published else "accounted",
        published_units=PaperBytes(k),
    )
    method = replace(method, notes=("an interaction counts as one, whatever its rating",))
    if twin == "local":
        return alone(method)
    if twin == "central":
        return central(
            method, replace(exchange, local=ClosedFormGradient(alpha, reg), aggregator=ItemGradientMean())
        )
    return replace(method, notes=(*method.notes, spending(epsilon, k, rounds)))


def spending(epsilon: float, k: int, rounds: int) -> str:
    """What a person's reports cost whoever else may be honest: per report, per round, per run.

    Example:
        >>> spending(2.5, 100, 20)
        'local epsilon at delta 0, whoever colludes: 2.5 per report, 250 per round, 5000 for 20 rounds'
        >>> spending(2.5, 100, 1)
        'local epsilon at delta 0, whoever colludes: 2.5 per report, 250 per round, the only one'
    """
    run = f", {rounds * k * epsilon:g} for {rounds} rounds" if rounds > 1 else ", the only one"
    spent = f"{epsilon:g} per report, {k * epsilon:g} per round{run}"
    return f"local epsilon at delta 0, whoever colludes: {spent}"


@dataclass(frozen=True)
class PaperBytes:
    """The paper's own estimate of a round's traffic: 4 bytes a report, and 4 a number of the item table."""

    k: int

    def __call__(self, by_exchange: Mapping[str, tuple[Traffic, int]]) -> dict[str, float]:
        """Bytes per client and round; what really crossed stands beside, in the traffic."""
        traffic, clients = by_exchange["train"]
        return {"bytes_up": 4.0 * self.k, "bytes_down": 4.0 * traffic.numbers_down / max(1, clients)}


def _randomised(
    mechanism: Mechanism,
    epsilon: float,
    k: int,
    dim: int,
    scale: float,
    clip: float,
    coordinates: int,
    *,
    divide: bool,
) -> tuple[Protection, Aggregator]:
    """The device's half of a mechanism and the server's."""
    if mechanism == "privunit":
        unit = radius(coordinates) / (best_cap(epsilon).gain * scale)
        return PrivUnit(epsilon, k, dim, coordinates, scale), VectorReportMean(k, coordinates, unit, clip)
    rotated = mechanism == "rotated"
    guard = OneBit(epsilon, k, dim, rotated, scale)
    return guard, ReportMean(epsilon, k, scale, divide, rotated, clip)


METHODS = {"fmf-ldp": fmf_ldp}
