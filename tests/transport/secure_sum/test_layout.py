"""Updates become vectors and come back as the sum that plain addition gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.aggregate.per_item import PerItemMean
from tacit.errors import TacitError
from tacit.transport.secure_sum.layout import Layout, refuse_points, ring_for
from tacit.types import RankOne, RoundFacts, Rows, Steps

FACTS = RoundFacts(0, "train", 9, 9, 9, {"items": (7, 3)})


def rows_of(seed, clients=4, counted=False):
    generator = np.random.default_rng(seed)
    held = [np.sort(generator.permutation(7)[: generator.integers(0, 6)]) for _ in range(clients)]
    lengths = np.array([len(ids) for ids in held])
    ids = np.concatenate(held).astype(np.int32)
    values = generator.integers(-1000, 1000, (len(ids), 3))
    counts = generator.integers(-2, 3, len(ids)).astype(np.int32) if counted else None
    return Rows(np.cumsum(lengths) - lengths, lengths, ids, values, counts)


@settings(deadline=None)
@given(st.integers(0, 500), st.sampled_from([16, 32, 64]), st.booleans())
def test_the_sum_of_vectors_aggregates_as_the_rows_themselves_do(seed, ring, counted):
    update = {"items": rows_of(seed, counted=counted), "bias": np.arange(8).reshape(4, 2) - 3}
    layout = Layout.of(update, FACTS)
    total = sum(layout.vector(update, client, ring) for client in range(4))
    assert total.dtype.itemsize * 8 == ring
    back = layout.arrays(total)
    assert np.array_equal(back["bias"], update["bias"].sum(axis=0, keepdims=True))
    mean, shared = PerItemMean(), {"items": np.zeros((7, 3))}
    tallies = [mean.start(shared), mean.start(shared)]
    mean.add(tallies[0], update)
    mean.add(tallies[1], back)
    left, right = (mean.total(tally) for tally in tallies)
    assert all(np.array_equal(left[name], right[name]) for name in left)


def test_rows_known_by_their_factors_are_written_out_on_their_grid():
    known = RankOne(
        np.array([2.0, -1.0, 0.5]),
        np.array([[1.0, 3.0, 0.0], [2.0, 0.0, 1.0]]),
        np.ones((7, 3)),
        0.25,
        grid=4,
    )
    rows = Rows(np.array([0, 2]), np.array([2, 1]), np.array([1, 5, 1], "i4"), known)
    layout = Layout.of({"items": rows}, FACTS)
    whole = layout.arrays(layout.vector({"items": rows}, 0, 32))["items"]
    expected = np.zeros((7, 3))
    expected[1] = 16 * (2 * np.array([1.0, 3.0, 0.0]) + 0.25)
    expected[5] = 16 * (-1 * np.array([1.0, 3.0, 0.0]) + 0.25)
    assert np.array_equal(whole.values, expected)
    assert whole.counts.tolist() == [0, 1, 0, 0, 0, 1, 0]


def test_every_vector_has_the_same_length_whatever_was_touched():
    rows = rows_of(3)
    layout = Layout.of({"items": rows}, FACTS)
    assert {len(layout.vector({"items": rows}, client, 32)) for client in range(4)} == {7 * 3 + 7}
    assert (layout.length, layout.table_rows) == (28, 7)


def test_refusals():
    with pytest.raises(TacitError, match="has a point"):
        refuse_points({"w": np.ones((1, 2), dtype=np.float32)})
    with pytest.raises(TacitError, match="how tall"):
        Layout.of({"other": rows_of(1)}, FACTS)


@given(st.integers(1, 10**6), st.floats(1, 1e15))
def test_the_ring_is_the_smallest_that_no_sum_can_leave(clients, largest):
    steps = Steps(1.0, largest)
    try:
        ring = ring_for(steps, clients, 4)
    except TacitError:
        assert clients * largest >= 2.0**63
        return
    assert max(clients * largest, clients) < 2.0 ** (ring - 1)
    assert ring == 16 or max(clients * largest, clients) >= 2.0 ** (ring // 2 - 1)


def test_rotated_noise_needs_fewer_bits_than_its_worst_case():
    steps = Steps(1.0, 1336.0, noise_std=267.0, norm=1343.0, flat=True)
    assert ring_for(steps, 100, 65_536) == 16
    assert ring_for(Steps(1.0, 1336.0, noise_std=267.0), 100, 65_536) == 32
