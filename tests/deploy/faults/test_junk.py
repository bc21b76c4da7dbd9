"""What a registered device may send to do harm: refused by name, and the server and the proxy stay up."""

import json
from dataclasses import replace

import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.cards import PersonKeys, written_card
from tacit.deploy.channel import Pace
from tacit.deploy.coordinator import Coordinator
from tacit.deploy.founding import founded
from tacit.deploy.history import History
from tacit.deploy.identity import Identity
from tacit.deploy.participation import Participant
from tacit.deploy.proxy import SMALL, ProxyService
from tacit.deploy.store import DeviceStore
from tacit.deploy.wire import Kind, framed, public_identity, unframed
from tacit.errors import TacitError
from tacit.testing.deployment import SEED, SERVER, deployed

FEDREC = Experiment("fedrec", rounds=1, settings={"sums": "grid"})
SHORT = Pace(deadline=0.3, again=10.0, wait=0.0)
BAD = 2


def keys_of(whole, slot, run="run"):
    return PersonKeys.of(whole.devices[slot].store.secret(), run, f"u{slot}")


@pytest.mark.parametrize("no", [["paused"], None, "paused\u0000"])
def test_a_refusal_of_no_known_name_counts_as_unable(no, tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)

    def coming(slot, wire):
        if slot != BAD:
            return wire
        frame = unframed(wire, 1 << 30)
        return framed(Kind.REFUSAL, {**frame.head, "no": no}, [], keys_of(whole, BAD).identity)

    assert whole.run(SHORT, coming=coming)
    assert whole.journal.refusals() == {"device": {"unable": 1}}
    card = framed(Kind.REFUSAL, {"no": no}, [], bytes(32))
    assert whole.coordinator.enrol(card) == ()


@pytest.mark.parametrize(
    "head",
    [{"slot": None}, {"round": 10**400}, {"model": []}, {"leg": -1}],
)  # fmt: skip
def test_an_answer_with_a_head_of_other_kinds_is_refused(head, tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)

    def coming(slot, wire):
        frame = unframed(wire, 1 << 30)
        bent = framed(frame.kind, {**frame.head, **head}, frame.parts, keys_of(whole, slot).identity)
        return bent if slot == BAD else wire

    assert whole.run(SHORT, coming=coming)
    assert sum(whole.journal.refusals()["server"].values()) == 1
    assert whole.journal.records()[0].facts.answered == 3


def card_of(whole, slot, *, wish=-1, letters=None):
    keys = keys_of(whole, slot)
    keys = keys if letters is None else PersonKeys(keys.identity, letters)
    return written_card("run", Identity.of(whole.devices[slot].store), [(keys, wish)])


