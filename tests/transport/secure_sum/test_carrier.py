"""Over a secure sum a method trains as before, to the last bit; claims and bytes say what changed."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.account.claim import Observer
from tacit.account.events import NonPrivate, Skellam
from tacit.config.experiment import carried_by
from tacit.errors import TacitError
from tacit.methods.fedrec import fedmf, fedrec, fedrec_plus_plus
from tacit.protect.distributed import skellam
from tacit.protect.grid import grid
from tacit.protect.protection import chain
from tacit.rng import SeededKeys
from tacit.round import OpenExchange
from tacit.runtime.simulate import Execution, new_world, one_round
from tacit.testing.contracts import check_transport
from tacit.testing.tiny import tiny_federation
from tacit.transport.secure_sum.carrier import secure_sum
from tacit.transport.secure_sum.in_process import summed
from tacit.transport.secure_sum.terms import SumAborted, Terms
from tacit.transport.transport import Messages
from tacit.types import Steps

SMALL = {"dim": 4, "rounds": 4, "rate": 0.3, "decay": 0.95, "reg": 0.02, "spread": 0.5}


def over(method, transport, protections=None):
    changed = {} if protections is None else {"protections": protections}
    return replace(
        method, exchanges=tuple(carried_by(transport, replace(e, **changed)) for e in method.exchanges)
    )


def trained(method, federation, execution=None, rounds=None):
    world = new_world(method, federation, SeededKeys(1), execution)
    records = [one_round(world) for _ in range(rounds or method.rounds)]
    return world, records[-1][0]


def same(one, other):
    return np.array_equal(one.server.shared["items"], other.server.shared["items"]) and np.array_equal(
        one.private["user"], other.private["user"]
    )


@pytest.mark.parametrize("execution", [Execution(), Execution(1, 1), Execution(2, 30)])
def test_fedrec_over_secure_sums_is_fedrec_without_fillers(execution):
    federation = tiny_federation(20, 15, silent=1)
    plain, _ = trained(fedrec(**SMALL, rho=0.0, sums="grid"), federation)
    for masks in ("cancelled", "full"):
        carried, _ = trained(
            over(fedrec(**SMALL, rho=0.0), secure_sum(masks=masks)), federation, execution, 4
        )
        assert same(plain, carried)


def test_it_is_as_lossless_as_fedrec_plus_plus():
    federation = tiny_federation(20, 15)
    carried, _ = trained(over(fedmf(**SMALL), secure_sum()), federation)
    noisy, _ = trained(fedrec_plus_plus(**SMALL, rho=1.0, t_predict=9, denoisers=2, sums="grid"), federation)
    assert same(carried, noisy)


@pytest.mark.parametrize("stage", [skellam(noise=0.5, honest=10, clip=3.0), grid(bits=14, limit=64.0)])
def test_cancelled_masks_change_no_bit(stage):
    federation = tiny_federation(24, 15)
    worlds = [
        trained(
            over(fedmf(**SMALL), secure_sum(masks=masks), chain(stage)), federation, Execution(1, pairs), 2
        )[0]
        for masks, pairs in (("cancelled", 10**6), ("full", 20))
    ]
    assert same(*worlds)


@pytest.mark.parametrize("masks", ["cancelled", "full"])
def test_it_keeps_the_promises_of_a_transport(masks):
    users = np.arange(20, dtype=np.int32)
    update = {"w": np.arange(60).reshape(20, 3)}
    carried = secure_sum(masks=masks).carrying(Steps(1.0, 60.0))
    check_transport(carried, Messages(users, update, np.zeros(20, dtype=np.int64)))


def test_bytes_are_those_that_cross_in_the_protocol():
    federation = tiny_federation(20, 15)
    _, record = trained(over(fedmf(**SMALL), secure_sum()), federation, rounds=1)
    clients = record.facts.invited
    terms = Terms(b"simulation", 1, "train", bytes(32), 15 * 4 + 15, 64, invited=clients)
    found = summed(terms, {user: np.zeros(75, dtype="<u8") for user in range(clients)})
    _, plain = trained(fedmf(**SMALL), federation, rounds=1)
    assert record.traffic.up == found.up
    assert record.traffic.down == found.down + plain.traffic.down
    assert record.traffic.rows_up == clients * 15
    assert record.traffic.values_up == clients * 75 * 8
    assert (record.traffic.ids_up, record.traffic.numbers_up) == (0, clients * 75)


def test_an_exact_sum_promises_nothing_and_says_why():
    _, record = trained(over(fedmf(**SMALL), secure_sum()), tiny_federation(20, 15), rounds=1)
    event = record.claim.event(Observer.SERVER)
    assert isinstance(event, NonPrivate)
    assert "one person" in event.reason
    assert isinstance(record.claim.event(Observer.RELEASE), NonPrivate)


def test_noise_shares_count_against_the_server_behind_a_sum_only():
    federation = tiny_federation(20, 15)
    stage = chain(skellam(noise=1.0, honest=9, clip=3.0))
    _, behind = trained(over(fedmf(**SMALL), secure_sum(), stage), federation, rounds=1)
    assert behind.claim.event(Observer.SERVER) == behind.claim.event(Observer.RELEASE)
    assert behind.claim.summed is None
    assert any("collude" in line for line in behind.claim.assumes[Observer.SERVER])
    bare = replace(
        fedmf(**SMALL), exchanges=tuple(replace(e, protections=stage) for e in fedmf(**SMALL).exchanges)
    )
    _, direct = trained(bare, federation, rounds=1)
    share, whole = (direct.claim.event(observer) for observer in (Observer.SERVER, Observer.RELEASE))
    assert isinstance(share, Skellam)
    assert whole.variance == pytest.approx(9 * share.variance)


def test_noise_that_counts_on_too_many_is_refused_before_the_round():
    method = over(fedmf(**SMALL), secure_sum(), chain(skellam(noise=1.0, honest=19, clip=3.0)))
    with pytest.raises(TacitError, match=r"counts on 19 honest answers .*; tell the noise honest=10, or ask"):
        trained(method, tiny_federation(20, 15), rounds=1)
    closer = over(fedmf(**SMALL), secure_sum(), chain(skellam(noise=1.0, honest=17, clip=3.0)))
    with pytest.raises(TacitError, match=r"close later \(crowd=18\)"):
        trained(closer, tiny_federation(20, 15), rounds=1)
    crowded = over(fedmf(**SMALL), secure_sum(crowd=18), chain(skellam(noise=1.0, honest=17, clip=3.0)))
    trained(crowded, tiny_federation(20, 15), rounds=1)


def test_numbers_with_a_point_are_refused_when_the_exchange_is_built():
    with pytest.raises(TacitError, match="not rounded"):
        replace(fedmf(**SMALL).exchanges[0], transport=secure_sum())


def test_too_few_people_are_refused_before_the_round_and_too_few_answers_after():
    with pytest.raises(TacitError, match="no safe sum"):
        trained(over(fedmf(**SMALL, clients=2), secure_sum()), tiny_federation(20, 15), rounds=1)
    exchange = over(fedmf(**SMALL), secure_sum()).exchanges[0]
    world = new_world(fedmf(**SMALL), tiny_federation(20, 15), SeededKeys(1))
    opened = OpenExchange(exchange, world.server, invited=20, population=20, keys=world.keys, tally=None)
    with pytest.raises(SumAborted, match="0 of 20 people answered"):
        opened.close()


@pytest.mark.parametrize("change", [{"dropout": 0.2}, {"adversary": 0.1}])
def test_the_rates_decide_what_crosses(change):
    federation = tiny_federation(60, 15)
    crossed = [
        trained(over(fedmf(**SMALL), secure_sum(**settings)), federation, rounds=1)[1].traffic
        for settings in ({}, change)
    ]
    assert crossed[0].up < crossed[1].up
