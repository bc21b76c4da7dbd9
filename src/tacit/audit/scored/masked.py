"""What the server reads from masked ratings, after two uploads have given them to it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.audit.evidence import Evidence, Metrics, Skipped, means
from tacit.audit.masks import Masked, exact_rate, guessed, hit_ratio, recovery_rate
from tacit.audit.reconstruction import two_rounds
from tacit.types import Floats

STARS = (1, 2, 3, 4, 5)
TOPS = (0.1, 0.3, 0.5, 0.7, 0.9)


class _Stripped(NamedTuple):
    """One person's masked ratings as the server has them, and the true ones."""

    user: int
    masked: Masked
    truth: Floats


def masked_recovery(evidence: Evidence) -> Metrics | Skipped:
    """A7: ratings from masked ones: rescaled as published, and added to what everybody knows."""
    found = _stripped(evidence)
    scale = evidence.prior.scale
    if isinstance(found, Skipped):
        return found
    if scale is None:
        return Skipped("there is no rating scale")
    rows, prior = [], evidence.prior
    for user, masked, truth in found:
        known, overall = prior.means(user), prior.overall(user)
        rescaled = guessed(masked, "rescaled", truth, known, overall)
        others = [guessed(masked, how, truth, known, overall) for how in ("centred", "item-means")]
        exact = [exact_rate(guess, truth, scale) for guess in (rescaled, *others, known[masked.items])]
        rows.append((*exact, *(recovery_rate(rescaled, truth, stars) for stars in STARS)))
    names = ("exact_rescaled", "exact_centred", "exact_item_means", "prior_exact")
    return {**means((*names, *(f"within_{stars}" for stars in STARS)), rows), "people": len(rows)}


def masked_ranking(evidence: Evidence) -> Metrics | Skipped:
    """A8: the items somebody likes best, by masked rating; chance scores the share asked for."""
    found = _stripped(evidence)
    if isinstance(found, Skipped):
        return found
    rows = [[hit_ratio(masked.values, truth, top) for top in TOPS] for _, masked, truth in found]
    scores = means([f"hits@{top:g}" for top in TOPS], rows)
    return {**scores, **{f"prior_hits@{top:g}": top for top in TOPS}, "people": len(rows)}


def _stripped(evidence: Evidence) -> list[_Stripped] | Skipped:
    if not evidence.masked:
        return Skipped("this method masks no ratings")
    if missing := evidence.without_rows():
        return missing
    found = list(_from_uploads(evidence))
    return found or Skipped("nobody was asked twice in the rounds replayed; give more --rounds")


def _from_uploads(evidence: Evidence) -> Iterator[_Stripped]:
    assert evidence.gradient is not None
    for user, (first, second) in evidence.last(2):
        known = evidence.prior.means(user) - evidence.prior.overall(user)
        ids, found = two_rounds(
            first.upload, second.upload, evidence.gradient, known, among=evidence.common(user)
        )
        items, ratings = evidence.truth.items(user), evidence.truth.ratings(user)
        mine = found.rated & np.isin(ids, items)
        if mine.any():
            places = np.searchsorted(items, ids[mine])
            yield _Stripped(user, Masked(ids[mine], found.ratings[mine]), ratings[places])
