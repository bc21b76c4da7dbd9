"""Clear counts, overflow, wrong shares and unlucky ends: what is visible, and what an aborted sum reveals."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.protect.distributed import skellam
from tacit.protect.grid import grid
from tacit.protect.protection import Draws, chain
from tacit.rng import SeededKeys
from tacit.transport.secure_sum import wire as messages
from tacit.transport.secure_sum.carrier import secure_sum
from tacit.transport.secure_sum.layout import Layout, ring_for
from tacit.transport.secure_sum.masks import add_masks
from tacit.transport.secure_sum.server import Phase
from tacit.transport.secure_sum.terms import SumAborted
from tacit.types import RoundFacts, Steps


def test_no_message_but_the_masked_vector_depends_on_the_data(cohorts):
    """Counts, weights and losses that travel in clear would show up as a difference here."""
    generator = np.random.default_rng(4)
    one, other = (
        cohorts(vectors={user: generator.integers(0, 2**32, 6).astype("<u4") for user in range(12)})
        for _ in range(2)
    )
    for played in (one, other):
        played.up_to(Phase.DONE)
    for (phase, user, left), (_, _, right) in zip(one.heard, other.heard, strict=True):
        assert len(left) == len(right)
        if phase is not Phase.INPUTS:
            assert left == right
            continue
        difference = np.frombuffer(left[messages.HEAD :], "<u4") - np.frombuffer(
            right[messages.HEAD :], "<u4"
        )
        assert np.array_equal(difference, one.vectors[user] - other.vectors[user])


def test_a_masked_vector_of_zeros_looks_uniform(cohorts):
    """Bits of 12 x 400 masked zeros: the mean within five deviations of one half."""
    zeros = {user: np.zeros(400, dtype="<u4") for user in range(12)}
    cohort = cohorts(length=400, vectors=zeros)
    cohort.up_to(Phase.VOTES)
    sent = b"".join(wire[messages.HEAD :] for phase, _, wire in cohort.heard if phase is Phase.INPUTS)
    bits = np.unpackbits(np.frombuffer(sent, dtype=np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(bits))


def test_a_server_that_opened_every_seed_still_reads_nobody(cohorts):
    """At the end it knows all self masks; what it heard from one person is masked by the pairs still."""
    zeros = {user: np.zeros(400, dtype="<u4") for user in range(12)}
    cohort = cohorts(length=400, vectors=zeros)
    cohort.up_to(Phase.INPUTS)
    seeds = {user: client.state.seed for user, client in cohort.clients.items()}
    cohort = cohorts(length=400, vectors=zeros)
    cohort.up_to(Phase.DONE)
    assert not cohort.server.total.any()
    sent = {user: wire[messages.HEAD :] for phase, user, wire in cohort.heard if phase is Phase.INPUTS}
    for user, body in sent.items():
        left = np.frombuffer(body, dtype="<u4").copy()
        add_masks(left, [(seeds[user], -1)])
        assert (left != 0).mean() > 0.99


@pytest.mark.parametrize("last", [Phase.VOTES, Phase.OPENINGS])
def test_a_sum_that_was_aborted_reveals_nothing(cohorts, last):
    """All votes, or all openings but one too few: the total the server holds is still masked."""
    zeros = {user: np.zeros(400, dtype="<u4") for user in range(12)}
    cohort = cohorts(length=400, vectors=zeros)
    outgoing = cohort.up_to(last)
    plan = cohort.server._roster.plan
    enough = (plan.quorum if last is Phase.VOTES else plan.threshold) - 1
    for user in list(outgoing)[:enough]:
        cohort.server.receive(user, cohort.clients[user].receive(outgoing[user]))
    with pytest.raises(SumAborted) as caught:
        cohort.server.advance()
    assert caught.value.reason.value in {"too few votes", "too few openings"}
    bits = np.unpackbits(cohort.server.total.view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(bits))


def test_drop_outs_while_unmasking_up_to_the_threshold_cost_nothing(cohort):
    outgoing = cohort.up_to(Phase.OPENINGS)
    plan = cohort.server._roster.plan
    present = list(outgoing)[plan.degree - plan.threshold :]
    for user in present:
        cohort.server.receive(user, cohort.clients[user].receive(outgoing[user]))
    cohort.server.advance()
    expected = np.sum(list(cohort.vectors.values()), axis=0, dtype=np.uint32)
    assert np.array_equal(cohort.server.total, expected)


@pytest.mark.parametrize("kind", ["seed", "key"])
def test_a_wrong_share_is_noticed_and_ends_the_sum(cohorts, kind):
    cohort = cohorts(clients=12)
    outgoing = cohort.up_to(Phase.VOTES) if kind == "seed" else cohort.up_to(Phase.INPUTS)
    if kind == "key":  # somebody drops out, so that a mask key must be put together
        for user in list(outgoing)[1:]:
            cohort.server.receive(user, cohort.clients[user].receive(outgoing[user]))
        outgoing = cohort.server.advance()
    for _ in range(2):
        for user in outgoing:
            wire = cohort.clients[user].receive(outgoing[user])
            if cohort.server.phase is Phase.OPENINGS and user == 5:
                wire = bytearray(wire)
                wire[-33 * (len(wire) // 33) + 20] ^= 1  # a byte of its first share
                wire = bytes(wire)
            cohort.server.receive(user, wire)
        if cohort.server.phase is Phase.VOTES:
            outgoing = cohort.server.advance()
    with pytest.raises(SumAborted) as caught:
        cohort.server.advance()
    assert caught.value.reason.value == "wrong share"


def test_somebody_who_shared_another_key_than_its_own_and_left_is_noticed(cohort):
    """All shares agree with one another, but not with the public key that the others used."""
    for user, wire in cohort.adverts().items():
        cohort.server.receive(user, wire)
    liar = cohort.clients[0]
    liar.state = replace(liar.state, masks_key=b"another key than the one it told"[:32])
    outgoing = cohort.server.advance()
    while cohort.server.phase is not Phase.OPENINGS or not cohort.server._openings:
        for user, wire in outgoing.items():
            if user != 0 or cohort.server.phase is Phase.SHARES:
                cohort.server.receive(user, cohort.clients[user].receive(wire))
        if cohort.server.phase is not Phase.OPENINGS:
            outgoing = cohort.server.advance()
    with pytest.raises(SumAborted) as caught:
        cohort.server.advance()
    assert caught.value.reason.value == "wrong share"


def test_overflow_is_refused_before_anything_is_sent():
    """1,500 clients at 7.9 on 2^22 levels overflow 32 bits: here another ring is taken, or none."""
    shapes = {"items": (3706, 20)}
    assert ring_for(Steps(2.0**-19, 8 * 2.0**19), 500, 77_826) == 32
    assert ring_for(Steps(2.0**-19, 8 * 2.0**19), 1500, 77_826) == 64
    facts = RoundFacts(0, "train", 6040, 6040, 0, shapes)
    with pytest.raises(TacitError, match="overflow"):
        secure_sum().carrying(chain(grid(bits=32)).steps()).server_session(facts, None)  # no limit was set
    assert secure_sum().carrying(chain(grid(bits=32, limit=1024.0)).steps()).server_session(facts, None)


@pytest.mark.parametrize(("largest", "ring"), [(10_922, 16), (10_923, 32)])
def test_three_people_at_their_limit_keep_the_sign_of_their_sum(largest, ring):
    """3 x 10,922 is the most that 16 bits with a sign hold; one step more takes the next ring."""
    assert ring_for(Steps(1.0, float(largest)), 3, 2) == ring
    update = {"w": np.tile([[largest, -largest]], (3, 1))}
    layout = Layout.of(update, RoundFacts(0, "train", 3, 3, 3))
    vectors = [layout.vector(update, client, ring) for client in range(3)]
    total = np.sum(vectors, axis=0, dtype=vectors[0].dtype)
    assert layout.arrays(total)["w"].tolist() == [[3 * largest, -3 * largest]]


@pytest.mark.parametrize("vector", [np.zeros(6, "<u8"), np.zeros(6, "<u2"), np.zeros(7, "<u4")])
def test_a_vector_of_another_ring_or_length_is_not_summed(cohort, vector):
    cohort.vectors[3] = vector
    with pytest.raises(SumAborted) as caught:
        cohort.client(3)
    assert caught.value.reason.value == "overflow"


def test_everybody_pushing_one_number_the_same_way_does_not_wrap_around():
    """Rotated together, a bias as long as the clip norm lies on all entries: 100 of them fit 16 bits.

    Rotated by itself it would stay one number of 1,000 steps, and a hundred of those do not fit.
    """
    stage = skellam(noise=0.05, honest=100, clip=3.0, steps=1000)
    update = {"bias": np.full((100, 1), 3.0), "w": np.zeros((100, 10_000))}
    draws = Draws(SeededKeys(1), np.arange(100, dtype=np.int32), "noise", 0)
    facts = RoundFacts(0, "train", 100, 100, 100, {"bias": (1,), "w": (10_000,)})
    sent = stage.noised(update, None, None, draws)
    layout = Layout.of(sent, facts)
    ring = ring_for(stage.steps(None), 100, layout.length)
    assert ring == 16
    total = np.sum([layout.vector(sent, client, ring) for client in range(100)], axis=0, dtype=np.uint16)
    summed = {name: array[0] for name, array in layout.arrays(total).items()}
    back, _ = stage.on_server(summed, None, None, facts, None)
    assert back["bias"][0] == pytest.approx(300.0, abs=1.0)  # noise: 0.15 a number
    assert np.abs(back["w"]).max() < 1.5


def test_no_client_can_send_more_than_its_range():
    wild = {"w": np.array([[1e30, -7.0, 5000.0]])}
    sent = grid(bits=8, limit=100.0).on_client(wild, None, None, np.zeros(1, "u8"))["w"]
    assert sent.tolist() == [[100 * 256, -7 * 256, 100 * 256]]


@pytest.mark.parametrize("cut", [0, 3, 5, 40, -1])
def test_bytes_that_cannot_be_ours_are_one_clear_line(cohort, refusal, cut):
    outgoing = cohort.up_to(Phase.SHARES)
    wire = outgoing[2][:cut] if cut >= 0 else outgoing[2] + b"x"
    assert refusal(cohort.clients[2], wire) in {"malformed", "too few keys"}


def test_a_server_is_not_moved_by_messages_that_are_not_due(cohort):
    outgoing = cohort.up_to(Phase.INPUTS)
    right = cohort.clients[2].receive(outgoing[2])
    cohort.server.receive(2, right)
    before = cohort.server.total.copy()
    cohort.server.receive(2, right)
    cohort.server.receive(3, right[:-1])
    cohort.server.receive(99, right)
    assert np.array_equal(cohort.server.total, before)
    assert set(cohort.server.ignored) == {2, 3, 99}
