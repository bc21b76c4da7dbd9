"""Messages that are not what they should be: refused by name, counted, and the round is unharmed."""

import sqlite3
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit import codec
from tacit.config.experiment import Experiment, method_of
from tacit.deploy.cards import PersonKeys
from tacit.deploy.channel import Pace
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.limits import Limits
from tacit.deploy.participation import Participant
from tacit.deploy.wire import Kind, framed, unframed
from tacit.federation.sampling import Sampling
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.simulate import new_world, one_round
from tacit.testing.deployment import SEED, SERVER, deployed
from tacit.types import Rows

FEDREC = Experiment("fedrec", rounds=2, settings={"sums": "grid"})
FLOATS = Experiment("fedrec", rounds=2)
SHORT = Pace(deadline=0.3, again=10.0, wait=0.0)
BAD = 3  # the slot whose messages are bent


@dataclass(frozen=True)
class Only(Sampling):
    """Asks those who will answer: what a simulation over the survivors looks like."""

    people: tuple[int, ...]

    def draw(self, people, round, keys):
        del people, round, keys
        return np.array(self.people, dtype=np.int32)


def over_survivors(experiment, federation, by_round):
    """The simulated model when only these people answer in each round."""
    method = method_of(experiment)
    assert isinstance(method, Method)
    world = new_world(method, federation, SeededKeys(SEED))
    for survivors in by_round:
        exchanges = tuple(replace(one, sampling=Only(survivors)) for one in world.method.exchanges)
        world.method = replace(world.method, exchanges=exchanges)
        one_round(world)
    return world.server.shared


def signer(whole, slot):
    return PersonKeys.of(whole.devices[slot].store.secret(), "run", f"u{slot}").identity


def remade(whole, slot, wire, head=None, parts=None):
    """The same answer with something changed, signed by its true sender."""
    frame = unframed(wire, 1 << 30)
    return framed(frame.kind, {**frame.head, **(head or {})}, parts or frame.parts, signer(whole, slot))


def poisoned(whole, slot, wire):
    frame = unframed(wire, 1 << 30)
    message = codec.decode(frame.parts[0])
    rows = message.arrays["items"]
    assert isinstance(rows, Rows)
    values = rows.values.copy()
    values[0, 0] = np.nan
    return remade(
        whole, slot, wire, parts=[codec.encode({"items": replace(rows, values=values)}, message.round)]
    )


def doubled(whole, slot, wire):
    frame = unframed(wire, 1 << 30)
    message = codec.decode(frame.parts[0])
    rows = message.arrays["items"]
    twice = replace(rows, ids=np.full_like(rows.ids, rows.ids[0]))
    return remade(whole, slot, wire, parts=[codec.encode({"items": twice}, message.round)])


def out_of_catalogue(whole, slot, wire):
    frame = unframed(wire, 1 << 30)
    message = codec.decode(frame.parts[0])
    rows = message.arrays["items"]
    ids = rows.ids.copy()
    ids[-1] = 10**6
    return remade(whole, slot, wire, parts=[codec.encode({"items": replace(rows, ids=ids)}, message.round)])


