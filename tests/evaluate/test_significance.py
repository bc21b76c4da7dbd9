import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.evaluate.significance import compare_paired, holm
from tacit.rng import SeededKeys

KEYS = SeededKeys(5)
p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def pair(seed, pairs, shift=0.0):
    generator = np.random.default_rng(seed)
    base = generator.normal(size=pairs)
    return {"base": base, "new": base + shift + generator.normal(size=pairs)}


@given(seed=st.integers(0, 1000), pairs=st.integers(3, 80))
def test_t_and_its_interval_equal_the_paired_t_test(seed, pairs):
    results = pair(seed, pairs, 0.3)
    expected = stats.ttest_rel(results["new"], results["base"])
    found = compare_paired(results, "base", keys=KEYS)[0]
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.difference == pytest.approx(np.mean(results["new"] - results["base"]))


def test_signed_ranks_of_six_rises_is_the_exact_textbook_value():
    """All six differences positive: two of the 64 sign patterns are as extreme."""
    results = {"base": np.zeros(6), "new": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])}
    assert compare_paired(results, "base", keys=KEYS, test="wilcoxon")[0].p_value == pytest.approx(2 / 64)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "bootstrap"])
def test_false_alarms_keep_to_their_rate(test):
    """200 comparisons without a difference: rejections at 5 % stay below the binomial's 1e-6 quantile."""
    rejected = sum(
        compare_paired(pair(seed, 40), "base", keys=KEYS, test=test)[0].p_value < 0.05 for seed in range(200)
    )
    assert rejected <= stats.binom.isf(1e-6, 200, 0.06)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "bootstrap"])
def test_a_plain_difference_is_found(test):
    found = compare_paired(pair(1, 100, shift=1.0), "base", keys=KEYS, test=test)[0]
    assert found.significant(0.001)
    assert found.low < found.difference < found.high
    assert found.low > 0


@pytest.mark.parametrize("test", ["t", "wilcoxon", "bootstrap"])
def test_hits_and_misses_mostly_tied_are_handled(test):
    """Zero differences everywhere but in a few users, as hit rates have."""
    base = np.zeros(200)
    new = base.copy()
    new[:12] = 1
    found = compare_paired({"base": base, "new": new, "same": base}, "base", keys=KEYS, test=test)
    assert found[0].p_value < 0.01
    assert found[1].p_value == 1


def test_a_constant_shift_falls_back_to_signs():
    found = compare_paired({"base": [0.0, 0.0, 0.0], "new": [0.5, 0.5, 0.5]}, "base", keys=KEYS)[0]
    assert found.p_value == 0.25


@given(p_values=p_lists)
def test_holm_lies_between_raw_and_bonferroni_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    for raw, one in zip(p_values, adjusted, strict=True):
        assert raw <= one <= min(1, raw * len(p_values)) + 1e-15
    assert all(np.diff(np.array(adjusted)[np.argsort(p_values, kind="stable")]) >= 0)


@given(p_values=p_lists, level=st.floats(0.001, 0.5))
def test_holm_rejects_exactly_what_its_step_down_procedure_does(p_values, level):
    """Walk up from the smallest p-value and stop at the first above level / remaining."""
    rejected = set()
    for step, index in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[index] * (len(p_values) - step) >= level:
            break
        rejected.add(int(index))
    assert {index for index, p in enumerate(holm(p_values)) if p < level} == rejected


def test_adjusted_values_count_all_comparisons_made():
    results = {"base": np.zeros(20)} | {
        name: np.random.default_rng(seed).normal(0.8, 1, 20) for seed, name in enumerate("abc")
    }
    found = compare_paired(results, "base", keys=KEYS)
    assert tuple(one.adjusted for one in found) == holm([one.p_value for one in found])
    assert [one.method for one in found] == ["a", "b", "c"]


def test_bootstrap_repeats_with_equal_keys():
    first, second = (compare_paired(pair(3, 30, 0.3), "base", keys=KEYS, test="bootstrap") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ({"base": [1, 2], "new": [1, 2, 3]}, "same users"),
        ({"base": [1], "new": [1]}, "too few"),
        ({"base": [1, 2], "new": [1, np.nan]}, "not finite"),
        ({"bas": [1, 2]}, "did you mean 'bas'"),
    ],
)
def test_what_cannot_be_compared_is_refused(results, problem):
    with pytest.raises(TacitError, match=problem):
        compare_paired(results, "base", keys=KEYS)


def test_an_unknown_test_is_refused():
    with pytest.raises(TacitError, match="did you mean 'wilcoxon'"):
        compare_paired(pair(0, 5), "base", keys=KEYS, test="wilcox")
