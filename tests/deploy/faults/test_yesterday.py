"""A device's database put back to an older one, and devices that pause or end in the middle of something."""

import shutil
from dataclasses import replace

import pytest

from tacit.config.experiment import Experiment
from tacit.deploy.limits import Limits
from tacit.deploy.wire import Kind, framed, unframed
from tacit.testing.deployment import SERVER, deployed, participant

NOISY = Experiment("dp-fedmf", rounds=4, settings={"clients": 1.0})
SUMS = Experiment("fedmf", rounds=4, transport="secure-sum", data="demo:users=12,items=15,mean=5")


def told(device, wire):
    answer = unframed(device.answer(wire), 1 << 30)
    return "answered" if answer.kind is Kind.ANSWER else answer.head["no"]


def about_round(wire, round):
    frame = unframed(wire, 1 << 30)
    return framed(frame.kind, {**frame.head, "round": round, "nonce": f"n{round}"}, frame.parts, SERVER)


def back_to_yesterday(whole, rounds):
    """Copy device 0's database, let it answer these rounds, put the copy back, resume."""
    folder, question = whole.stores[0], whole.coordinator.due()[0]
    whole.devices[0].store.close()
    shutil.copy(folder / "device.sqlite", folder.parent / "yesterday.sqlite")
    whole.devices[0] = participant(folder, whole, whole.coordinator.charter.seeded)
    for round in rounds:
        assert told(whole.devices[0], about_round(question, round)) == "answered"
    whole.devices[0].store.close()
    for side in ("-wal", "-shm"):
        (folder / f"device.sqlite{side}").unlink(missing_ok=True)
    shutil.copy(folder.parent / "yesterday.sqlite", folder / "device.sqlite")
    whole.devices[0] = participant(folder, whole, whole.coordinator.charter.seeded)
    assert told(whole.devices[0], about_round(question, rounds[-1])) == "paused"
    whole.devices[0].store.set_paused("")
    return whole.devices[0], question


@pytest.mark.parametrize("experiment", [NOISY, SUMS])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_nothing_is_answered_a_second_time_after_resuming(tmp_path, experiment, order):
    """Whatever a server asks first: what this device said in the lost rounds, only the server knows."""
    device, question = back_to_yesterday(deployed(tmp_path, experiment, seeded=None), [0, 2])
    for round in order:
        assert told(device, about_round(question, round)) == "answered before, to another question"
    assert told(device, about_round(question, 3)) == "answered"
    assert [(line.round, line.known) for line in device.store.sent()] == [(1, False), (2, False), (3, True)]


def test_lost_answers_count_against_limits(tmp_path):
    whole = deployed(tmp_path, NOISY, users=4, seeded=None)
    whole.devices[0].store.set_limits(Limits(per_run=1))
    device, question = back_to_yesterday(whole, [0])
    assert told(device, about_round(question, 0)) == "answered before, to another question"
    assert told(device, about_round(question, 1)) == "limit"
    device.store.set_limits(Limits(epsilon={"server": 1e6}))
    assert told(device, about_round(question, 1)) == "limit"  # nobody knows what the lost answer promised
    device.store.set_limits(Limits(per_run=2))
    assert told(device, about_round(question, 1)) == "answered"


def test_sums_of_one_person_go_forward_only(tmp_path):
    """A sum of an older round could be subtracted from one that was opened."""
    whole = deployed(tmp_path, SUMS)
    device, question = whole.devices[0], whole.coordinator.due()[0]
    assert told(device, about_round(question, 2)) == "answered"
    assert told(device, about_round(question, 1)) == "sum aborted"
    assert told(device, about_round(question, 3)) == "answered"


@pytest.mark.parametrize("leg", [1, 2, 3, 4])
def test_a_device_restarted_within_a_sum_has_dropped_out_of_it(tmp_path, leg):
    whole = deployed(tmp_path, Experiment("fedmf", rounds=2, transport="secure-sum:0.2:0.05", data=SUMS.data))
    before = []

    def going(slot, wire):
        step = whole.coordinator.step
        if slot == 3 and step.place.round == 0 and step.place.leg == leg and not before:
            before.append(wire)
            whole.restart_device(3)
            assert told(whole.devices[3], wire) == "out of turn"
        return wire

    assert whole.run(going=going)
    assert before
    assert [round["answered"] for round in whole.journal.rounds()] == [12 - (leg < 3), 12]
    assert [line.round for line in whole.devices[3].store.sent()] == [0, 1]


def test_a_paused_device_says_nothing_not_even_again(tmp_path):
    whole = deployed(tmp_path, NOISY, users=4)
    device, question = whole.devices[0], whole.coordinator.due()[0]
    assert told(device, question) == "answered"
    device.store.set_paused("paused by its owner")
    assert told(device, question) == "paused"
    device.store.set_paused("")
    assert told(device, question) == "answered"


def test_a_pause_ends_a_sum_under_way(tmp_path):
    whole = deployed(tmp_path, SUMS)
    for slot, wire in whole.coordinator.due().items():
        assert whole.coordinator.receive(slot, whole.devices[slot].answer(wire)) is None
    whole.coordinator.advance()
    whole.devices[0].store.set_paused("paused by its owner")
    assert told(whole.devices[0], whole.coordinator.due()[0]) == "paused"


@pytest.mark.parametrize("experiment", [NOISY, SUMS])
def test_an_answer_counts_against_the_bytes_of_a_day(tmp_path, experiment):
    whole = deployed(tmp_path, replace(experiment, rounds=1))
    device, question = whole.devices[0], whole.coordinator.due()[0]
    device.store.set_limits(Limits(bytes_per_day=len(question) + 10))
    assert told(device, question) == "limit"
    assert not device.store.sent()
    device.store.set_limits(Limits(bytes_per_day=len(question) + 10_000))
    assert told(device, question) == "answered"
    (line,) = device.store.sent()
    assert line.up_bytes + line.down_bytes <= len(question) + 10_000
