"""The one entry: metrics by name, from a model and a split.

===========================  ======================================================================
name                         meaning
===========================  ======================================================================
``rmse``, ``mae``            errors of predicted ratings, clipped to the scale
``hr@k``                     share of users with at least one held-out item in the first k
``recall@k``                 share of a user's held-out items in the first k, mean over users
``ndcg@k``                   discounted gain over its best attainable, mean over users
``mrr``, ``mrr@k``           one over the rank of the first held-out item (0 beyond k), mean over users
``coverage@k``               share of the catalogue in the first k of some evaluated user
``…[99]``                    the same stem, each held-out item against 99 sampled ones
``…[positives-alone]``       the same stem, each held-out item against all never-met ones
===========================  ======================================================================

Without brackets the whole catalogue minus training and support items is ranked.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Scale
from tacit.errors import TacitError, nearest
from tacit.evaluate.beyond_accuracy import coverage
from tacit.evaluate.held_out import HeldOut, SplitLike, held_out
from tacit.evaluate.null_model import NullAudit
from tacit.evaluate.ranking import hit_rate, ndcg, recall, reciprocal_rank
from tacit.evaluate.ranks import Ranks, Ties, alone_ranks, full_ranks
from tacit.evaluate.ratings import rating_errors
from tacit.evaluate.sampled import sampled_ranks
from tacit.evaluate.scorer import Rater, Scorer
from tacit.rng import Keys
from tacit.types import Index, Long

_FULL, _ALONE = "full", "positives-alone"
_RATING_STEMS = ("rmse", "mae")
_STEMS: Mapping[str, Callable[[Ranks, int], NDArray[np.float64]]] = {
    "hr": hit_rate,
    "recall": recall,
    "ndcg": ndcg,
    "mrr": reciprocal_rank,
}
_EXAMPLES = (
    *_RATING_STEMS,
    *("hr@10", "recall@10", "ndcg@10", "mrr", "mrr@10", "coverage@10"),
    *("hr@10[99]", "ndcg@10[99]", "mrr[99]", "hr@10[positives-alone]", "ndcg@10[positives-alone]"),
)
_PATTERN = re.compile(r"(?P<stem>[a-z]+)(@(?P<k>[1-9]\d*))?(\[(?P<candidates>[1-9]\d*|positives-alone)\])?")
_MANY_TIES = 0.01


@dataclass(frozen=True)
class MetricName:
    """A metric's name, read: what to compute, up to which cut-off, among which candidates.

    ``candidates`` is ``full``, ``positives-alone`` or the number of sampled negatives.

    Example:
        >>> parse_metric("ndcg@10[99]")
        MetricName(text='ndcg@10[99]', stem='ndcg', k=10, candidates='99')
    """

    text: str
    stem: str
    k: int | None
    candidates: str

    @property
    def of_ratings(self) -> bool:
        """Whether it judges predicted ratings rather than an order."""
        return self.stem in _RATING_STEMS


@dataclass(frozen=True)
class PerUser:
    """One value of a metric per evaluated user.

    Where the metric is a mean over ratings rather than over users, ``weights`` says how many ratings of each
    user are behind it.

    Example:
        >>> PerUser(np.array([3], "i4"), np.array([0.5])).values.mean()
        np.float64(0.5)
    """

    users: Index
    values: NDArray[np.float64]
    weights: Long | None = None


@dataclass(frozen=True)
class Evaluation:
    """Metrics by name, what is behind them, and what a reader has to know.

    ``errors`` are standard errors with users as the independent draws, where they exist (not for coverage,
    nor for a single user). ``users`` is how many were evaluated
    on ranking (on ratings, if no ranking metric was asked for). ``ranks`` holds the ranks per candidate rule,
    for results by group.

    Example:
        >>> Evaluation({"hr@10": 0.5}, {}, {}, ("2 users",), 2, {}).metrics["hr@10"]
        0.5
    """

    metrics: Mapping[str, float]
    errors: Mapping[str, float]
    per_user: Mapping[str, PerUser]
    notes: tuple[str, ...]
    users: int
    ranks: Mapping[str, Ranks]


def parse_metric(text: str) -> MetricName:
    """Read a metric's name.

    Args:
        text: As in ``hr@10``, ``mrr``, ``ndcg@10[99]``.

    Returns:
        Its parts; an unknown name is refused with the nearest known one.

    Example:
        >>> parse_metric("hr@10").k
        10
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise _unknown(text)
    stem, candidates = found["stem"], found["candidates"] or _FULL
    k = int(found["k"]) if found["k"] else None
    if stem in _RATING_STEMS:
        valid = k is None and candidates == _FULL
    elif stem == "coverage":
        valid = k is not None and candidates == _FULL
    else:
        valid = stem in _STEMS and (k is not None or stem == "mrr")
    if not valid:
        raise _unknown(text)
    return MetricName(text, stem, k, candidates)


