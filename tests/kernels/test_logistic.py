"""Samples are what was asked for and nothing else; training equals the slow loop to the last rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.kernels.logistic import draw_samples, train_epochs
from tacit.rng import SeededKeys
from tacit.testing.reference.dp_sub import local_epochs
from tacit.testing.tiny import tiny_federation


def drawn(seed=0, users=None, **changes):
    federation = tiny_federation(seed=seed)
    cohort = federation.cohort(federation.people if users is None else np.array(users, dtype=np.int32))
    keys = SeededKeys(seed).users(cohort.users, "negatives", 0)
    asked = {"negatives": 3, "epochs": 2, "catalogue": cohort.catalogue, **changes}
    return cohort, draw_samples(cohort.offsets, cohort.items, keys, **asked)


def samples_of(samples, client, epoch):
    """(row, label) in the order of training."""
    first = samples.starts[client] + epoch * samples.room[client]
    mine = slice(first, first + samples.counts[client, epoch])
    rows = samples.touched[samples.touched_starts[client] + samples.slots[mine]]
    return list(zip(rows.tolist(), samples.labels[mine].astype(int).tolist(), strict=True))


@given(seed=st.integers(0, 50), negatives=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_each_epoch_has_every_own_item_once_and_only_unmet_others(seed, negatives):
    cohort, samples = drawn(seed, negatives=negatives)
    for client in range(len(cohort)):
        own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]].tolist()
        for epoch in range(2):
            found = samples_of(samples, client, epoch)
            assert sorted(row for row, label in found if label) == own
            others = [row for row, label in found if not label]
            assert len(others) == negatives * len(own)
            assert not set(others) & set(own)


def test_a_clients_draw_does_not_depend_on_who_else_is_there():
    _, together = drawn()
    for user in (0, 5, 11):
        _, alone = drawn(users=[user])
        for epoch in range(2):
            assert samples_of(together, user, epoch) == samples_of(alone, 0, epoch)


def test_negatives_are_uniform_over_what_was_not_met():
    """Chi-square over the complement of one client; fails a right sampler with probability 1e-5."""
    from scipy import stats

    offsets, items = np.array([0, 2]), np.array([1, 4], dtype=np.int32)
    counts = np.zeros(9)
    for seed in range(400):
        keys = np.array([seed * 7919 + 1], dtype=np.uint64)
        samples = draw_samples(offsets, items, keys, negatives=4, epochs=3, catalogue=9)
        for epoch in range(3):
            for row, label in samples_of(samples, 0, epoch):
                counts[row] += not label
    assert counts[[1, 4]].sum() == 0
    unmet = np.delete(counts, [1, 4])
    assert stats.chisquare(unmet).pvalue > 1e-5


def test_items_that_were_not_received_are_left_out():
    place = np.full(15, -1, dtype=np.int32)
    place[[2, 3, 5, 7, 11]] = np.arange(5)
    cohort, samples = drawn(place=place)
    _, whole = drawn()
    for client in range(len(cohort)):
        expected = [(place[row], label) for row, label in samples_of(whole, client, 0) if place[row] >= 0]
        assert sorted(samples_of(samples, client, 0)) == sorted(expected)


def test_a_pool_restricts_negatives_and_keeps_their_number():
    inside = np.zeros(15, dtype=bool)
    inside[:9] = True
    cohort, samples = drawn(inside=inside)
    for client in range(len(cohort)):
        own = set(cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]].tolist())
        others = [row for row, label in samples_of(samples, client, 0) if not label]
        assert all(row < 9 for row in others)
        assert len(others) == (3 * len(own) if set(range(9)) - own else 0)


@given(seed=st.integers(0, 30), batch=st.integers(1, 40), dim=st.sampled_from([1, 3, 16, 17, 32]))
@settings(max_examples=30, deadline=None)
def test_training_equals_the_slow_loop(seed, batch, dim):
    cohort, samples = drawn(seed, dtype="float64")
    generator = np.random.default_rng(seed)
    factors, table = generator.normal(size=(len(cohort), dim)), generator.normal(size=(cohort.catalogue, dim))
    orders = [[samples_of(samples, client, epoch) for epoch in range(2)] for client in range(len(cohort))]
    done = train_epochs(samples, factors, table, dim, rate=0.3, batch=batch)
    for client, epochs in enumerate(orders):
        slow = local_epochs(factors[client], table, epochs, 0.3, batch)
        np.testing.assert_allclose(done.factors[client], slow.vector, rtol=1e-9, atol=1e-11)
        mine = slice(done.starts[client], done.starts[client] + done.lengths[client])
        gradients = np.zeros_like(table)
        gradients[done.ids[mine]] = done.gradients[mine]
        np.testing.assert_allclose(gradients, (table - slow.rows) / 0.3, rtol=1e-8, atol=1e-10)


def test_single_precision_is_close_to_double():
    cohort, samples = drawn(3)
    _, wide = drawn(3, dtype="float64")
    generator = np.random.default_rng(3)
    factors, table = generator.normal(size=(len(cohort), 32)), generator.normal(size=(cohort.catalogue, 32))
    double = train_epochs(wide, factors, table, 32, rate=0.05, batch=16)
    single = train_epochs(samples, factors.astype("f4"), table.astype("f4"), 32, rate=0.05, batch=16)
    np.testing.assert_allclose(single.gradients, double.gradients, rtol=2e-3, atol=2e-4)


def test_a_client_without_items_keeps_its_vector_and_has_no_rows():
    samples = draw_samples(
        np.array([0, 0]), np.zeros(0, "i4"), np.array([1], "u8"), negatives=4, epochs=2, catalogue=5
    )
    done = train_epochs(samples, np.ones((1, 4), "f4"), np.ones((5, 4), "f4"), 4, rate=0.1, batch=8)
    assert done.lengths.tolist() == [0]
    assert done.factors.tolist() == [[1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epochs": 0}, "epochs"),
        ({"negatives": -1}, "negatives"),
        ({"catalogue": 3}, "outside the catalogue"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change, said):
    with pytest.raises(TacitError, match=said):
        drawn(**change)


def test_types_and_shapes_are_checked():
    _, samples = drawn()
    with pytest.raises(TacitError, match="float64"):
        train_epochs(samples, np.zeros((12, 4)), np.zeros((15, 4)), 4, rate=0.1, batch=8)
    with pytest.raises(TacitError, match="shape"):
        train_epochs(samples, np.zeros((3, 4), "f4"), np.zeros((15, 4), "f4"), 4, rate=0.1, batch=8)
    with pytest.raises(TacitError, match="above zero"):
        train_epochs(samples, np.zeros((12, 4), "f4"), np.zeros((15, 4), "f4"), 4, rate=0.0, batch=8)
