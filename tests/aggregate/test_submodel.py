"""Sums over a part of the model, and FedSubAvg's mean."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.aggregate.submodel import ReportedShare, SubModelSum
from tacit.models.sub_model import Selected
from tacit.schedule import Decaying
from tacit.server.step import Descent
from tacit.server.sub_model import Choosing
from tacit.types import RoundFacts, Rows

FACTS = RoundFacts(0, "train", 9, 4, 4, expected=4)
SHARED = {
    "items": np.arange(12.0).reshape(6, 2),
    "selected": np.array([1, 0, 1, 1, 0, 0], "u1"),
    "w": np.ones(3),
}


def added(aggregator, *updates, shared=SHARED):
    tally = aggregator.start(shared)
    for update in updates:
        aggregator.add(tally, update)
    return aggregator.normalised(aggregator.total(tally), FACTS)


def sparse(*clients):
    """Rows from one dictionary of row to vector per client."""
    lengths = np.array([len(client) for client in clients])
    ids = np.array([row for client in clients for row in client], dtype=np.int32)
    values = np.array([vector for client in clients for vector in client.values()], dtype=np.float64)
    return {"items": Rows(np.cumsum(lengths) - lengths, lengths, ids, values.reshape(len(ids), -1))}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 100), clients=st.integers(1, 6))
def test_fedsubavg_is_the_plain_mean_when_everybody_holds_every_row(seed, clients):
    updates = np.random.default_rng(seed).normal(size=(clients, 3, 2))
    rows = sparse(*[{row: one[row] for row in range(3)} for one in updates])
    facts = RoundFacts(0, "train", 9, clients, clients, expected=clients)
    for update in ({"items": updates}, rows):
        found = {}
        for weights in ("holders", "mean"):
            aggregator = SubModelSum(weights=weights)
            tally = aggregator.start(SHARED)
            aggregator.add(tally, update)
            found[weights] = aggregator.normalised(aggregator.total(tally), facts)["items"]
        np.testing.assert_allclose(found["holders"], found["mean"], rtol=1e-12)
        np.testing.assert_allclose(found["mean"], updates.mean(axis=0), rtol=1e-12)


def test_a_row_of_few_holders_is_not_shrunk_by_the_others():
    update = sparse({0: [4.0, 0.0]}, {0: [2.0, 0.0], 2: [6.0, 3.0]}, {}, {})
    assert added(SubModelSum(weights="holders"), update)["items"].tolist() == [[3, 0], [0, 0], [6, 3]]
    assert added(SubModelSum(weights="mean"), update)["items"].tolist() == [[1.5, 0], [0, 0], [1.5, 0.75]]
    assert added(SubModelSum(), update)["items"].tolist() == [[6, 0], [0, 0], [6, 3]]


@pytest.mark.parametrize("weights", ["sum", "mean", "holders"])
def test_sparse_and_whole_tables_sum_to_the_same(weights):
    update = sparse({0: [1.0, 2.0], 1: [3.0, 4.0]}, {0: [5.0, 6.0], 1: [7.0, 8.0]})
    whole = {"items": np.array([[[1, 2], [3, 4], [0, 0]], [[5, 6], [7, 8], [0, 0]]], float)}
    first, second = (added(SubModelSum(weights=weights), u)["items"][:2] for u in (update, whole))
    assert np.array_equal(first, second)


def test_other_arrays_belong_to_everybody():
    update = {**sparse({0: [1.0, 1.0]}, {}, {}, {}), "w": np.arange(12.0).reshape(4, 3)}
    assert added(SubModelSum(weights="holders"), update)["w"].tolist() == [4.5, 5.5, 6.5]


def test_without_answers_nothing_moves():
    assert not added(SubModelSum())["items"].any()


def test_only_holders_are_counted_so_that_noise_may_follow_the_others():
    """Counts beside a sum would be published without noise: sums and means have none."""
    weights: Any
    for weights, names in (("sum", {"items"}), ("mean", {"items"}), ("holders", {"items", "holders.count"})):
        aggregator = SubModelSum(weights=weights)
        assert set(aggregator.total(aggregator.start(SHARED))) == names


def test_the_server_moves_the_rows_in_play_and_no_others():
    step = Choosing(Descent(Decaying(0.5)), 2.0)
    after, _ = step.step(SHARED, {"round": {"items": np.ones((3, 2))}}, {}, 0)
    moved = (SHARED["items"] - after["items"]).any(axis=1)
    assert moved.tolist() == [True, False, True, True, False, False]


def test_what_is_sent_down_is_the_rows_in_play_and_one_bit_each():
    sent = Selected(("items",), ("w",))(SHARED)
    assert sent["items"].tolist() == [[0, 1], [4, 5], [6, 7]]
    assert np.unpackbits(sent["selected"], count=6).tolist() == [1, 0, 1, 1, 0, 0]
    assert sent["w"] is SHARED["w"]


def test_shares_of_reported_bits():
    aggregator = ReportedShare()
    tally = aggregator.start(SHARED)
    aggregator.add(tally, {"bits": np.packbits([[1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0]], axis=1)})
    aggregator.add(tally, {"bits": np.packbits([[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]], axis=1)})
    assert aggregator.normalised(aggregator.total(tally), FACTS)["bits"].tolist() == [
        0.75,
        0.25,
        0,
        0,
        0,
        0.25,
    ]
