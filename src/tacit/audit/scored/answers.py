"""What the server reads from randomised answers about items."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.audit.evidence import Evidence, Metrics, Skipped
from tacit.audit.rated_set import area_under_curve
from tacit.audit.responses import odds
from tacit.audit.transcript import Answers
from tacit.types import Floats


def randomised_response(evidence: Evidence) -> Metrics | Skipped:
    """A9: which items a person has met, from all answers so far, with a flat prior and with popularity."""
    answers = evidence.transcript.answers
    if evidence.epsilon is None or not answers:
        return Skipped("nobody answers with one bit per item here")
    catalogue, prior = evidence.truth.federation.catalogue, evidence.prior
    shape = len(answers), catalogue
    truth = np.zeros(shape, dtype=bool)
    flat, informed, alone = (np.zeros(shape) for _ in range(3))
    base = np.full(catalogue, prior.size / catalogue)
    for place, (user, told) in enumerate(answers.items()):
        truth[place, evidence.truth.items(user)] = True
        alone[place] = prior.popularity(user)
        flat[place] = _believed(told, evidence.epsilon, base)
        informed[place] = _believed(told, evidence.epsilon, alone[place])
    return {
        **_scores("", flat, truth),
        **_scores("popularity_", informed, truth),
        "prior_auc": area_under_curve(alone.ravel(), truth.ravel()),
        "answers": float(np.mean([len(told) for told in answers.values()])),
        "people": len(answers),
    }


def _believed(told: Sequence[Answers], epsilon: float, prior: Floats) -> Floats:
    """Log-odds over the catalogue; items that nobody asked about keep those of the prior."""
    found = odds(np.zeros((0, len(prior)), dtype=np.uint8), epsilon, prior)
    for one in told:
        found[one.items] += odds(one.bits[np.newaxis], epsilon, np.full(len(one.items), 0.5))
    return found


def _scores(name: str, scores: Floats, truth: NDArray[np.bool_]) -> dict[str, float]:
    """Precision and recall where the odds are better than even, and the area under the curve."""
    said = scores > 0
    right = float((said & truth).sum())
    return {
        f"{name}precision": right / max(1.0, float(said.sum())),
        f"{name}recall": right / max(1.0, float(truth.sum())),
        f"{name}auc": area_under_curve(scores.ravel(), truth.ravel()),
    }
