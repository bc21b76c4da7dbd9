"""Sums of reports are those of slow loops, exactly, in any order and any grouping."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.aggregate.bit_moments import BitMoments
from tacit.aggregate.item_gradient import ItemGradientMean
from tacit.aggregate.report_mean import ReportMean
from tacit.aggregate.vector_moments import VectorMoments
from tacit.kernels.seeded import PER_UNIT, halves
from tacit.protect.randomised_bits import packed_bits
from tacit.types import RoundFacts, Rows


def facts(people):
    return RoundFacts(0, "train", people, people, people)


def summed(aggregator, shared, reports, cuts):
    """What is left of reports that arrive in pieces."""
    tally = aggregator.start(shared)
    for part in np.split(reports, sorted(cuts)):
        if len(part):
            aggregator.add(tally, {"reports": part})
    return aggregator.normalised(aggregator.total(tally), facts(len(reports)))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 99), bits=st.integers(1, 70), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_moments_of_bits(seed, bits, cuts):
    rows = np.random.default_rng(seed).integers(0, 2, (40, bits)).astype(np.uint8)
    found = summed(BitMoments(bits), {}, packed_bits(rows), cuts)
    single = [sum(int(row[i]) for row in rows) for i in range(bits)]
    assert found["single"].tolist() == single
    both = [[sum(int(row[i] & row[j]) for row in rows) for j in range(bits)] for i in range(bits)]
    assert found["pairs"].tolist() == both
    assert found["reports"].tolist() == [40]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 99),
    size=st.integers(1, 9),
    large=st.booleans(),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_moments_of_vectors_are_exact_in_any_order(seed, size, large, cuts):
    """Even where single numbers fill their 16 bits, whose products no single precision holds."""
    generator = np.random.default_rng(seed)
    numbers = generator.normal(0, 120 if large else 3, (60, size))
    steps = np.clip(np.rint(numbers * PER_UNIT), -32767, 32767).astype(np.int64)
    shared, aggregator = {"like": np.zeros(size)}, VectorMoments("like", second=True)
    reports = halves(numbers[:, np.newaxis])
    found = summed(aggregator, shared, reports, cuts)
    other = summed(aggregator, shared, reports[generator.permutation(60)], [])
    assert np.array_equal(found["single"], steps.sum(axis=0) / (60 * PER_UNIT))
    assert np.array_equal(found["pairs"], steps.T @ steps / (60 * PER_UNIT**2))
    assert np.array_equal(found["pairs"], other["pairs"])


def test_words_that_name_no_entry_are_counted_and_left_out():
    aggregator = ReportMean(epsilon=2.0, reports=2)
    tally = aggregator.start({"items": np.zeros((3, 2))})
    aggregator.add(tally, {"reports": np.array([[1, 2 * 6 + 1], [2 * 5, 2**32 - 1]], dtype=np.uint32)})
    assert tally.refused == 2
    assert tally.net.ravel().tolist() == [1, 0, 0, 0, 0, -1]


def test_gradients_written_down_in_two_ways_add_up():
    """Rated rows and ``x x^T`` of some clients, whole tables of others: the sum is that of whole tables."""
    generator = np.random.default_rng(3)
    items, x = (generator.normal(size=(count, 3)) for count in (7, 2))
    rows = generator.normal(size=(3, 3))
    ids, lengths = np.array([1, 4, 4], dtype=np.int32), np.array([2, 1])
    sparse = Rows(np.array([0, 2]), lengths, ids, rows)
    dense = generator.normal(size=(2, 7, 3))
    upper = np.triu_indices(3)
    aggregator = ItemGradientMean()
    tally = aggregator.start({"items": items})
    aggregator.add(tally, {"items": sparse, "gram": x[:, upper[0]] * x[:, upper[1]]})
    aggregator.add(tally, {"items": dense})
    found = aggregator.normalised(aggregator.total(tally), facts(4))["items"]
    expected = dense.sum(axis=0)
    for client in range(2):
        expected += 2 * np.outer(items @ x[client], x[client])
    np.add.at(expected, ids, rows)
    np.testing.assert_allclose(found, expected / 4, atol=1e-6)
