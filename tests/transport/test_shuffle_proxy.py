"""The proxy passes on what it may, once, in an order that tells nothing; its worth is what was proved."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.account import accountant
from tacit.account.claim import Adjacency, Observer
from tacit.account.events import Nothing, PureLocal, RandomisedResponse, Repeated, Shuffled
from tacit.errors import TacitError
from tacit.ledger.privacy import PrivacyLedger
from tacit.methods.fmf_ldp import fmf_ldp
from tacit.rng import SeededKeys
from tacit.round import OpenExchange, broadcast_of, claim_of, client_side, first_state, server_side
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.testing.tiny import tiny_federation
from tacit.transport.direct import direct
from tacit.transport.sealed_reports import (
    Envelope,
    Opener,
    Proxy,
    message_nbytes,
    report_nbytes,
    sealed,
)
from tacit.transport.shuffle_proxy import ShuffleProxy, handed_over
from tacit.transport.transport import Messages
from tacit.types import RoundFacts

PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(32)))
ENVELOPE = Envelope("train", 4)


def word(sender, place):
    return sealed(bytes([sender, place, 0, 0]), PRIVATE.public_key(), ENVELOPE)


@settings(max_examples=60, deadline=None)
@given(
    senders=st.lists(st.integers(0, 12), max_size=30),
    each=st.integers(1, 4),
    n_min=st.integers(1, 10),
    ask_after=st.sets(st.integers(0, 29)),
)
def test_nothing_is_passed_on_below_n_min_and_nothing_twice(senders, each, n_min, ask_after):
    """Whatever arrives from whom in which order, and whenever a batch is asked for."""
    proxy = Proxy(size=6, n_min=n_min)
    passed, accepted, waiting = [], [], set()
    for turn, sender in enumerate(senders):
        reports = [f"{sender:02d}{turn:02d}{place:02d}".encode() for place in range(each)]
        if proxy.receive(str(sender), reports):
            waiting.add(sender)
            accepted += reports
        if turn in ask_after:
            batch = proxy.batch()
            assert bool(batch) == (len(waiting) >= n_min and bool(waiting))
            passed += batch
            waiting = set() if batch else waiting
    rest = proxy.batch()
    assert bool(rest) == (len(waiting) >= n_min and bool(waiting))
    passed += rest
    assert len(passed) == len(set(passed))
    assert set(passed) <= set(accepted)
    assert set(accepted) - set(passed) == set(proxy.waiting)
    assert proxy.refused["sender"] == len(senders) - len(set(senders))


@given(copies=st.integers(1, 5), lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_repeated_reports_and_wrong_sizes_are_refused_and_counted(copies, lengths):
    proxy = Proxy(size=4, n_min=1)
    proxy.receive("first", [b"same"] * copies)
    assert proxy.refused["repeated"] == copies - 1
    proxy.receive("replayer", [b"same"])
    assert proxy.refused["repeated"] == copies
    taken = proxy.receive("odd", [bytes(length) for length in lengths])
    assert taken == all(length == 4 for length in lengths)
    assert proxy.refused["size"] == (not taken)


@given(each=st.integers(1, 4), sent=st.integers(0, 6))
def test_nobody_sends_more_or_fewer_reports_than_the_others(each, sent):
    """A number of one's own would tell whose reports they are, and more would count for more."""
    proxy = Proxy(size=4, n_min=1, each=each)
    assert proxy.receive("somebody", [bytes([place] * 4) for place in range(sent)]) == (sent == each)
    assert proxy.refused["count"] == (sent != each)
    assert proxy.people == (sent == each)


@settings(max_examples=25, deadline=None)
@given(place=st.integers(0, 51), flip=st.integers(1, 255))
def test_an_altered_report_does_not_open_and_is_counted(place, flip):
    wire = bytearray(word(3, 1))
    wire[place] ^= flip
    opener = Opener(PRIVATE, ENVELOPE)
    assert opener.opened([bytes(wire)]) == []
    assert opener.tampered == 1


@pytest.mark.parametrize("other", [Envelope("train", 5), Envelope("counts", 4)])
def test_a_report_replayed_elsewhere_does_not_open(other):
    opener = Opener(PRIVATE, other)
    assert opener.opened([word(1, 1)]) == []
    assert opener.tampered == 1


def test_a_report_opens_once():
    opener, wire = Opener(PRIVATE, ENVELOPE), word(1, 2)
    assert opener.opened([wire, wire]) == [bytes([1, 2, 0, 0])]
    assert opener.opened([wire]) == []
    assert opener.repeated == 2


def test_all_reports_have_one_size_on_the_wire():
    sizes = {len(word(sender, place)) for sender in range(8) for place in range(8)}
    assert sizes == {report_nbytes(1)} == {52}


