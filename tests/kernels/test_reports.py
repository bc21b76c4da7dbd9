"""Reported entries are those of the whole gradient; a bit's law is exact; sums and shuffles lose nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.kernels.closed_form import closed_form, shared_gram
from tacit.kernels.reports import add_reports, draw_entries, entry_values, one_bit_reports, shuffled
from tacit.testing.tiny import tiny_federation

EVEN = (np.arange(2**16, dtype=np.uint64) << np.uint64(48)) + np.uint64(2**47)  # one word per 2^-16 of [0, 1)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), dim=st.integers(1, 6), alpha=st.sampled_from([0.0, 2.0]))
def test_entries_equal_the_whole_gradients(seed, dim, alpha):
    federation = tiny_federation(7, 11, seed, silent=1)
    generator = np.random.default_rng(seed)
    table = generator.normal(0, 0.5, (11, dim)).astype(np.float32)
    offsets, items = federation.offsets, federation.items
    x = closed_form(offsets, items, table, shared_gram(table), alpha=alpha, reg=0.5).factors
    entries = generator.integers(0, 11 * dim, (7, 40)).astype(np.uint32)
    found = entry_values(offsets, items, entries, x, table, alpha=alpha)
    for person in range(7):
        p = np.zeros(11)
        p[items[offsets[person] : offsets[person + 1]]] = 1
        whole = -2 * np.outer((1 + alpha * p) * (p - table @ x[person]), x[person])
        np.testing.assert_allclose(found[person], whole.ravel()[entries[person]], rtol=1e-4, atol=1e-5)


def chance(value, epsilon, scale=1.0):
    """The exact probability of a one, from one word per 2^-16."""
    entries = np.zeros((1, len(EVEN)), dtype=np.uint32)
    values = np.full((1, len(EVEN)), value, dtype=np.float32)
    return float(
        (one_bit_reports(EVEN[np.newaxis], entries, values, epsilon=epsilon, scale=scale) & 1).mean()
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 6.0])
def test_no_two_inputs_give_an_output_more_than_e_to_the_epsilon_apart(epsilon):
    """Over the whole range of inputs, projected ones included; attained at the ends."""
    inputs = [-40.0, *np.linspace(-1, 1, 41).tolist(), 40.0]
    ones = np.array([chance(value, epsilon) for value in inputs])
    grain = 2.0**-16
    for probabilities in (ones, 1 - ones):
        ratio = probabilities.max() / probabilities.min()
        assert ratio <= np.exp(epsilon) * (1 + 2 * grain / probabilities.min())
        assert ratio == pytest.approx(np.exp(epsilon), rel=3 * grain / probabilities.min())


@settings(max_examples=25, deadline=None)
@given(value=st.floats(-1, 1), epsilon=st.floats(0.2, 5), scale=st.floats(0.1, 1))
def test_a_bit_is_unbiased(value, epsilon, scale):
    mean = 2 * chance(value, epsilon, scale) - 1
    assert mean / np.tanh(epsilon / 2) / scale == pytest.approx(
        value, abs=2 * 2.0**-15 / np.tanh(epsilon / 2) / scale
    )


def test_entries_are_uniform():
    words = np.random.default_rng(1).integers(0, 2**64, (400, 250), dtype=np.uint64)
    counts = np.bincount(draw_entries(words, 37).ravel(), minlength=37)
    assert stats.chisquare(counts).pvalue > 1e-4


@settings(deadline=None)
@given(codes=st.lists(st.integers(0, 2**32 - 1), max_size=60), entries=st.integers(1, 20))
def test_sums_count_what_names_an_entry_and_refuse_the_rest(codes, entries):
    net = np.zeros(entries, dtype=np.int64)
    refused = add_reports(net, np.array(codes, dtype=np.uint32))
    expected = np.zeros(entries, dtype=np.int64)
    for code in codes:
        if code >> 1 < entries:
            expected[code >> 1] += 1 if code & 1 else -1
    assert net.tolist() == expected.tolist()
    assert refused == sum(code >> 1 >= entries for code in codes)


@settings(deadline=None)
@given(words=st.lists(st.integers(0, 2**32 - 1), max_size=600), seed=st.integers(0, 2**63))
def test_a_shuffle_keeps_every_word(words, seed):
    given_words = np.array(words, dtype=np.uint32)
    assert sorted(shuffled(given_words, seed).tolist()) == sorted(words)


def test_every_order_of_four_words_is_equally_likely():
    words = np.arange(4, dtype=np.uint32)
    seeds = np.random.default_rng(3).integers(0, 2**63, 12_000)
    orders = [tuple(shuffled(words, int(seed)).tolist()) for seed in seeds]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


def test_too_many_entries_are_refused():
    with pytest.raises(TacitError, match="entries"):
        draw_entries(np.zeros((1, 1), dtype=np.uint64), 2**31)
