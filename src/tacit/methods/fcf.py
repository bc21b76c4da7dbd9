"""FCF and MF-NP: implicit feedback, users in closed form on their devices, item gradients to the server.

Ammad-ud-din, Ivannikova, Khan, Oyomno, Fu, Tan, Flanagan: Federated Collaborative Filtering for
Privacy-Preserving Personalized Recommendation System, 2019.

    server: start V
    for t = 0 .. T-1:
        each client u, with confidences c_ui = 1 + alpha p_ui:
            x_u <- (V^T C_u V + reg I)^-1 V^T C_u p_u                   Eq. 4
            send the gradient -2 c_ui (p_ui - x_u . v_i) x_u, all i     Eq. 5 (f is its descent direction / 2)
        server: V <- V - Adam step on the mean gradient + 2 reg V       Eqs. 6-7

``mf-np`` is the same without confidence weights, with the few factors of FMF-LDP's paper: the non-private
form that private ones are compared with there.

What leaves a device: a number for every item and factor, from which the server reads the user's vector and
the items met. ``upload=compact`` sends the same gradient as its rated rows and the upper half of x x^T (the
sum over clients is exactly that of the dense form), ``upload=dense`` as published. Deviations: one set-up of
Adam at the server for all items; a device computes its vector once more, from the last V, before it is used.
"""

from dataclasses import replace
from typing import Literal

from tacit.account.claim import Observer
from tacit.account.events import Nothing
from tacit.aggregate.item_gradient import ItemGradientMean
from tacit.federation.sampling import Everyone, FixedSize
from tacit.local.als import ClosedFormGradient
from tacit.methods.twins import Twin, alone, central
from tacit.models.implicit_factors import ImplicitFactors
from tacit.protect.protection import none
from tacit.round import Citation, Exchange, Method
from tacit.schedule import Decaying
from tacit.server.adam import Adam
from tacit.settings import Count, CountOrShare, Dim, NonNegative, Positive, Share, checked
from tacit.transport.direct import direct

PAPER = Citation(
    title="Federated Collaborative Filtering for Privacy-Preserving Personalized Recommendation System",
    authors="Ammad-ud-din, Ivannikova, Khan, Oyomno, Fu, Tan, Flanagan",
    year=2019,
    says="user vectors and interactions stay on the device (no claim about the gradients that leave it)",
)
EXPOSES = {
    Observer.SERVER: "one upload reveals the items met and the user's vector exactly",
    Observer.PROXY: Nothing(),
    Observer.PEER: Nothing(),
    Observer.RELEASE: "the model is an exact function of everyone's interactions; no noise is added",
}


@checked
def fcf(
    *,
    dim: Dim = 20,
    rounds: Count = 60,
    alpha: NonNegative = 2.0,
    reg: Positive = 1.0,
    rate: Positive = 0.1,
    decay: Share = 0.97,
    spread: Positive = 0.1,
    clients: CountOrShare = 1.0,
    upload: Literal["compact", "dense"] = "compact",
    twin: Twin = "none",
) -> Method:
    """Implicit factorisation: users in closed form on devices, item gradients and Adam at the server.

    Args:
        dim: Numbers per user and per item.
        rounds: Rounds of training.
        alpha: How much more sure a met item is than an unmet one: confidence ``1 + alpha`` against one.
        reg: Ridge of the users' closed form.
        rate: Adam's first step size at the server.
        decay: What the step size is multiplied by after every round.
        spread: Standard deviation of the first item vectors.
        clients: How many clients are asked each round: a number, or a share of all.
        upload: ``dense``, a number per item and factor; ``compact``, the same gradient in fewer bytes.
        twin: The same model on pooled data (``central``), or every device alone (``local``).

    Example:
        >>> fcf(dim=8).exchanges[0].local
        ClosedFormGradient(alpha=2.0, reg=1.0, upload='compact')
    """
    exchange = Exchange(
        name="train",
        sampling=Everyone() if clients == 1.0 and isinstance(clients, float) else FixedSize(clients),
        downlink=("items",),
        local=ClosedFormGradient(alpha, reg, upload),
        protections=none(),
        transport=direct(),
        aggregator=ItemGradientMean(compact=upload == "compact"),
        exposes=EXPOSES,
    )
    method = Method(
        name="fcf",
        paper=PAPER,
        model=ImplicitFactors(dim, alpha, reg, spread),
        rounds=rounds,
        exchanges=(exchange,),
        server=Adam(Decaying(rate, decay)),
    )
    if twin == "local":
        return alone(method)
    return central(method, exchange) if twin == "central" else method


@checked
def mf_np(
    *,
    dim: Dim = 5,
    rounds: Count = 20,
    alpha: NonNegative = 0.0,
    reg: Positive = 1e-6,
    rate: Positive = 0.1,
    decay: Share = 1.0,
    spread: Positive = 0.1,
    twin: Twin = "none",
) -> Method:
    """FMF-LDP without privacy: the same few factors and rounds, whole gradients, nothing randomised.

    The settings are those of :func:`fcf`, with the few factors and equal confidences of FMF-LDP's paper.

    Example:
        >>> mf_np().model.dim, mf_np().exchanges[0].protections.stages
        (5, ())
    """
    method = fcf(
        dim=dim, rounds=rounds, alpha=alpha, reg=reg, rate=rate, decay=decay, spread=spread, twin=twin
    )
    return replace(method, name="mf-np")


METHODS = {"fcf": fcf, "mf-np": mf_np}
