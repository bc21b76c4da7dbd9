"""A device's limits hold whatever a server asks, in whatever order, by whatever clock."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import Gaussian, Nothing, Poisson, PureLocal, Sampled
from tacit.config.experiment import Experiment
from tacit.deploy.limits import DAY, Ask, Limits, Sent, refusal, spent
from tacit.errors import TacitError
from tacit.testing.deployment import deployed

OPEN = Claim.unbounded("sent in the clear").to_json()


def claimed(event, observer=Observer.SERVER):
    return Claim.unbounded("").with_bound(Bound(2, 1.0)).with_event(observer, event).to_json()


def taken(ledger, ask, up=5):
    """The ledger after the device did take part."""
    place = (ask.person, ask.run, ask.round, ask.exchange)
    return [*ledger, Sent(*place, "server", up, ask.down_bytes, ask.claim, ask.time)]


def asked(limits, asks):
    """What the device agrees to when these asks come one after the other."""
    ledger = []
    for ask in asks:
        if refusal(limits, ledger, ask) is None:
            ledger = taken(ledger, ask, ask.up_bytes)
    return ledger


asks = st.lists(
    st.builds(
        Ask,
        person=st.sampled_from(["ann", "bob"]),
        run=st.sampled_from(["r", "s", "t"]),
        round=st.integers(-6, 30),
        exchange=st.sampled_from(["one", "two"]),
        claim=st.just(claimed(PureLocal(0.5))),
        time=st.integers(0, 3 * DAY),
        down_bytes=st.integers(0, 50),
        up_bytes=st.integers(0, 50),
        delta=st.just(0.0),
    ),
    max_size=40,
    unique_by=lambda ask: (ask.person, ask.run, ask.round, ask.exchange),
)
limits = st.builds(
    Limits,
    per_run=st.one_of(st.none(), st.integers(0, 6)),
    per_day=st.one_of(st.none(), st.integers(0, 6)),
    separation=st.integers(0, 5),
    bytes_per_day=st.one_of(st.none(), st.integers(0, 300)),
    epsilon=st.one_of(st.just({}), st.fixed_dictionaries({"server": st.floats(0, 4)})),
    runs=st.one_of(st.none(), st.integers(0, 2)),
)


@settings(deadline=None, max_examples=150)
@given(limits, asks)
def test_no_order_of_asking_gets_past_a_limit(allowed, asks):
    ledger = asked(allowed, asks)
    for person in ("ann", "bob"):
        mine = [line for line in ledger if line.person == person]
        for run in ("r", "s"):
            rounds = sorted({line.round for line in mine if line.run == run and line.round != -1})
            assert allowed.per_run is None or len(rounds) <= allowed.per_run
            assert all(b - a >= allowed.separation for a, b in itertools.pairwise(rounds))
            total = 0.5 * sum(line.run == run for line in mine)  # pure composition, in closed form
            assert total <= allowed.epsilon.get("server", math.inf)
        runs = {line.run for line in mine}
        assert allowed.runs is None or len(runs) <= allowed.runs
        if allowed.runs is not None and allowed.per_run is not None:  # however often a server founds anew
            rounds = {(line.run, line.round) for line in mine if line.round != -1}
            assert len(rounds) <= allowed.runs * allowed.per_run


@settings(deadline=None, max_examples=100)
@given(limits, asks)
def test_within_a_day_of_an_honest_clock(allowed, asks):
    ledger = asked(allowed, sorted(asks, key=lambda ask: ask.time))
    for line in ledger:
        day = [o for o in ledger if o.person == line.person and line.time - DAY < o.time <= line.time]
        assert allowed.bytes_per_day is None or (
            sum(o.up_bytes + o.down_bytes for o in day) <= allowed.bytes_per_day
        )
        if allowed.per_day is not None:
            assert len({(o.run, o.round) for o in day if o.round != -1}) <= allowed.per_day


@settings(deadline=None, max_examples=60)
@given(limits, asks, st.integers(0, 5 * DAY))
def test_a_clock_set_back_frees_nothing(allowed, asks, back):
    ledger = asked(allowed, asks)
    for ask in asks:
        if ask.time >= max((line.time for line in ledger), default=0) and refusal(allowed, ledger, ask):
            earlier = Ask(**{**vars(ask), "time": ask.time - back})
            assert refusal(allowed, ledger, earlier) is not None


@settings(deadline=None, max_examples=60)
@given(limits, asks)
def test_other_peoples_lines_never_matter(allowed, asks):
    ledger = asked(allowed, asks)
    mine = [line for line in ledger if line.person == "ann"]
    for ask in asks:
        if ask.person == "ann":
            assert refusal(allowed, ledger, ask) == refusal(allowed, mine, ask)


def test_no_limits_refuse_nothing_and_zero_refuses_everything():
    ask = Ask("ann", "r", 0, "one", OPEN, 0, 10, 10)
    assert refusal(Limits(), [], ask) is None
    for closed in (Limits(per_run=0), Limits(per_day=0), Limits(bytes_per_day=0)):
        assert refusal(closed, [], ask)


def test_exchanges_of_a_round_count_once():
    allowed = Limits(per_run=1, per_day=1, separation=4)
    first = Ask("ann", "r", 3, "one", OPEN, 0)
    ledger = taken([], first)
    assert refusal(allowed, ledger, Ask("ann", "r", 3, "two", OPEN, 0)) is None
    assert "per_run" in refusal(allowed, ledger, Ask("ann", "r", 9, "one", OPEN, 0))


def test_where_nothing_is_promised_a_limit_on_epsilon_refuses_with_the_reason():
    refused = refusal(Limits(epsilon={"server": 100.0}), [], Ask("ann", "r", 0, "one", OPEN, 0))
    assert "infinity" in refused
    assert "sent in the clear" in refused
    assert refusal(Limits(epsilon={"server": 1.0}), [], Ask("ann", "r", 0, "one", None, 0))
    silent = claimed(Nothing())
    assert refusal(Limits(epsilon={"server": 0.0}), [], Ask("ann", "r", 0, "one", silent, 0)) is None


def test_a_lost_line_counts_like_a_known_one():
    ask = Ask("ann", "r", 5, "one", OPEN, 0)
    lost = Sent("ann", "r", 0, "one", "server", 0, 0, OPEN, 0, known=False)
    assert refusal(Limits(per_run=1), [lost], ask)


def test_spent_is_the_accountants_number_without_the_gift_of_sampling():
    event = Gaussian(noise_std=2.0, clip=1.0)
    told = spent([claimed(Sampled(event, Poisson(0.1)), Observer.RELEASE)] * 5, Observer.RELEASE, 1e-6)
    assert told.value == pytest.approx(epsilon([event] * 5, 1e-6, Adjacency.ADD_REMOVE).value, rel=1e-9)
    assert spent([], Observer.SERVER).value == 0
    assert math.isinf(spent([claimed(event), OPEN], Observer.SERVER).value)


@pytest.mark.parametrize(
    "text", ["per_run", "per_rum=3", "per_run=x", "epsilon=3", "epsilon:sever=3", "per_day=-1"]
)
def test_what_is_no_limit_is_said_in_one_line(text):
    with pytest.raises(TacitError, match=r".+; .+"):
        Limits().with_setting(text)


def test_limits_are_written_and_read_back():
    allowed = Limits(3, 4, 5, 6, {"server": 1.5})
    assert Limits.from_json(allowed.to_json()) == allowed
    off = allowed
    for name in ("per_run", "per_day", "separation", "bytes_per_day", "runs", "epsilon:server"):
        off = off.with_setting(f"{name}=none")
    assert off == Limits(runs=None)
    assert Limits().said() == ("at most 1 run",)
    assert off.said() == ()


def test_a_device_counts_nobodys_noise_but_its_own(tmp_path):
    """Who else answered is the server's word: the run's ledger counts it, the device's account does not."""
    settings_ = {"rounds": 1, "clients": 6, "dim": 2, "sigma": 3.0}
    whole = deployed(tmp_path, Experiment("dp-fedmf", settings=settings_), seeded=None)
    assert whole.run()
    (record,) = whole.journal.records()
    assert record.claim.event(Observer.RELEASE).event == Gaussian(3.0 * math.sqrt(6), 1.0)
    told = [line.claim for device in whole.devices.values() for line in device.store.sent()]
    assert len(told) == 6
    for claim in map(Claim.from_json, told):
        assert claim.event(Observer.RELEASE).event == claim.event(Observer.SERVER) == Gaussian(3.0, 1.0)
