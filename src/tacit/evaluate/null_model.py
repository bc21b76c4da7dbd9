"""The null-model audit: do the negatives drawn in training give the held-out items away?

A counter without any model scores an item by ``-(times it was drawn as this user's negative)``. When
negatives come from the complement of the user's *training* items, held-out items are drawn like all other
unseen ones and the counter ranks them at chance. When they come from the complement of *all* interactions,
held-out items are never drawn, the counter puts them first, and any model with memory per user and item can
do the same. The audit runs before a ranking number of a trained model is believed.

The test. One held-out item per user is drawn at random, and ties are settled at random. If draws are
uniform over unseen items and independent between users, its rank is uniform on ``1 .. n`` (``n`` candidates)
whatever the number of draws. Two one-sided tests look for ranks that are too good: the sum of ``rank / n``
over users against its normal limit (sums of uniforms have lighter tails than the normal), and the number of
hits in the first k against a binomial with the mean chance (Hoeffding, 1956: its upper tail is the heavier).
The p-value is twice the smaller, so a clean sampler fails with probability at most ``false_alarm``.

What it assumes: draws uniform over the items unseen in training. A sampler that avoids popular items on
purpose would beat chance without a leak; one that prefers them only loses power.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from tacit.errors import TacitError
from tacit.evaluate.held_out import HeldOut, SplitLike, held_out, one_each
from tacit.evaluate.ranks import Ranks, full_ranks
from tacit.evaluate.sampled import sampled_ranks
from tacit.rng import Keys
from tacit.types import Index, Long

FALSE_ALARM = 1e-4


@dataclass(frozen=True)
class NullAudit:
    """What the counter achieved, what chance achieves, and the verdict.

    ``observed`` and ``chance`` are hit rates at ``k``; ``mean_place`` is the mean of
    ``(rank - 1/2) / candidates``, one half by chance. Where nothing could be audited, ``reason`` says why
    and nothing else is set.

    Example:
        >>> not_applicable("fcf draws no negatives").summary
        'null-model audit not applicable: fcf draws no negatives'
    """

    metric: str
    observed: float
    chance: float
    mean_place: float
    p_value: float
    users: int
    false_alarm: float
    reason: str | None = None

    @property
    def applicable(self) -> bool:
        """Whether there were draws to audit."""
        return self.reason is None

    @property
    def passed(self) -> bool:
        """False when a leak was found; True when none was, or where there was nothing to audit."""
        return not self.applicable or self.p_value >= self.false_alarm

    @property
    def summary(self) -> str:
        """One line for a report."""
        if not self.applicable:
            return f"null-model audit not applicable: {self.reason}"
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"null-model audit {verdict}: {self.metric} {self.observed:.4f} against {self.chance:.4f} "
            f"by chance, p = {self.p_value:.2g} over {self.users} users (false alarms: {self.false_alarm:g})"
        )

    def require(self) -> None:
        """Refuse to go on when a leak was found."""
        if not self.passed:
            raise TacitError(
                f"the negatives drawn in training give the held-out items away ({self.summary})",
                "draw negatives from the complement of the training items only",
            )


def not_applicable(reason: str) -> NullAudit:
    """The audit of a method that draws no negatives.

    Example:
        >>> not_applicable("closed form, no negatives").passed
        True
    """
    nan = float("nan")
    return NullAudit("", nan, nan, nan, nan, 0, FALSE_ALARM, reason)


def null_audit(
    drawn: sparse.csr_array,
    split: SplitLike,
    *,
    keys: Keys,
    negatives: int | None = None,
    k: int = 10,
    false_alarm: float = FALSE_ALARM,
) -> NullAudit:
    """Audit the negatives drawn in training.

    Args:
        drawn: Users x catalogue, how often each item was drawn as a negative of each user.
        split: The split the method was trained and is judged on.
        keys: Choose the held-out items and settle ties.
        negatives: Audit the sampled protocol with so many negatives; the full one by default.
        k: The cut-off of the reported hit rate.
        false_alarm: The largest probability to fail a clean sampler.

    Returns:
        The verdict; users for whom nothing was drawn do not count.

    Example:
        >>> from types import SimpleNamespace
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> people, ones = np.arange(40, dtype="i4"), np.ones(40, "f4")
        >>> train = Interactions(people, np.zeros(40, "i4"), ones)
        >>> test = Interactions(people, 1 + people % 9, ones)
        >>> split = SimpleNamespace(train=train, test=test, support=None)
        >>> counts = np.full((40, 10), 3)
        >>> counts[people, test.items] = 0  # the leak: held-out items are never drawn
        >>> null_audit(sparse.csr_array(counts), split, keys=SeededKeys(0), k=1).passed
        False
    """
    if drawn.ndim != 2 or not 0 < false_alarm < 1:
        raise TacitError("a malformed audit", "give users x items counts and a false-alarm rate in (0, 1)")
    _, catalogue = _shape(drawn)
    held = _drawn_for(held_out(split, catalogue), drawn)
    if not len(held.users):
        return not_applicable("no negative was drawn for any user with held-out items")
    single = one_each(held, keys.generator("evaluate/null model"))
    counter = _Counter(drawn)
    if negatives is None:
        ranks, name = full_ranks(counter, single, keys=keys), f"hr@{k}"
    else:
        ranks, name = sampled_ranks(counter, single, negatives=negatives, keys=keys), f"hr@{k}[{negatives}]"
    hits = ranks.ranks <= k
    chances = np.minimum(k, ranks.among) / ranks.among
    return NullAudit(
        metric=name,
        observed=float(hits.mean()),
        chance=float(chances.mean()),
        mean_place=float(_places(ranks).mean()),
        p_value=min(1.0, 2 * min(_rank_p(ranks), _hit_p(int(hits.sum()), chances))),
        users=len(hits),
        false_alarm=false_alarm,
    )


@dataclass(frozen=True)
class _Counter:
    drawn: sparse.csr_array

    def scores(self, users: Index) -> NDArray[np.float32]:
        rows: Any = self.drawn[users]
        return -rows.toarray().astype(np.float32)


def _shape(drawn: sparse.csr_array) -> tuple[int, int]:
    shape: Any = drawn.shape
    return shape


def _drawn_for(held: HeldOut, drawn: sparse.csr_array) -> HeldOut:
    people, _ = _shape(drawn)
    if len(held.users) and int(held.users[-1]) >= people:
        raise TacitError(
            f"drawn negatives for {people} users, but user {int(held.users[-1])} is tested",
            "count draws in a matrix of users x items of the whole data set",
        )
    totals: Long = np.asarray(drawn.sum(axis=1)).ravel()
    return held.keeping(totals[held.users] > 0)


def _places(ranks: Ranks) -> NDArray[np.float64]:
    return (ranks.ranks - 0.5) / ranks.among


def _rank_p(ranks: Ranks) -> float:
    # rank uniform on 1..n: (rank - 1/2) / n has mean 1/2 and variance (1 - 1/n^2) / 12
    variance = ((1 - 1 / ranks.among.astype(np.float64) ** 2) / 12).sum()
    if variance == 0:
        return 1.0
    return float(stats.norm.cdf((_places(ranks) - 0.5).sum() / np.sqrt(variance)))


def _hit_p(hits: int, chances: NDArray[np.float64]) -> float:
    expected = chances.sum()
    # Hoeffding's comparison of the tails holds from one above the mean onwards.
    return 1.0 if hits < expected + 1 else float(stats.binom.sf(hits - 1, len(chances), chances.mean()))
