"""Ledgers add up what exchanges report, only grow, and compose claims over the whole run."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.claim import Adjacency, Bound, Claim, Observer, Unit
from tacit.account.events import Gaussian, Nothing, Poisson, PureLocal, RandomisedResponse, Sampled
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.record import ExchangeRecord, Traffic
from tacit.ledger.traffic import TrafficLedger
from tacit.types import RoundFacts

RO = Adjacency.REPLACE_ONE
COUNTS = st.builds(Traffic, *[st.integers(0, 10**9)] * 7)


def record(traffic, round=0, exchange="train", answered=5, claim=None):
    facts = RoundFacts(round, exchange, 10, 6, answered)
    return ExchangeRecord(facts, claim or Claim.unbounded("raw"), traffic, {"loss": 1.5})


@given(COUNTS, COUNTS)
def test_traffic_adds_field_by_field(left, right):
    both = left + right
    for name in ("up", "down", "letters_out", "letters_in", "rows_up", "rows_out", "rows_in"):
        assert getattr(both, name) == getattr(left, name) + getattr(right, name)
    assert both.total == left.total + right.total
    assert left.total == left.up + left.down + left.letters_out + left.letters_in


@given(st.lists(st.tuples(COUNTS, st.integers(-1, 5), st.integers(1, 9)), min_size=1, max_size=8))
def test_the_traffic_ledger_only_grows_and_totals_everything(entries):
    ledger, before = TrafficLedger(), 0
    for traffic, round, answered in entries:
        ledger.add(record(traffic, round, answered=answered))
        total = ledger.summary()["total_bytes"]
        assert total == before + traffic.total
        before = total


def test_set_up_counts_apart_from_rounds():
    ledger = TrafficLedger()
    ledger.add(record(Traffic(up=100), round=-1, answered=10))
    ledger.add(record(Traffic(up=30, down=50, letters_out=20), round=0, answered=5))
    summary = ledger.summary()
    assert summary["setup_bytes_per_client"] == 10
    assert summary["up_bytes_per_client_round"] == 10
    assert summary["down_bytes_per_client_round"] == 10


def test_a_record_survives_json():
    claim = (
        Claim.unbounded("raw")
        .with_bound(Bound(2, 1.0))
        .with_event(Observer.RELEASE, Gaussian(2.0, 1.0), ("x",))
    )
    line = record(Traffic(up=3, rows_in=9), 7, "denoise", claim=claim)
    assert ExchangeRecord.from_json(json.loads(json.dumps(line.to_json()))) == line


def guarantee(ledger, observer) -> Any:
    return next((line for line in ledger.guarantees() if line.observer is observer), None)


def test_silence_means_unbounded_and_nothing_means_nothing():
    ledger = PrivacyLedger()
    ledger.add(Claim.unbounded("raw updates").with_event(Observer.PEER, Nothing()))
    assert guarantee(ledger, Observer.SERVER).epsilon is None
    assert guarantee(ledger, Observer.SERVER).because == "raw updates"
    assert guarantee(ledger, Observer.PEER) is None


def test_one_broken_exchange_breaks_the_run():
    ledger = PrivacyLedger()
    good = Claim.unbounded("x").with_event(Observer.SERVER, PureLocal(1.0))
    ledger.add(good)
    assert guarantee(ledger, Observer.SERVER).epsilon == pytest.approx(1.0, rel=1e-3)
    ledger.add(Claim.unbounded("a raw upload"))
    assert guarantee(ledger, Observer.SERVER).epsilon is None


def test_events_compose_over_the_whole_run_whatever_their_order():
    """A hundred rounds of a sampled Gaussian, alternating with another exchange that shows nothing."""
    claim = Claim.unbounded("x", adjacency=Adjacency.ADD_REMOVE)
    noisy = claim.with_event(
        Observer.RELEASE, Sampled(Gaussian(2.0, 1.0), Poisson(0.01)), ("the sample is secret",)
    )
    silent = claim.with_event(Observer.RELEASE, Nothing())
    together, alternating = PrivacyLedger(), PrivacyLedger()
    for _ in range(100):
        together.add(noisy)
        alternating.add(noisy)
        alternating.add(silent)
    first, second = (guarantee(ledger, Observer.RELEASE) for ledger in (together, alternating))
    assert first.epsilon == second.epsilon
    assert 0.1 < first.epsilon < 1.0
    assert "the sample is secret" in first.assumes


def test_one_interaction_has_its_own_lines_where_answers_go_by_item():
    """Bits about 1682 items at epsilon 2: 2 for an item being there, 4 for a swap, 3364 for a history."""
    ledger = PrivacyLedger(1e-6)
    answer = RandomisedResponse(2.0, 1682, by_item=True)
    ledger.add(replace(Claim.unbounded("bits"), adjacency=RO).with_event(Observer.SERVER, answer))
    lines = [line for line in ledger.guarantees() if line.observer is Observer.SERVER]
    told = {(line.unit, line.adjacency): line.epsilon for line in lines}
    assert told[Unit.INTERACTION, Adjacency.ADD_REMOVE] == pytest.approx(2.0)
    assert told[Unit.INTERACTION, RO] == pytest.approx(4.0)
    assert lines[0].unit is Unit.USER
    assert 4.0 < (told[Unit.USER, RO] or 0) <= 3364.0


def test_noise_beside_the_answers_counts_for_one_interaction_as_for_the_whole_history():
    ledger, noise = PrivacyLedger(1e-6), PrivacyLedger(1e-6)
    raw = replace(Claim.unbounded("raw"), adjacency=RO)
    for each in (ledger, noise):
        each.add(raw.with_event(Observer.SERVER, Gaussian(4.0, 1.0)))
    ledger.add(raw.with_event(Observer.SERVER, RandomisedResponse(0.5, 30, by_item=True)))
    swap = next(
        line for line in ledger.guarantees() if line.unit is Unit.INTERACTION and line.adjacency is RO
    )
    alone = next(line for line in noise.guarantees() if line.observer is Observer.SERVER)
    assert alone.epsilon is not None
    assert alone.epsilon < (swap.epsilon or 0) <= alone.epsilon + 2 * 0.5 + 1e-6


def test_mixed_neighbours_are_counted_as_the_wider_ones():
    """A last exchange that claims add-remove must not halve the noise's sensitivity."""
    ledger, alone = PrivacyLedger(1e-6), PrivacyLedger(1e-6)
    noisy = replace(Claim.unbounded("raw"), adjacency=RO).with_event(Observer.SERVER, Gaussian(4.0, 1.0))
    alone.add(noisy)
    ledger.add(noisy)
    ledger.add(Claim.unbounded("raw").with_event(Observer.SERVER, RandomisedResponse(1e-6, 1)))
    first, second = (guarantee(each, Observer.SERVER) for each in (alone, ledger))
    assert second.adjacency is RO
    assert second.epsilon == pytest.approx(first.epsilon, rel=1e-2)