def test_an_adversary_who_groups_by_order_size_or_bytes_does_no_better_than_chance():
    """Sealed reports of 40 people, 5 each: how often two that are put together are one person's."""
    people, each, rounds = 40, 5, 60
    hits = {"order": 0, "bytes": 0, "arrival": 0}
    for _ in range(rounds):
        proxy = Proxy(size=52, n_min=2)
        owner, arrival = {}, []
        for sender in range(people):
            wires = [word(sender, place) for place in range(each)]
            owner |= dict.fromkeys(wires, sender)
            arrival += wires
            proxy.receive(str(sender), wires)
        batch = proxy.batch()
        assert len(set(map(len, batch))) == 1
        by_bytes = sorted(batch)
        hits["order"] += sum(owner[a] == owner[b] for a, b in zip(batch[::2], batch[1::2], strict=True))
        hits["bytes"] += sum(owner[a] == owner[b] for a, b in zip(by_bytes[::2], by_bytes[1::2], strict=True))
        # Whoever watched arrivals guesses that what came in at a place goes out at that place.
        hits["arrival"] += sum(owner[a] == owner[b] for a, b in zip(arrival, batch, strict=True))
    pairs = rounds * people * each // 2
    chance = (each - 1) / (people * each - 1)
    for way in ("order", "bytes"):
        assert abs(hits[way] - pairs * chance) < 4.5 * np.sqrt(pairs * chance)
    expected = rounds * people * each / people
    assert abs(hits["arrival"] - expected) < 4.5 * np.sqrt(expected)


def worlds(transports, rounds=2, **more):
    federation = tiny_federation(30, 20, seed=3)
    found = []
    for transport in transports:
        method = fmf_ldp(dim=3, k=6, n_min=2, rounds=rounds, **more)
        (exchange,) = method.exchanges
        method = replace(method, exchanges=(replace(exchange, transport=transport),))
        world = new_world(method, federation, SeededKeys(5), Execution(1, pairs_per_chunk=17))
        records = [one_round(world)[0] for _ in range(rounds)]
        found.append((world, records))
    return found


@pytest.mark.parametrize("mechanism", ["one-bit", "rotated", "privunit"])
def test_sealing_changes_neither_model_nor_bytes_nor_claims(mechanism):
    """What a simulation leaves out costs what it would; the model is that of reports sent directly."""
    (short, told), (whole, sealed_), (plain, open_) = worlds(
        [ShuffleProxy(2), ShuffleProxy(2, "full"), direct()], mechanism=mechanism
    )
    items = [world.server.shared["items"] for world in (short, whole, plain)]
    assert np.array_equal(items[0], items[1])
    assert np.array_equal(items[0], items[2])
    assert [r.traffic for r in told] == [r.traffic for r in sealed_]
    assert [r.claim for r in told] == [r.claim for r in sealed_]
    assert told[0].traffic.up > open_[0].traffic.up


