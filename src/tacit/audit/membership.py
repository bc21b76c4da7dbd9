"""Who took part: read from the released models (A10), and measured with canaries in one run (A11)."""

from typing import Any

from tacit.audit.evidence import Skipped
from tacit.audit.one_run import MOST_EPSILON, Curve, advantage, certified, fitted, found_at, lower_bound
from tacit.audit.retrained import Retrained, retrained, shape_of_updates
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan

FALSE_ALARMS = 0.01


def user_membership(plan: Plan, rounds: int, listener: Listener) -> dict[str, Any] | Skipped:
    """A10: another client with every released model, about people whose histories it knows."""
    shapes = shape_of_updates(plan)
    if isinstance(shapes, Skipped):
        return shapes
    found = retrained(plan, rounds, listener, shapes, canaries=False)
    if isinstance(found, Skipped):
        return found
    metrics = {
        "tpr_at_1_percent": found_at(found.scores, found.there, FALSE_ALARMS),
        "prior_tpr_at_1_percent": FALSE_ALARMS,
        "advantage": advantage(found.scores, found.there),
        "prior_advantage": 0.0,
        **_allowed(found.curve),
        **_bounds(found, plan.delta),
    }
    return _told(metrics, found)


def one_run_canaries(plan: Plan, rounds: int, listener: Listener) -> dict[str, Any] | Skipped:
    """A11: canaries of full length, half of them silent, looked for in the protected totals."""
    shapes = shape_of_updates(plan, whole=True)
    if isinstance(shapes, Skipped):
        return shapes
    found = retrained(plan, rounds, listener, shapes, canaries=True)
    if isinstance(found, Skipped):
        return found
    most = certified(len(found.people), len(found.people), len(found.people), plan.delta)
    metrics = {
        **_bounds(found, plan.delta),
        "largest_certifiable": most,
        "advantage": advantage(found.scores, found.there),
        "prior_advantage": 0.0,
        **_allowed(found.curve),
    }
    return _told(metrics, found)


def _allowed(curve: Curve) -> dict[str, float]:
    """What the accountant allows; nothing where nothing is proved."""
    if not curve.pairs:
        return {}
    return {
        "allowed_tpr_at_1_percent": curve.found_at(FALSE_ALARMS),
        "allowed_advantage": curve.advantage(),
    }


def _bounds(found: Retrained, delta: float) -> dict[str, float]:
    return {
        "epsilon_lower_bound": lower_bound(found.scores, found.there, delta),
        "epsilon_fit": min(MOST_EPSILON, fitted(found.scores, found.there, delta)),
    }


def _told(metrics: dict[str, float], found: Retrained) -> dict[str, Any]:
    """The metrics with the claim of the rounds replayed, and one line if the bound is above it."""
    told: dict[str, Any] = {"metrics": {**metrics, "people": len(found.people), "rounds": found.rounds}}
    claim = found.claimed
    if claim is None or claim.epsilon is None:
        return told
    told["metrics"]["epsilon_claimed"] = claim.epsilon
    bound, fit = metrics["epsilon_lower_bound"], metrics["epsilon_fit"]
    if bound > claim.epsilon:
        told["exceeds"] = (
            f"measured epsilon is at least {bound:.3g} (95 % sure), claimed is {claim.epsilon:.3g} at delta "
            f"{claim.delta:g} against {claim.observer.value} after {found.rounds} rounds"
        )
    elif fit > 2 * claim.epsilon:
        told["suspicious"] = (
            f"the fit says epsilon {fit:.3g} where {claim.epsilon:.3g} is claimed; the certified bound "
            f"{bound:.3g} does not refute it"
        )
    return told