def evaluate(
    scorer: Scorer,
    split: SplitLike,
    *,
    metrics: Sequence[str],
    keys: Keys,
    catalogue: int,
    scale: Scale | None = None,
    ties: Ties = "random",
    relevant_from: float | None = None,
    audit: NullAudit | None = None,
) -> Evaluation:
    """Judge a model on a split.

    Args:
        scorer: The model; for ``rmse`` and ``mae`` it must also predict ratings.
        split: What the model learned from, what a test user showed, and what is held out.
        metrics: Names as in the module's table.
        keys: Settle ties and draw sampled negatives: equal keys give every model the same candidates.
        catalogue: How many items the data set has.
        scale: The rating scale; needed for ``rmse`` and ``mae``.
        ties: How to settle equal scores.
        relevant_from: In ranking, test items rated lower are no positives; by default all are, whatever their
            rating.
        audit: The null-model audit of the training's negatives; a failed one stops the evaluation.

    Returns:
        The metrics in the order asked for.

    Example:
        >>> from types import SimpleNamespace
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> class Rising:
        ...     def scores(self, users):
        ...         return np.tile(np.arange(9, dtype="f4"), (len(users), 1))
        >>> user, one = np.array([0], "i4"), np.ones(1, "f4")
        >>> train, test = Interactions(user, user + 8, one), Interactions(user, user + 6, one)
        >>> split = SimpleNamespace(train=train, test=test, support=None)
        >>> names = ["hr@1", "hr@2", "mrr"]
        >>> dict(evaluate(Rising(), split, metrics=names, keys=SeededKeys(0), catalogue=9).metrics)
        {'hr@1': 0.0, 'hr@2': 1.0, 'mrr': 0.5}
    """
    names = [parse_metric(text) for text in dict.fromkeys(metrics)]
    of_ratings = [name for name in names if name.of_ratings]
    of_order = [name for name in names if not name.of_ratings]
    parts = []
    if of_ratings:
        parts.append(_judge_ratings(scorer, split, of_ratings, scale))
    if of_order:
        if audit is not None:
            audit.require()
        about = [] if audit is None else [audit.summary]
        if relevant_from is not None:
            about.append(f"held-out items rated {relevant_from:g} or higher count as positives")
        held = held_out(split, catalogue, relevant_from=relevant_from)
        judged = _judge_order(scorer, held, of_order, keys, ties)
        parts.append(replace(judged, notes=(*about, *judged.notes)))
    values = {text: value for part in parts for text, value in part.values.items()}
    return Evaluation(
        metrics={name.text: values[name.text].mean for name in names},
        errors={name.text: values[name.text].error for name in names if np.isfinite(values[name.text].error)},
        per_user={text: value.per_user for text, value in values.items() if value.per_user is not None},
        notes=tuple(note for part in parts for note in part.notes),
        users=parts[-1].users if parts else 0,
        ranks={rule: ranks for part in parts for rule, ranks in part.ranks.items()},
    )


@dataclass(frozen=True)
class _Value:
    mean: float
    error: float
    per_user: PerUser | None


@dataclass(frozen=True)
class _Part:
    values: Mapping[str, _Value]
    notes: tuple[str, ...]
    users: int
    ranks: Mapping[str, Ranks]


