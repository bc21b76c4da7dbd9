"""What a server asks is held against the charter: rounds, slots, how many people there are and who."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.accuracy import Accuracy
from tacit.deploy.cards import PersonKeys
from tacit.deploy.charter import digest
from tacit.deploy.limits import Limits
from tacit.deploy.wire import KEY_BYTES, Kind, framed, public_identity, unframed
from tacit.federation.sampling import Everyone, FixedSize, Poisson
from tacit.testing.deployment import SERVER, deployed

FEDREC = Experiment("fedrec", rounds=2, settings={"sums": "grid"})
SUMS = Experiment("fedmf", rounds=3, transport="secure-sum", data="demo:users=12,items=15,mean=5")


def asking(whole, slot=0):
    """Ask the device of a slot what the server would, with another head or other parts."""
    invited = unframed(whole.coordinator.due()[slot], 1 << 30)

    def ask(parts=None, **head):
        changed = {**invited.head, **head}
        wire = framed(invited.kind, changed, parts or invited.parts, SERVER)
        answer = unframed(whole.devices[slot].answer(wire), 1 << 30)
        return "answered" if answer.kind is Kind.ANSWER else answer.head["no"]

    return invited, ask


@pytest.mark.parametrize("round", [-7, -2, -1, 2, 10**6])
def test_rounds_that_the_charter_does_not_have_are_declined(tmp_path, round):
    """fedrec has no set-up, and here two rounds."""
    whole = deployed(tmp_path, FEDREC, users=4)
    _, ask = asking(whole)
    assert ask(round=round, nonce="another") == "not what the charter says"
    assert not whole.devices[0].store.sent()
    assert ask() == "answered"


def test_no_numbering_of_rounds_gets_past_a_limit(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4)
    store = whole.devices[0].store
    store.set_limits(Limits(per_run=1, per_day=1, separation=5))
    _, ask = asking(whole)
    told = [ask(round=round, nonce=f"n{round}") for round in range(-8, 8)]
    assert told.count("answered") == 1
    assert {line.round for line in store.sent()} == {0}


def test_accuracy_is_asked_for_when_it_is_due_and_not_before(tmp_path):
    whole = deployed(tmp_path, FEDREC, users=4, accuracy=Accuracy(1.0, 1))
    _, ask = asking(whole)
    assert ask(exchange="accuracy", nonce="n") == "not what the charter says"


def test_a_person_keeps_one_slot_for_the_whole_run(tmp_path):
    """What is drawn once and kept is drawn by slot: under another one a server would get fresh coins."""
    whole = deployed(tmp_path, FEDREC, users=4)
    _, ask = asking(whole)
    assert ask() == "answered"
    assert ask(round=1, nonce="n", slot=2) == "not what the charter says"
    whole.restart_device(0)
    assert ask(round=1, nonce="n", slot=2) == "not what the charter says"
    assert ask(round=1, nonce="n") == "answered"


@pytest.mark.parametrize(
    "head",
    [{"slot": 12}, {"slot": -1}, {"invited": 13}, {"invited": 0}, {"population": 11}, {"population": 99}],
)
def test_more_people_than_the_charter_counts_are_declined(tmp_path, head):
    whole = deployed(tmp_path, SUMS)
    _, ask = asking(whole)
    assert ask(**head) == "not what the charter says"
    assert ask() == "answered"


def cut(listed):
    return [listed[at : at + KEY_BYTES] for at in range(0, len(listed), KEY_BYTES)]


def invented(count):
    return [public_identity(bytes([7 + number]) * 32) for number in range(count)]


LISTS = {
    "people beyond the charter": lambda keys: [*keys, *invented(3)],
    "nobody but the victim": lambda keys: keys[:1],
    "somebody missing": lambda keys: keys[:-1],
    "somebody twice": lambda keys: [*keys[:-1], keys[1]],
    "another in the victim's place": lambda keys: [*invented(1), *keys[1:]],
    "in another order": lambda keys: [keys[1], keys[0], *keys[2:]],
    "a key cut short": lambda keys: [*keys[:-1], keys[-1][:-1]],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_people_that_does_not_fit_the_charter_is_declined(tmp_path, name):
    whole = deployed(tmp_path, SUMS)
    invited, ask = asking(whole)
    listed = b"".join(LISTS[name](cut(invited.parts[3])))
    assert ask(parts=[*invited.parts[:3], listed]) == "not what the charter says"
    assert not whole.devices[0].store.sent()
    assert ask() == "answered"


def test_nobody_is_replaced_once_a_list_was_shown(tmp_path):
    """Invented people would have to be there from the first sum on, for everybody and every round."""
    whole = deployed(tmp_path, SUMS)
    invited, ask = asking(whole)
    assert ask() == "answered"
    keys = cut(invited.parts[3])
    for others in (keys[:1] + invented(11), [*keys[:-1], *invented(1)]):
        parts = [*invited.parts[:3], b"".join(others)]
        assert ask(parts=parts, round=1, nonce="n") == "foreign server"
        whole.restart_device(0)
    assert ask(round=1, nonce="n") == "answered"


def test_a_cohort_said_to_be_small_counts_as_the_charter_counts_it(tmp_path):
    """Else a server would keep its friends, and five per cent of them would seem fewer."""
    whole = deployed(tmp_path, SUMS)
    _, ask = asking(whole)
    assert ask(invited=4) == "answered"
    (part,) = whole.devices[0]._sums.under_way.values()
    assert part.terms.invited == 12


def test_a_sum_goes_on_without_somebody_whose_key_was_revoked(tmp_path):
    whole = deployed(tmp_path, SUMS)
    whole.coordinator.revoke(5)
    assert whole.run()
    assert [round["answered"] for round in whole.journal.rounds()] == [11, 11, 11]


@pytest.mark.parametrize("sampling", [Everyone(), FixedSize(7), FixedSize(0.3), Poisson(0.5), Poisson(300)])
def test_the_least_a_draw_can_ask_is_less_than_any_draw(sampling):
    from tacit.rng import SeededKeys

    people = np.arange(400, dtype=np.int32)
    drawn = [len(sampling.draw(people, round, SeededKeys(3))) for round in range(200)]
    assert 0 < sampling.least(400) <= min(drawn)
    if not isinstance(sampling, Poisson):
        assert {sampling.least(400)} == set(drawn)


def test_another_leg_is_no_invitation(tmp_path):
    whole = deployed(tmp_path, SUMS)
    _, ask = asking(whole)
    assert ask(leg=1) == "unreadable"
    assert ask(model=digest(b"another")) == "foreign model"


def hello_of_another_run(whole, name):
    charter = whole.coordinator.charter
    other = replace(charter, about=replace(charter.about, run=name))
    return framed(Kind.HELLO, {"run": name}, [other.announced.encoded()], SERVER)


def test_a_second_run_is_joined_when_the_owner_says_so(tmp_path):
    """Else every limit per run would begin anew whenever a server founds anew."""
    whole = deployed(tmp_path, FEDREC, users=4)
    device = whole.devices[0]
    assert unframed(device.answer(hello_of_another_run(whole, "early")), 1 << 20).kind is Kind.CARD
    _, ask = asking(whole)
    assert ask() == "answered"  # whoever joined two runs answers in one
    for name in ("early", "late"):
        refused = unframed(device.answer(hello_of_another_run(whole, name)), 1 << 20)
        assert refused.head["no"] == "limit"
    person = PersonKeys.of(device.store.secret(), "early", "u0").public.hex()
    assert ask(run="early", person=person) == "limit"
    device.store.set_limits(Limits().with_setting("runs=2"))
    assert ask(run="early", person=person) == "answered"
    assert unframed(device.answer(hello_of_another_run(whole, "late")), 1 << 20).head["no"] == "limit"
    assert "late" not in device.store.runs()
    assert ask(round=1, nonce="n") == "answered"
