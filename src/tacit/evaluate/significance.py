"""Is a difference more than luck? Paired comparisons over users or over seeds.

Pairs are what two methods achieved for the same user (same seed, same candidates) or with the same seed
(means over users). Over users, the question is whether the difference would hold for other users of these two
trained models; over seeds, whether it would hold if both were trained again. Different questions: a claim
about methods needs the second, with at least five seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from tacit.errors import TacitError, nearest
from tacit.rng import Keys

Test = Literal["t", "wilcoxon", "bootstrap"]
Values = NDArray[np.float64]
_TESTS: tuple[Test, ...] = ("t", "wilcoxon", "bootstrap")
_RESAMPLES = 10_000
_CELLS = 1 << 21


@dataclass(frozen=True)
class Comparison:
    """One method against a reference, on pairs.

    ``difference`` is the mean of method minus reference and ``low .. high`` its 95 % confidence interval
    (Student's for ``t`` and ``wilcoxon``, percentiles for ``bootstrap``). ``p_value`` is two-sided;
    ``adjusted`` is the same after Holm's correction for all comparisons made together.

    Example:
        >>> Comparison("a", "b", "t", 20, 0.03, 0.01, 0.05, 0.004, 0.012).significant(0.05)
        True
    """

    method: str
    reference: str
    test: Test
    pairs: int
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float

    def significant(self, level: float = 0.05) -> bool:
        """Whether the adjusted p-value is below the level."""
        return self.adjusted < level


def compare_paired(
    results: Mapping[str, ArrayLike], reference: str, *, keys: Keys, test: Test = "t"
) -> tuple[Comparison, ...]:
    """Compare every method with a reference and correct for the number of comparisons.

    Args:
        results: For each method, one value per user or per seed, in the same order for all.
        reference: The method the others are compared with.
        keys: Draw the bootstrap's samples (unused by the other tests).
        test: Student's paired t, Wilcoxon's signed ranks, or a bootstrap of the mean difference.

    Returns:
        One comparison per other method, in the order given.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> results = {"pop": [0.1, 0.2, 0.1, 0.3, 0.2], "ease": [0.4, 0.5, 0.3, 0.6, 0.6]}
        >>> found = compare_paired(results, "pop", keys=SeededKeys(0))[0]
        >>> round(found.difference, 3), found.significant()
        (0.3, True)
    """
    if reference not in results:
        raise TacitError(f"no results of {reference!r}", nearest(reference, results))
    if test not in _TESTS:
        raise TacitError(f"no test is called {test!r}", nearest(str(test), _TESTS))
    base = _values(reference, results[reference])
    others = {name: _values(name, values) for name, values in results.items() if name != reference}
    for name, values in others.items():
        if values.shape != base.shape:
            raise TacitError(
                f"{len(values)} values of {name!r} against {len(base)} of {reference!r}",
                "compare methods on the same users or the same seeds",
            )
    found = [_compare(name, reference, values - base, test, keys) for name, values in others.items()]
    adjusted = holm([one.p_value for one in found])
    return tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values: comparing them with a level keeps the chance of any false claim below it.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        (0.03, 0.06, 0.06)
    """
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    steps = np.minimum(1.0, raw[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.maximum.accumulate(steps)
    return tuple(float(p) for p in adjusted)


def _values(name: str, values: ArrayLike) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise TacitError(f"too few results of {name!r} to compare", "use at least two users or seeds")
    if not np.isfinite(array).all():
        raise TacitError(
            f"results of {name!r} that are not finite", "leave out runs that diverged, and say so"
        )
    return array


def _compare(method: str, reference: str, differences: Values, test: Test, keys: Keys) -> Comparison:
    mean = float(differences.mean())
    if not np.ptp(differences):
        # Without spread every statistic divides by zero; the sign test still has an answer.
        p = 1.0 if mean == 0 else 2.0 * 0.5 ** len(differences)
        low, high = mean, mean
    elif test == "bootstrap":
        p, low, high = _bootstrap(differences, keys.generator(f"evaluate/bootstrap/{method}"))
    else:
        p = _t(differences) if test == "t" else _signed_ranks(differences)
        low, high = _t_interval(differences)
    return Comparison(method, reference, test, len(differences), mean, low, high, p, p)


def _t(differences: Values) -> float:
    statistic = differences.mean() / (differences.std(ddof=1) / np.sqrt(len(differences)))
    return float(2 * stats.t.sf(abs(statistic), len(differences) - 1))


def _signed_ranks(differences: Values) -> float:
    found: Any = stats.wilcoxon(differences, method="auto")
    return float(found.pvalue)


def _t_interval(differences: Values) -> tuple[float, float]:
    half = stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)


def _bootstrap(differences: Values, generator: np.random.Generator) -> tuple[float, float, float]:
    pairs = len(differences)
    means = np.empty(_RESAMPLES)
    step = max(1, _CELLS // pairs)
    for start in range(0, _RESAMPLES, step):
        size = min(step, _RESAMPLES - start)
        means[start : start + size] = differences[generator.integers(0, pairs, (size, pairs))].mean(axis=1)
    observed = differences.mean()
    extreme = np.count_nonzero(np.abs(means - observed) >= abs(observed))
    low, high = np.quantile(means, [0.025, 0.975])
    return (1 + extreme) / (1 + _RESAMPLES), float(low), float(high)