def truncated(whole, slot, wire):
    del whole, slot
    return wire[: len(wire) // 2]


def forged(whole, slot, wire):
    del whole, slot
    return wire[:-1] + bytes([wire[-1] ^ 1])


def other_version(whole, slot, wire):
    del whole, slot
    return wire[:4] + b"\x63" + wire[5:]


def noise(whole, slot, wire):
    del whole, slot, wire
    return bytes(500)


def cut_inside(whole, slot, wire):
    return remade(whole, slot, wire, parts=[unframed(wire, 1 << 30).parts[0][:-3]])


BENDS = {
    "truncated": truncated,
    "malformed": noise,
    "unsigned": forged,
    "oversized": lambda *at: remade(*at, parts=[b"x" * (1 << 22)]),
    "damaged": cut_inside,
    "not finite": poisoned,
    "wrong shape": doubled,
    "wrong shape (ids)": out_of_catalogue,
    "foreign model": lambda *at: remade(*at, head={"model": "0" * 64}),
    "foreign run": lambda *at: remade(*at, head={"run": "another"}),
    "other version": other_version,
    "out of turn": lambda *at: remade(*at, head={"leg": 4}),
}


@pytest.mark.parametrize("name", BENDS)
def test_a_bad_message_is_refused_by_its_name_and_the_others_make_the_model(name, tmp_path):
    whole = deployed(tmp_path, FLOATS, users=6)

    def coming(slot, wire):
        return BENDS[name](whole, slot, wire) if slot == BAD else wire

    assert whole.run(SHORT, coming=coming)
    assert whole.journal.refusals() == {"server": {name.split(" (")[0]: 2}}
    survivors = tuple(slot for slot in range(6) if slot != BAD)
    expected = over_survivors(FLOATS, whole.federation, [survivors] * 2)
    np.testing.assert_allclose(
        whole.coordinator.state.shared["items"], expected["items"], rtol=2e-5, atol=1e-7
    )
    assert [record.facts.answered for record in whole.journal.records()] == [5, 5]


def test_a_message_sent_twice_or_kept_for_later_counts_once(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=6)
    clean = deployed(tmp_path / "clean", FEDREC, users=6)
    assert clean.run()
    kept = {}

    def coming(slot, wire):
        kept.setdefault((whole.coordinator.state.round, slot), wire)
        assert whole.coordinator.receive(slot, wire) is None
        if (0, slot) in kept and whole.coordinator.state.round == 1:
            assert whole.coordinator.receive(slot, kept[0, slot]).value == "replayed"
        return wire  # and once more, as a duplicate

    assert whole.run(SHORT, coming=coming)
    assert whole.journal.refusals() == {"server": {"duplicate": 12, "replayed": 6}}
    np.testing.assert_array_equal(
        whole.coordinator.state.shared["items"], clean.coordinator.state.shared["items"]
    )


def test_a_third_of_the_devices_gone_in_the_middle_leaves_the_model_of_the_survivors(tmp_path):
    experiment = Experiment("fedrec", rounds=3, settings={"sums": "grid"})
    whole = deployed(tmp_path, experiment, users=10)
    gone = {1, 4, 7}

    def coming(slot, wire):
        lost = slot in gone and whole.coordinator.state.round >= 1
        return None if lost else wire

    assert whole.run(SHORT, coming=coming)
    left = tuple(slot for slot in range(10) if slot not in gone)
    expected = over_survivors(experiment, whole.federation, [tuple(range(10)), left, left])
    np.testing.assert_array_equal(whole.coordinator.state.shared["items"], expected["items"])
    assert [record.facts.answered for record in whole.journal.records()] == [10, 7, 7]


def test_a_secure_sum_is_the_sum_of_the_survivors(tmp_path):
    experiment = Experiment("fedmmf", rounds=1, transport="secure-sum:0.3:0.05")
    whole = deployed(tmp_path, experiment, users=12)
    gone = {2, 5, 9}

    def coming(slot, wire):
        step = whole.coordinator.step.place
        return None if slot in gone and step.round == 0 and step.leg >= 2 else wire

    assert whole.run(SHORT, coming=coming)
    left = tuple(slot for slot in range(12) if slot not in gone)
    plain = Experiment("fedmmf", rounds=1, protect=("grid:14:32",), settings={"plain": True})
    assert whole.journal.rounds()[-1]["said"] == ""
    assert whole.journal.records()[-1].facts.answered == 9
    method = method_of(plain)
    from tacit.runtime.simulate import set_up

    world = new_world(method, whole.federation, SeededKeys(SEED))
    set_up(world)
    exchanges = tuple(replace(one, sampling=Only(left)) for one in world.method.exchanges)
    world.method = replace(world.method, exchanges=exchanges)
    one_round(world)
    np.testing.assert_allclose(
        whole.coordinator.state.shared["items"], world.server.shared["items"], rtol=0, atol=1e-7
    )


def test_too_few_for_a_secure_sum_leave_the_model_and_say_so(tmp_path):
    whole = deployed(tmp_path, Experiment("fedmmf", rounds=2), users=8)
    before = whole.coordinator.state.shared["items"].copy()

    def coming(slot, wire):
        return None if slot > 2 and whole.coordinator.state.round == 0 else wire

    assert whole.run(Pace(deadline=0.5, again=10.0, wait=0.0), coming=coming)
    rounds = whole.journal.rounds()
    assert "needed" in rounds[1]["said"]
    assert rounds[2]["said"] == ""
    assert not np.array_equal(whole.coordinator.state.shared["items"], before)


# strangers


def test_an_outsider_gets_nothing_in_and_a_revoked_key_nothing_out(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=6)
    other = deployed(tmp_path / "other", FEDREC, users=6)
    due = whole.coordinator.due()
    answer = whole.devices[0].answer(due[0])
    stranger = other.devices[1]
    assert unframed(stranger.answer(due[1]), 1 << 20).kind is Kind.REFUSAL  # invited under another's key
    forged = framed(
        Kind.ANSWER, unframed(answer, 1 << 30).head, unframed(answer, 1 << 30).parts, signer(other, 0)
    )
    assert whole.coordinator.receive(0, forged).value == "unsigned"
    assert whole.coordinator.receive(99, answer).value == "stranger"
    assert whole.coordinator.receive(1, answer).value == "unsigned"
    whole.coordinator.revoke(0)
    assert whole.coordinator.receive(0, answer).value == "revoked"
    assert 0 not in whole.coordinator.due()
    card = whole.devices[0].answer(whole.coordinator.hello())
    assert whole.coordinator.enrol(card) == ()
    assert whole.run(SHORT)
    assert [record.facts.answered for record in whole.journal.records()] == [5, 5]


def test_only_devices_whose_fingerprint_is_listed_may_enrol(tmp_path):
    import json

    from tacit.deploy.identity import Identity

    whole = deployed(tmp_path, FEDREC, users=3)
    fresh = deployed(tmp_path / "fresh", replace(FEDREC, rounds=3), users=3)
    allowed = Identity.of(fresh.devices[0].store).fingerprint
    whole.journal.keep("allowed", json.dumps([allowed]).encode())
    card = whole.devices[0].answer(whole.coordinator.hello())
    assert whole.coordinator.enrol(card) == ()
    assert whole.journal.refusals()["server"]["stranger"] == 1


def test_a_device_follows_the_server_it_met_and_no_other(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=3)
    hello = unframed(whole.coordinator.hello(), 1 << 30)
    impostor = framed(Kind.HELLO, hello.head, hello.parts, b"another server's secret, 32 byte")
    refused = unframed(whole.devices[0].answer(impostor), 1 << 20)
    assert refused.head["no"] == "foreign server"
    invitation = unframed(whole.coordinator.due()[0], 1 << 30)
    resent = framed(invitation.kind, invitation.head, invitation.parts, b"another server's secret, 32 byte")
    assert unframed(whole.devices[0].answer(resent), 1 << 20).head["no"] == "foreign server"
    other = framed(invitation.kind, {**invitation.head, "run": "else"}, invitation.parts, SERVER)
    assert unframed(whole.devices[0].answer(other), 1 << 20).head["no"] == "foreign run"


def test_a_device_answers_no_second_question_about_a_round(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=3)
    invitation = unframed(whole.coordinator.due()[0], 1 << 30)
    first = whole.devices[0].answer(whole.coordinator.due()[0])
    assert unframed(first, 1 << 30).kind is Kind.ANSWER
    message = codec.decode_broadcast(invitation.parts[0])
    bent = codec.encode_broadcast({"items": message.arrays["items"] + 1}, 0)
    from tacit.deploy.charter import digest

    again = framed(
        invitation.kind, {**invitation.head, "model": digest(bent)}, [bent, *invitation.parts[1:]], SERVER
    )
    assert unframed(whole.devices[0].answer(again), 1 << 20).head["no"].startswith("answered before")


# the device's own troubles


def test_a_full_disk_on_a_device_loses_one_answer_and_nothing_else(tmp_path):
    wide = replace(FEDREC, settings={"sums": "grid", "dim": 200})
    whole = deployed(tmp_path, wide, users=6)
    store = whole.devices[BAD].store
    pages = store._vault.row("PRAGMA page_count")[0]
    store._vault.run(f"PRAGMA max_page_count = {pages}")
    history = store.history(f"u{BAD}")
    assert whole.run(SHORT)
    assert whole.journal.refusals() == {"device": {"disk full": 2}}
    assert store.history(f"u{BAD}").items == history.items
    expected = over_survivors(wide, whole.federation, [tuple(s for s in range(6) if s != BAD)] * 2)
    np.testing.assert_array_equal(whole.coordinator.state.shared["items"], expected["items"])


def test_a_clock_that_jumps_changes_nothing_on_the_server_and_frees_nothing_on_a_device(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    clean = deployed(tmp_path / "clean", FEDREC, users=4)
    assert clean.run()
    times = iter([1e9, 2e9, 5e8, 3e9] * 100)
    for slot, device in whole.devices.items():
        device._clock = lambda: next(times)
        if slot == BAD:
            device.store.set_limits(Limits(per_day=1))
            device._clock = iter([2e9, 2e9, 1e9, 1e9]).__next__  # set back after the first round
    assert whole.run(SHORT)
    assert whole.journal.refusals() == {"device": {"limit": 1}}
    assert [record.facts.answered for record in whole.journal.records()] == [4, 3]


def test_a_device_put_back_to_yesterday_pauses(tmp_path):
    import shutil

    whole = deployed(tmp_path, replace(FEDREC, rounds=3), users=4)
    folder = whole.stores[BAD]
    whole.devices[BAD].store.close()
    shutil.copy(folder / "device.sqlite", tmp_path / "yesterday.sqlite")
    whole.restart_device(BAD)
    came = []

    def coming(slot, wire):
        if slot == BAD and whole.coordinator.state.round == 1 and not came:
            came.append(wire)
            whole.devices[BAD].store.close()
            for side in ("-wal", "-shm"):
                (folder / f"device.sqlite{side}").unlink(missing_ok=True)
            shutil.copy(tmp_path / "yesterday.sqlite", folder / "device.sqlite")
            whole.restart_device(BAD)
        return wire

    assert whole.run(SHORT, coming=coming)
    assert [record.facts.answered for record in whole.journal.records()] == [4, 4, 3]
    assert whole.journal.refusals() == {"device": {"paused": 1}}


def test_limits_of_a_person_stop_a_server_that_asks_too_often(tmp_path):
    whole = deployed(tmp_path, replace(FEDREC, rounds=4), users=4)
    whole.devices[BAD].store.set_limits(Limits(per_run=2))
    assert whole.run(SHORT)
    assert [record.facts.answered for record in whole.journal.records()] == [4, 4, 3, 3]
    assert whole.journal.refusals() == {"device": {"limit": 2}}


def test_errors_on_a_device_are_told_by_a_name_without_their_text(tmp_path, monkeypatch):
    whole = deployed(tmp_path, FEDREC, users=3)

    def broken(self, *_):
        raise sqlite3.OperationalError("u0 rated i7 with 5 stars")

    monkeypatch.setattr(Participant, "_worked", broken)
    told = whole.devices[0].answer(whole.coordinator.due()[0])
    assert unframed(told, 1 << 20).head["no"] == "unable"
    assert b"stars" not in told
    assert isinstance(whole.coordinator, Coordinator)
