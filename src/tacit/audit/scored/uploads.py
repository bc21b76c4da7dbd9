"""What the server reads from single uploads: ratings from one or two, rated items from one or many."""

import numpy as np

from tacit.audit.evidence import Evidence, Metrics, Skipped, means
from tacit.audit.masks import exact_rate
from tacit.audit.rated_set import area_under_curve, from_one_upload, in_common, rated_count
from tacit.audit.reconstruction import one_round, two_rounds
from tacit.audit.truth import agreement

SHOWN_UPLOADS = (1, 2, 3, 5, 10)
NO_SCALE = "ratings here are no levels of a known scale"


def from_one_round(evidence: Evidence) -> Metrics | Skipped:
    """A1: rated items, ratings and vector from everybody's last upload."""
    gradient, scale = evidence.gradient, evidence.prior.scale
    if missing := evidence.without_rows():
        return missing
    if scale is None or gradient is None or evidence.masked:
        return Skipped(NO_SCALE)
    truth, prior, rows = evidence.truth, evidence.prior, []
    for user, sent in evidence.last(1):
        upload = sent[0].upload
        found = one_round(upload, gradient, scale)
        items, ratings = truth.items(user), truth.ratings(user)
        precision, recall, whole = agreement(upload.ids[found.rated], items)
        told = np.full(truth.federation.catalogue, np.inf)
        told[upload.ids[found.rated]] = found.ratings[found.rated]
        exact = float((np.abs(told[items] - ratings) < scale.step / 2).mean())
        error = evidence.vector_error(found.vector, user, sent[0].round)
        guess = exact_rate(prior.means(user)[items], ratings, scale)
        count = len(items)
        usual, _, _ = agreement(_most_popular(prior.popularity(user), count), items)
        rows.append((precision, recall, exact, whole and exact == 1.0, error, usual, guess))
    names = ("precision", "recall", "exact", "people_exact", "vector_error", "prior_precision", "prior_exact")
    middle = float(np.median([row[4] for row in rows]))
    return {**means(names, rows), "vector_error": middle, "people": len(rows)}


def from_two_rounds(evidence: Evidence) -> Metrics | Skipped:
    """A2: ratings that may be any number, from two uploads of the same person."""
    if missing := evidence.without_rows():
        return missing
    if evidence.gradient is None or evidence.masked:
        return Skipped("masked ratings have attacks of their own")
    rows = []
    for user, (first, second) in evidence.last(2):
        prior = evidence.prior.means(user)
        ids, found = two_rounds(
            first.upload, second.upload, evidence.gradient, prior, among=evidence.common(user)
        )
        told = prior.copy()
        told[ids[found.rated]] = found.ratings[found.rated]
        items, ratings = evidence.truth.items(user), evidence.truth.ratings(user)
        misses, guess = np.abs(told[items] - ratings), prior[items] - ratings
        rows.append((misses.max(), misses.max() < 0.05, np.mean(misses**2), np.mean(guess**2)))
    if not rows:
        return Skipped("nobody was asked twice in the rounds replayed; give more --rounds")
    largest, within, ours, theirs = np.array(rows, dtype=np.float64).T
    return {
        "largest_error": float(np.median(largest)),
        "people_within_0.05": float(within.mean()),
        "rmse": float(np.sqrt(ours.mean())),
        "prior_rmse": float(np.sqrt(theirs.mean())),
        "people": len(rows),
    }


def rated_set_from_one_upload(evidence: Evidence) -> Metrics | Skipped:
    """A3: the ids of one upload, blindly and ranked by the items' popularity."""
    supports = evidence.transcript.supports
    if not supports:
        return Skipped(evidence.unseen or "uploads name no items")
    catalogue, prior, rows = evidence.truth.federation.catalogue, evidence.prior, []
    for user, sent in supports.items():
        support, items = sent[-1], evidence.truth.items(user)
        popularity = prior.popularity(user)
        count = rated_count(len(support), evidence.mixing, prior.size, catalogue)
        precision, recall, _ = agreement(from_one_upload(support, popularity, count), items)
        usual, _, _ = agreement(_most_popular(popularity, count), items)
        blind, _, _ = agreement(support, items)
        met, named = np.zeros((2, catalogue), dtype=bool)
        met[items], named[support] = True, True
        # What an upload does not name comes last.
        areas = area_under_curve(popularity + named, met), area_under_curve(popularity, met)
        rows.append((precision, recall, blind, areas[0], usual, areas[1]))
    names = ("precision", "recall", "blind_precision", "auc", "prior_precision", "prior_auc")
    return {**means(names, rows), "people": len(rows)}


def _most_popular(popularity: np.ndarray, count: int) -> np.ndarray:
    return from_one_upload(np.arange(len(popularity), dtype=np.int32), popularity, count)


def rated_set_by_intersection(evidence: Evidence) -> Metrics | Skipped:
    """A4: the ids that all of a person's uploads have in common, after so many uploads."""
    supports = evidence.transcript.supports
    if not supports:
        return Skipped(evidence.unseen or "uploads name no items")
    longest = max(len(sent) for sent in supports.values())
    metrics: dict[str, float] = {}
    for uploads in sorted({*(count for count in SHOWN_UPLOADS if count < longest), longest}):
        rows = []
        for user, sent in supports.items():
            if len(sent) >= uploads:
                items, found = evidence.truth.items(user), in_common(sent[:uploads])
                usual = _most_popular(evidence.prior.popularity(user), len(found))
                rows.append((*agreement(found, items), agreement(usual, items)[0]))
        names = ("precision", "recall", "people_exact", "prior_precision")
        metrics |= means([f"{name}@{uploads}" for name in names], rows)
    return {**metrics, "people": len(supports)}
