"""Two methods that ask once: a noisy popularity, and a few noisy directions on top of it.

``ldp-popularity``: each person names ``k`` random items and says of each, by a randomised bit, whether they
met it; through the shuffling proxy, once.

``ldp-spectral``: first each person's whole history as one randomised vector (PrivUnitG), for ``share`` of the
budget: a popularity. Then, for the ``items`` most popular, the difference between the person's history and
that popularity, randomised likewise. From the products of those vectors come a few directions, those that
stand out of the known noise, shrunk by how much noise inflates and tilts them. A device finds its owner's
place along them from its true history and adds that to the noisy popularity, which is all it has for the
other items.

    server: popularity_i <- sqrt(history) / gain times the mean of the vectors; chosen <- the top ones
    server: broadcasts chosen and their popularity; each client sends its randomised difference
    server: C <- covariance of the vectors, whose noise is known
            keep eigenvalues above (1 + sqrt(items / people))^2 of it, undo their inflation and their tilt
            popularity of the chosen <- both estimates, each weighed by the other's noise
    device: z <- (I + L^T Psi^-1 L)^-1 L^T Psi^-1 (x - popularity);  score <- popularity + L z

``mechanism=bits`` asks for ``share`` of the budget as single bits through the proxy, then for one randomised
bit per chosen item: simpler, and far noisier at the same epsilon.

What leaves a device: ``k`` single bits about random items, or two vectors of 16-bit numbers. A person's whole
spending is ``k epsilon`` for the first and ``epsilon`` for the second: neither method comes back for more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.bit_moments import BitMoments
from tacit.aggregate.report_mean import ReportMean
from tacit.aggregate.submodel import ReportedShare
from tacit.aggregate.vector_moments import VectorMoments
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone
from tacit.local.own_bits import OwnBits
from tacit.local.presence import MetBits, MetOrNot, MetVector
from tacit.methods.fmf_ldp import spending
from tacit.methods.twins import Twin, alone, central, pooled
from tacit.models.popularity_and_tastes import PopularityModel
from tacit.protect.one_bit import OneBit
from tacit.protect.priv_unit import PrivUnitVector, best_cap
from tacit.protect.protection import chain, none
from tacit.protect.randomised_bits import RandomisedBits
from tacit.round import Citation, Exchange, Method, Surroundings
from tacit.server.estimates import CountedPopularity, SpectralStep, VectorSpectralStep
from tacit.server.step import ServerStep
from tacit.settings import Count, Positive, Share, checked
from tacit.transport.direct import direct
from tacit.transport.shuffle_proxy import ShuffleProxy

_Survey: TypeAlias = tuple[Exchange, Exchange, ServerStep]
WARNER = Citation(
    title="Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias",
    authors="Warner",
    year=1965,
)
SPIKED = Citation(
    title="Optimal Shrinkage of Eigenvalues in the Spiked Covariance Model",
    authors="Donoho, Gavish, Johnstone",
    year=2018,
)
EXPOSES = {
    Observer.SERVER: "answers without a randomiser",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "answers without a randomiser",
}


def counting(epsilon: float, k: int, n_min: int) -> Exchange:
    """Everybody says of ``k`` random items, by one randomised bit each, whether they met it."""
    return Exchange(
        name="counts",
        into="counts",
        sampling=Everyone(),
        downlink=(),
        local=MetOrNot(),
        protections=chain(OneBit(epsilon, k, dim=1)),
        transport=ShuffleProxy(n_min),
        aggregator=ReportMean(epsilon, k, table="popularity"),
        exposes=EXPOSES,
    )


@checked
def ldp_popularity(
    *, epsilon: Positive = 2.5, k: Count = 100, n_min: Count = 100, twin: Twin = "none"
) -> Method:
    """Popularity from one shuffled survey of randomised bits: k bits of epsilon each, once.

    Args:
        epsilon: Local privacy of one bit.
        k: Bits of a person; they spend ``k * epsilon``.
        n_min: How many people's reports the proxy waits for.
        twin: The popularity in true histories (``central``), or every device alone (``local``).

    Example:
        >>> ldp_popularity(k=20).exchanges[0].protections.stages
        (OneBit(epsilon=2.5, reports=20, dim=1, rotated=False, scale=1.0),)
    """
    method = Method(
        name="ldp-popularity",
        paper=WARNER,
        model=PopularityModel(0),
        rounds=1,
        exchanges=(counting(epsilon, k, n_min),),
        server=CountedPopularity(),
    )
    if twin == "local":
        return alone(method)
    if twin == "central":
        return central(method, _true_counts())
    return replace(method, notes=(spending(epsilon, k, 1),))


def _true_counts() -> Exchange:
    """Everybody says of every item whether they met it: for a server that may know."""
    whole = counting(1.0, 1, 1)
    return pooled(replace(whole, local=OwnBits(), aggregator=ReportedShare("popularity")))


@checked
def ldp_spectral(
    *,
    epsilon: Positive = 250.0,
    share: Share = 0.4,
    items: Count = 1000,
    dim: Count = 8,
    history: Count = 200,
    mechanism: Literal["vector", "bits"] = "vector",
    report: Positive = 2.5,
    n_min: Count = 100,
    twin: Twin = "none",
) -> Method:
    """Popularity and a few directions of taste from two randomised reports; epsilon is a person's total.

    Args:
        epsilon: Local privacy of both reports of a person together.
        share: How much of it goes into the popularity; the rest goes into the directions.
        items: How many of the most popular items directions are sought for.
        dim: How many directions at most.
        history: How many items a history has that fills the first vector's length; longer ones are shrunk.
        mechanism: ``vector``, a randomised vector each time; ``bits``, single bits, then a bit per item.
        report: Local privacy of one of the single bits (``bits`` alone).
        n_min: How many people's reports the proxy waits for (``bits`` alone).
        twin: The same directions from true histories (``central``), or every device alone (``local``).

    Example:
        >>> [exchange.name for exchange in (*ldp_spectral().setup, *ldp_spectral().exchanges)]
        ['histories', 'differences']
    """
    if share >= 1.0:
        raise TacitError(f"share={share} leaves nothing for the directions", "give a share below 1")
    if twin == "central":
        survey = partial(_by_true_bits, dim)
    elif mechanism == "vector":
        survey = partial(_by_vectors, epsilon, share, dim, history)
    else:
        survey = partial(_by_bits, epsilon, share, dim, report, n_min)
    method = Method(
        name="ldp-spectral",
        paper=SPIKED,
        model=PopularityModel(dim, items),
        rounds=1,
        exchanges=(),
        server=CountedPopularity(),
        settle=_Fitted(survey, items),
    )
    method = _surveyed(method, survey, items)
    if twin == "local":
        return alone(method)
    return central(method, method.exchanges[0], method.setup) if twin == "central" else method


@dataclass(frozen=True)
class _Fitted:
    """The method once the catalogue is known: no more items are chosen than there are."""

    survey: Callable[[int], _Survey]
    items: int

    def __call__(self, method: Method, around: Surroundings) -> Method:
        return _surveyed(method, self.survey, min(self.items, around.catalogue))


def _surveyed(method: Method, survey: Callable[[int], _Survey], items: int) -> Method:
    setup, exchange, server = survey(items)
    return replace(method, setup=(setup,), exchanges=(exchange,), server=server)


def _by_vectors(epsilon: float, share: float, dim: int, history: int, items: int) -> _Survey:
    first, second = best_cap(share * epsilon), best_cap((1 - share) * epsilon)
    histories = Exchange(
        name="histories",
        into="histories",
        sampling=Everyone(),
        downlink=(),
        local=MetVector(history),
        protections=chain(PrivUnitVector(share * epsilon)),
        transport=direct(),
        aggregator=VectorMoments("popularity"),
        exposes=EXPOSES,
    )
    differences = replace(
        histories,
        name="differences",
        into="differences",
        downlink=("chosen", "expected"),
        local=MetVector(history, centred=True),
        protections=chain(PrivUnitVector((1 - share) * epsilon)),
        aggregator=VectorMoments("chosen", second=True),
    )
    gains = first.gain, second.gain
    return histories, differences, VectorSpectralStep(gains, second.stretch, history, items, dim)


def _by_bits(epsilon: float, share: float, dim: int, report: float, n_min: int, items: int) -> _Survey:
    k = round(share * epsilon / report)
    if k < 1:
        raise TacitError(
            f"share={share} of epsilon={epsilon} pays for {k} reports of {report}",
            "raise epsilon or lower report",
        )
    bit = (epsilon - k * report) / items
    bits = replace(_bits(items), protections=chain(RandomisedBits(bit, items)))
    return counting(report, k, n_min), bits, SpectralStep(CountedPopularity(items), bit, dim)


def _by_true_bits(dim: int, items: int) -> _Survey:
    server = SpectralStep(CountedPopularity(items), math.inf, dim)
    return _true_counts(), pooled(_bits(items)), server


def _bits(items: int) -> Exchange:
    """Everybody says of each chosen item whether they met it."""
    return Exchange(
        name="bits",
        into="bits",
        sampling=Everyone(),
        downlink=("chosen",),
        local=MetBits(),
        protections=none(),
        transport=direct(),
        aggregator=BitMoments(items),
        exposes=EXPOSES,
    )


METHODS = {"ldp-popularity": ldp_popularity, "ldp-spectral": ldp_spectral}
