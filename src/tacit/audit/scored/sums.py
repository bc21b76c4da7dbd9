"""What the server reads from the tail of exact sums."""

import numpy as np

from tacit.audit.evidence import Evidence, Metrics, Skipped, means
from tacit.audit.tail import Exposed, exposed, lonely
from tacit.audit.transcript import Summed
from tacit.types import Index


def sum_tail(evidence: Evidence) -> Metrics | Skipped:
    """A6: people whom rows of their own in a sum give away, and how many of their ratings are right."""
    sums, gradient, scale = evidence.transcript.sums, evidence.gradient, evidence.prior.scale
    if not sums:
        return Skipped("no secure sum of item rows is part of this method")
    if gradient is None or scale is None or evidence.masked:
        return Skipped(
            "rows of the sum are not gradients of ratings from a known scale (masked, or no scale)"
        )
    rows = []
    for summed in sums:
        found = exposed(summed.rows, summed.counts, summed.table, gradient, scale)
        rows.append(_scored(evidence, summed, found, evidence.truth.asked[summed.round]))
    names = ("lonely_items", "people_exposed", "ratings_exposed", "claims", "claims_right")
    scores = means(names, rows)
    claims = scores.pop("claims")
    right = scores.pop("claims_right")
    return {**scores, "claims_right": right / claims if claims else 0.0, "rounds": len(sums)}


def _scored(
    evidence: Evidence, summed: Summed, found: list[Exposed], asked: Index
) -> tuple[float, float, float, float, float]:
    histories = {user: evidence.truth.items(user) for user in asked.tolist()}
    people, ratings, right = set(), 0, 0
    for part in found:
        claimed = part.items[part.found.rated]
        owner = next((user for user, items in histories.items() if np.isin(claimed, items).all()), None)
        if owner is None:
            continue
        true = evidence.truth.ratings(owner)[np.searchsorted(histories[owner], claimed)]
        exact = int((np.abs(part.found.ratings[part.found.rated] - true) < 1e-2).sum())
        if exact == len(claimed):
            people.add(owner)
            right += 1
            ratings += exact
    touched = int((summed.counts > 0.5).sum())
    total = sum(len(items) for items in histories.values())
    return (
        len(lonely(summed.counts)) / max(1, touched),
        len(people) / max(1, len(histories)),
        ratings / max(1, total),
        len(found),
        right,
    )