def test_nobody_takes_another_key_for_letters_or_moves_to_another_device(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    before = whole.journal.devices()
    assert whole.coordinator.enrol(card_of(whole, 1)) == (1,)  # a restart
    assert whole.coordinator.enrol(card_of(whole, 1, letters=bytes(range(32)))) == ()
    stolen = written_card("run", Identity.of(whole.devices[2].store), [(keys_of(whole, 1), -1)])
    assert whole.coordinator.enrol(stolen, "2") == ()
    assert whole.journal.refusals() == {"server": {"duplicate": 2}}
    assert whole.journal.devices() == before
    assert whole.run(SHORT)


@pytest.mark.parametrize("wish", [4, 1 << 31, 10**40])
def test_a_wish_beyond_the_federation_is_a_number_like_any_other(wish, tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    fresh = deployed(tmp_path / "fresh", FEDREC, users=4)
    whole.journal._db.execute("DELETE FROM devices WHERE slot = 3")
    whole.journal._db.execute("DELETE FROM facts WHERE name = 'casting'")
    whole.devices[3] = fresh.devices[3]
    assert whole.coordinator.enrol(card_of(whole, 3, wish=wish)) == (3,)
    assert whole.run(SHORT)


def test_the_same_person_twice_on_a_card_is_one(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    whole.journal._db.execute("DELETE FROM devices WHERE slot >= 2")
    twice = written_card("run", Identity.of(whole.devices[2].store), [(keys_of(whole, 2), -1)] * 2)
    assert whole.coordinator.enrol(twice) == (2, 2)
    assert len(whole.journal.devices()) == 3


def gateway(folder, people):
    with DeviceStore.created(folder) as store:
        for person in people:
            store.add_history(person, History.of([("i1", 5.0, None), ("i2", 3.0, None)]))
    return Participant(DeviceStore.opened(folder), seeded=SEED)


def test_a_card_with_more_people_than_there_is_room_for_leaves_the_rest_to_others(tmp_path):
    about = deployed(tmp_path / "like", Experiment("fedrec", rounds=1), users=4).coordinator.charter.about
    server = Coordinator(founded(tmp_path / "server", about, identity=SERVER, seeded=SEED))
    six, three = (gateway(tmp_path / str(n), [f"p{i}" for i in range(n)]) for n in (6, 3))
    for _ in range(2):
        assert server.enrol(six.answer(server.hello()), "66") == ()
    assert (server.devices, server.journal.devices(), server.complete) == ({}, {}, False)
    assert server.journal.refusals() == {"server": {"too many": 2}}
    assert server.enrol(three.answer(server.hello()), "33") == (0, 1, 2)
    three.store.add_history("p3", History.of([("i1", 5.0, None)]))
    three.store.add_history("p4", History.of([("i1", 5.0, None)]))
    assert server.enrol(three.answer(server.hello()), "34") == (0, 1, 2)  # those who are in stay in
    assert {device.node for device in server.devices.values()} == {"34"}
    assert server.enrol(gateway(tmp_path / "1", ["ann"]).answer(server.hello())) == (3,)
    assert server.complete
    assert server.enrol(three.answer(server.hello()), "35") == (0, 1, 2)
    assert server.journal.refusals() == {"server": {"too many": 3, "late": 1}}
    assert server.devices == server.journal.devices() == Coordinator(server.journal).devices


def test_a_card_with_one_wrong_person_changes_nothing(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    device = Identity.of(whole.devices[1].store)
    stolen = replace(keys_of(whole, 2), letters=bytes(range(32)))
    fresh = PersonKeys.of(b"a" * 32, "run", "new")
    before = whole.journal.devices()
    whole.journal._db.execute("DELETE FROM devices WHERE slot = 0")  # so that there is room
    card = written_card("run", device, [(fresh, -1), (keys_of(whole, 1), -1), (stolen, -1)])
    assert whole.coordinator.enrol(card, "9") == ()
    assert whole.journal.devices() == {slot: before[slot] for slot in before if slot != 0}


# the proxy


LETTERS = {"n_min": 1, "size": 0, "each": 0}  # what a device signs that posts letters alone


def opened(folder, most=1 << 26):
    service = ProxyService.created(folder / "proxy", public_identity(SERVER))
    place = {"run": "run", "round": 0, "exchange": "e", "nonce": "n", "leg": 0}
    people = {str(slot): public_identity(bytes([slot]) * 32).hex() for slot in range(3)}
    head = {**place, "people": people, "invited": [0, 1, 2], "size": 0, "each": 0, "crowd": 1, "most": most}
    assert unframed(service.received(framed(Kind.OPEN, head, [], SERVER)), 1 << 20).kind is Kind.KEPT
    return service, place


def said(service, wire):
    frame = unframed(service.received(wire), 1 << 20)
    return frame.head.get("no", frame.kind.name)


@pytest.mark.parametrize("readers", [["x"], [None], [-1], [1 << 70], [1.5], [True], [[1]], 3, [1, 2]])
def test_a_letter_to_nobody_is_malformed_and_leaves_nothing(readers, tmp_path):
    service, place = opened(tmp_path)
    wire = framed(
        Kind.POST, {**place, **LETTERS, "slot": 1, "readers": readers}, [b"", b"letter"], b"\x01" * 32
    )
    assert said(service, wire) == "malformed"
    good = framed(Kind.POST, {**place, **LETTERS, "slot": 1, "readers": [2]}, [b"", b"letter"], b"\x01" * 32)
    assert said(service, good) == "KEPT"
    assert service.refusals() == {"malformed": 1}
    service.close()


def test_the_proxy_takes_no_more_than_the_server_said(tmp_path):
    service, place = opened(tmp_path, most=100_000)
    head = {**place, **LETTERS, "slot": 1, "readers": [2]}

    def letter(length, **changed):
        return framed(Kind.POST, {**head, **changed}, [b"", bytes(length)], b"\x01" * 32)

    assert service.expected(letter(5)[:300]) == (SMALL + 100_000, True)
    assert service.expected(letter(5, nonce="guessed")[:300]) == (SMALL, False)
    assert service.expected(b"no frame") == (SMALL, False)
    assert said(service, letter(100_000 + SMALL)) == "oversized"
    assert said(service, letter(SMALL, nonce="guessed")) == "oversized"
    assert said(service, letter(100_000)) == "KEPT"
    assert said(service, framed(Kind.FORGET, place, [], SERVER)) == "KEPT"
    assert service.expected(letter(5)[:300]) == (SMALL, False)
    service.close()


REPORTS = Experiment("fmf-ldp", rounds=1, settings={"k": 4, "n_min": 5})


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"crowd": 1}, "crowd too small"),
        ({"crowd": 4}, "crowd too small"),
        ({"size": 4 * 52, "each": 1}, "wrong shape"),
    ],
)
def test_a_server_that_asks_the_proxy_for_less_than_the_method_promises_gets_no_report(
    asked, named, tmp_path
):
    whole = deployed(tmp_path, REPORTS, users=8)
    link, place = whole.link(), whole.coordinator.step.place
    (terms,) = whole.proxy._db.execute("SELECT size, amount, crowd, most FROM exchanges").fetchall()
    terms = dict(zip(("size", "each", "crowd", "most"), terms, strict=True))
    assert terms["size"] * terms["each"] == 4 * 52
    assert terms["crowd"] == 5
    link.forget(place)
    people = {slot: device.identity for slot, device in whole.coordinator.devices.items()}
    link.open(place, people, [0], **{**terms, **asked})
    answer = unframed(whole.devices[0].answer(whole.coordinator.due()[0]), 1 << 30)
    assert answer.kind is Kind.REFUSAL
    assert whole.proxy.refusals() == {named: 1}
    batch = link.collect(place)
    assert (batch.people, batch.reports) == (0, ())
    assert whole.proxy._db.execute("SELECT COUNT(*) FROM reports").fetchone() == (0,)