@pytest.mark.parametrize("mechanism", ["one-bit", "privunit"])
def test_devices_proxy_and_server_apart_do_what_the_simulation_does(mechanism):
    """The three ends as separate programs would use them, with nothing but bytes in between."""
    federation, method = tiny_federation(30, 20, seed=3), fmf_ldp(dim=3, k=6, n_min=2, mechanism=mechanism)
    (exchange,) = method.exchanges
    world = new_world(method, federation, SeededKeys(5))
    state = world.server
    received = exchange.local.prepared(broadcast_of(exchange, state))
    private = X25519PrivateKey.generate()
    size = report_nbytes(9 if mechanism == "privunit" else 1)
    proxy = Proxy(size, n_min=2, each=6)
    for user in federation.people:
        cohort = federation.cohort(np.array([user], dtype=np.int32))
        sent = client_side(exchange, (None,), received, {}, cohort, None, SeededKeys(5)).messages
        words = np.asarray(sent.arrays["reports"], dtype="<u4").reshape(6, -1)
        wires = [sealed(word.tobytes(), private.public_key(), Envelope("train", 0)) for word in words]
        assert proxy.receive(f"device {user}", wires)
    people = proxy.people
    opener = Opener(private, Envelope("train", 0))
    reports = opener.opened(proxy.batch())
    opened = OpenExchange(exchange, state, invited=30, population=30, keys=SeededKeys(9), tally=None)
    opened.receive(handed_over(reports, people, each=6, words=(size - 48) // 4))
    record = opened.close()
    (simulated,) = one_round(world)
    after = server_side(method, state, {"round": opened.tally}, [record], SeededKeys(9))
    assert np.array_equal(after.shared["items"], world.server.shared["items"])
    assert record.claim == simulated.claim
    assert record.traffic == simulated.traffic


def test_what_crosses_is_what_is_counted():
    """The message a device sends to the proxy, encoded, is as long as the ledger says."""
    from tacit import codec

    reports = np.arange(12, dtype=np.uint32).reshape(2, 6)
    messages = Messages(np.arange(2, dtype=np.int32), {"reports": reports}, np.zeros(2, dtype=np.int64))
    keys = SeededKeys(1)
    short = ShuffleProxy(2).sent(messages, "train", 0, keys)
    full = ShuffleProxy(2, "full").sent(messages, "train", 0, keys)
    assert short.nbytes.tolist() == full.nbytes.tolist() == [message_nbytes(6, 1)] * 2
    assert len(codec.encode(full.arrays, 0, 1)) == message_nbytes(6, 1)
    for sent in (short, full):
        assert sent.parts is not None
        assert [part.tolist() for part in sent.parts] == [[0, 0], [24, 24], [6, 6]]  # 6 reports of 4 bytes


def test_the_order_handed_over_does_not_follow_that_of_people():
    reports = np.arange(4000, dtype=np.uint32).reshape(200, 20)
    session = ShuffleProxy(2).server_session(RoundFacts(0, "train", 200, 200, 0), SeededKeys(2))
    list(session.receive(Messages(np.arange(200, dtype=np.int32), {"reports": reports}, np.zeros(200, "i8"))))
    (delivery,) = session.close()
    handed = np.asarray(delivery.arrays["reports"]).ravel()
    assert len(delivery.users) == 0
    assert sorted(handed.tolist()) == list(range(4000))
    neighbours = np.mean(handed[1:] // 20 == handed[:-1] // 20)
    assert neighbours < 19 / 3999 + 4.5 * np.sqrt(19 / 3999 / 3999)


def line_of(epsilons, observer):
    return next(line for line in epsilons if line.observer is observer)


def spent(people, *, transport, delta, rounds=20, k=100):
    """The run's guarantees if everybody answers in every round."""
    method = fmf_ldp(mode="as-published", k=k)
    (exchange,) = method.exchanges
    exchange = replace(exchange, transport=transport)
    state = first_state(method, 3, SeededKeys(0))
    ledger = PrivacyLedger(delta)
    for round in range(rounds):
        ledger.add(claim_of(exchange, state, RoundFacts(round, "train", people, people, people)))
    return ledger.guarantees()


@pytest.mark.parametrize(("delta", "epsilon"), [(1e-8, 3.9671), (1e-6, 3.3285)])
def test_a_run_at_the_papers_size_is_worth_what_the_clones_give(delta, epsilon):
    """75,040 people, 100 reports of 2.5 in each of 20 rounds.

    The numbers come from the clones' pair composed on a grid of 2e-6, rounded up and down to within 2e-3.
    """
    lines = spent(75_040, transport=ShuffleProxy(), delta=delta)
    for observer in (Observer.SERVER, Observer.RELEASE):
        assert line_of(lines, observer).epsilon == pytest.approx(epsilon, abs=2e-3)
    assumed = " ".join(line_of(lines, Observer.SERVER).assumes)
    assert "proxy honest" in assumed
    assert "only the local epsilon holds: 250 per round" in assumed
    assert not [line for line in lines if line.observer is Observer.PROXY]


def binary_delta(epsilon, times, total):
    """The exact delta of so many randomised bits at ``total``: losses are plus or minus epsilon each."""
    right = np.arange(times + 1)
    losses = epsilon * (2.0 * right - times)
    masses = binom.pmf(right, times, 1 / (1 + np.exp(-epsilon)))
    return float(np.sum(masses * -np.expm1(np.minimum(total - losses, 0.0))))


def test_without_the_proxy_the_server_learns_five_thousand():
    """At delta zero all of it; with a little delta what 2000 bits of 2.5 really compose to."""
    events = [Repeated(PureLocal(2.5), 2000)]
    assert accountant.epsilon(events, 0.0, Adjacency.REPLACE_ONE).value == 5000.0
    lines = spent(75_040, transport=direct(), delta=1e-6)
    found = line_of(lines, Observer.SERVER).epsilon
    assert found is not None
    # Never below the truth, and above it by no more than the grid's rounding.
    assert binary_delta(2.5, 2000, found) <= 1e-6 < binary_delta(2.5, 2000, 0.999 * found)
    assert line_of(lines, Observer.RELEASE).epsilon == pytest.approx(3.3285, abs=2e-3)


def test_only_local_reports_are_amplified():
    from tacit.account.claim import Claim

    facts = RoundFacts(0, "x", 500, 500, 500)
    claim = Claim.unbounded("raw").with_event(Observer.SERVER, RandomisedResponse(0.1, 5))
    assert ShuffleProxy().event(claim, facts).event(Observer.SERVER) == RandomisedResponse(0.1, 5)
    raw = ShuffleProxy().event(Claim.unbounded("raw"), facts)
    assert raw.event(Observer.SERVER) == Claim.unbounded("raw").event(Observer.SERVER)
    general = Claim.unbounded("raw").with_event(Observer.SERVER, Repeated(PureLocal(1.0), 3))
    assert ShuffleProxy().event(general, facts).event(Observer.SERVER) == Repeated(Shuffled(1.0, 500), 3)
    few = ShuffleProxy(100).event(general, RoundFacts(0, "x", 500, 500, 99))
    assert few.event(Observer.SERVER) == Nothing()


def test_too_few_people_are_refused_before_anything_is_sent():
    world = new_world(fmf_ldp(n_min=13), tiny_federation(12), SeededKeys(1))
    with pytest.raises(TacitError, match="below 13 people"):
        one_round(world)


def test_what_is_not_single_reports_is_refused():
    messages = Messages(np.zeros(1, "i4"), {"items": np.zeros((1, 3), "f4")}, np.zeros(1, "i8"))
    with pytest.raises(TacitError, match="single reports"):
        ShuffleProxy().sent(messages, "train", 0, SeededKeys(1))