def _judge_ratings(
    scorer: Scorer, split: SplitLike, names: Sequence[MetricName], scale: Scale | None
) -> _Part:
    asked = " and ".join(name.text for name in names)
    if scale is None:
        raise TacitError(
            f"{asked} without a rating scale", "choose a data set with ratings, or ask for hr@10"
        )
    if not isinstance(scorer, Rater):
        raise TacitError(f"{asked} of a model that predicts no ratings", "ask for hr@10 or ndcg@10")
    found = rating_errors(scorer, split.test, scale)
    values = {
        "rmse": _Value(found.rmse, found.rmse_error, PerUser(found.users, found.rmse_per_user, found.counts)),
        "mae": _Value(found.mae, found.mae_error, PerUser(found.users, found.mae_per_user, found.counts)),
    }
    note = (
        f"{asked}: {int(found.counts.sum())} ratings of {len(found.users)} users, predictions clipped to "
        f"{scale.low:g} .. {scale.high:g}"
    )
    return _Part({name.text: values[name.text] for name in names}, (note,), len(found.users), {})


def _judge_order(scorer: Scorer, held: HeldOut, names: Sequence[MetricName], keys: Keys, ties: Ties) -> _Part:
    if not len(held.users):
        raise TacitError("no user has a new item in the test part", "choose a split that holds items out")
    notes = [f"{len(held.users)} users with {len(held.positives.items)} held-out items"]
    if held.repeated:
        notes.append(f"{held.repeated} test pairs left out: the user had met the item before")
    values: dict[str, _Value] = {}
    ranks: dict[str, Ranks] = {}
    for rule in dict.fromkeys(name.candidates for name in names):
        ours = [name for name in names if name.candidates == rule]
        found = _ranked(scorer, held, rule, keys, max(_depth(name) for name in ours))
        ranks[rule] = found.settled(ties)
        values |= {name.text: _value(ranks[rule], name) for name in ours}
        notes += [*_about_candidates(found, rule), *_about_ties(found, ours, ties)]
    return _Part(values, tuple(notes), len(held.users), ranks)


def _ranked(scorer: Scorer, held: HeldOut, rule: str, keys: Keys, depth: int) -> Ranks:
    if rule == _FULL:
        return full_ranks(scorer, held, keys=keys, depth=min(depth, held.catalogue))
    if rule == _ALONE:
        return alone_ranks(scorer, held, keys=keys)
    return sampled_ranks(scorer, held, negatives=int(rule), keys=keys)


def _depth(name: MetricName) -> int:
    return name.k or 0 if name.stem == "coverage" else 0


def _value(ranks: Ranks, name: MetricName) -> _Value:
    k = ranks.catalogue if name.k is None else min(name.k, ranks.catalogue)
    if name.stem == "coverage":
        return _Value(coverage(ranks, k), float("nan"), None)
    values = _STEMS[name.stem](ranks, k)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return _Value(float(values.mean()), float(error), PerUser(ranks.users, values))


def _about_candidates(found: Ranks, rule: str) -> list[str]:
    if rule == _FULL:
        return ["full ranking: the catalogue minus training and support items"]
    if rule == _ALONE:
        return [f"[{_ALONE}]: each held-out item against the items its user never met in any part"]
    few = int(np.count_nonzero(found.among <= int(rule)))
    note = f"[{rule}]: sampled metrics, {rule} negatives per held-out item from outside training and support"
    return (
        [note, f"{few} held-out items had fewer candidates than {rule} and faced them all"] if few else [note]
    )


def _about_ties(found: Ranks, names: Sequence[MetricName], ties: Ties) -> list[str]:
    share = float(found.tied.mean())
    first = next((name for name in names if name.stem != "coverage"), None)
    if share < _MANY_TIES or first is None:
        return []
    worst, best = (_value(found.settled(way), first).mean for way in ("worst", "best"))
    return [
        f"{share:.1%} of held-out items tie with other candidates, settled as: {ties}; "
        f"{first.text} is {worst:.4f} at worst and {best:.4f} at best"
    ]


def _unknown(text: str) -> TacitError:
    return TacitError(f"no metric is called {text!r}", nearest(text, _EXAMPLES))