def test_a_device_declines_to_report_among_fewer_than_the_method_promises(tmp_path):
    whole = deployed(tmp_path, REPORTS, users=8)
    frame = unframed(whole.coordinator.due()[0], 1 << 30)
    for invited, kind in ((4, Kind.REFUSAL), (5, Kind.ANSWER)):
        bent = framed(frame.kind, {**frame.head, "invited": invited}, frame.parts, SERVER)
        answer = unframed(whole.devices[0].answer(bent), 1 << 30)
        assert answer.kind is kind
        assert answer.head.get("no", "crowd too small") == "crowd too small"


def test_a_proxys_file_that_is_none_or_of_another_version_is_one_line(tmp_path):
    service, _ = opened(tmp_path)
    service._db.execute("PRAGMA user_version = 9")
    service.close()
    with pytest.raises(TacitError, match="another version"):
        ProxyService.opened(tmp_path / "proxy")
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "proxy.sqlite").write_bytes(b"no database" * 500)
    with pytest.raises(TacitError, match="cannot be read"):
        ProxyService.opened(tmp_path / "junk")


def test_a_list_of_keys_knows_no_person(tmp_path):
    """What the operator may see names nobody: no raw id of a person or an item of a history."""
    from tacit.deploy.operator_view import seen

    whole = deployed(tmp_path, FEDREC, users=4)
    assert whole.run(SHORT)
    told = json.dumps(seen(tmp_path / "server"))
    assert not any(f'"u{slot}"' in told for slot in range(4))
