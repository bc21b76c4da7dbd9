"""What the server reads from the values of single uploads whose formula it need not know."""

import numpy as np

from tacit.audit.evidence import Evidence, Metrics, Skipped, means
from tacit.audit.rated_set import area_under_curve, from_one_upload, rated_count
from tacit.audit.shared_line import CLEAR, met_scores, parted
from tacit.audit.truth import agreement
from tacit.types import Floats, Index


def rated_set_from_values(evidence: Evidence) -> Metrics | Skipped:
    """A3 with values: the items whose rows stand apart from the others in everybody's last upload."""
    seen = evidence.transcript.values
    if evidence.gradient is not None:
        return Skipped(evidence.unseen or "rows are gradients of ratings, which other attacks solve exactly")
    if not seen:
        return Skipped(evidence.unseen or "uploads hold no numbers that belong to single items")
    catalogue, prior, rows = evidence.truth.federation.catalogue, evidence.prior, []
    for user, tables in seen.items():
        items, popularity = evidence.truth.items(user), prior.popularity(user)
        scores, named = met_scores([(one.items, one.rows) for one in tables], popularity)
        support = np.flatnonzero(named).astype(np.int32)
        usual = rated_count(len(support), evidence.mixing, prior.size, catalogue)
        count = _count(scores[support], usual)
        # What an upload does not name comes last.
        scores[~named] = scores.min() - 1.0
        met = np.zeros(catalogue, dtype=bool)
        met[items] = True
        found = _agreement(support, scores, count, items)
        guess = _agreement(np.arange(catalogue, dtype=np.int32), popularity, count, items)
        rows.append((*found, area_under_curve(scores, met), guess[0], area_under_curve(popularity, met)))
    names = ("precision", "recall", "people_exact", "auc", "prior_precision", "prior_auc")
    return {**means(names, rows), "people": len(rows)}


def _count(scores: Floats, usual: int) -> int:
    """How many were met: all if nothing is mixed in, those that stand apart, else the usual number."""
    if usual >= len(scores):
        return len(scores)
    found, clear = parted(scores)
    return found if clear >= CLEAR else usual


def _agreement(items: Index, scores: Floats, count: int, truth: Index) -> tuple[float, float, bool]:
    return agreement(from_one_upload(items, scores, count), truth)
