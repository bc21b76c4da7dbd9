"""Share double release and split views: no client tells both kinds of share, no two lists are both opened."""

import contextlib

import numpy as np
import pytest

from tacit.transport.secure_sum import wire as messages
from tacit.transport.secure_sum.client import Client, Masked, pair_seed, signed
from tacit.transport.secure_sum.masks import add_masks
from tacit.transport.secure_sum.plan import Rates
from tacit.transport.secure_sum.server import Phase
from tacit.transport.secure_sum.terms import SumAborted


def voted(cohort, users, survivors):
    """These clients' votes after being shown a list of survivors; those that refuse give none."""
    roster = cohort.server._roster
    wire = messages.survivors_message(np.array(survivors), roster.plan.clients)
    votes = {}
    for user in users:
        try:
            votes[user] = messages.unframed(messages.Kind.VOTE, cohort.clients[user].receive(wire))
        except SumAborted:
            continue
    return votes


def forged_vote(cohort, user, survivors):
    """A corrupt client signs whatever the server likes."""
    roster = cohort.server._roster
    everyone = np.arange(roster.plan.clients)
    return signed(cohort.identities[user], roster.vote(everyone, np.array(survivors)))


def corrupt_shares(cohort, user):
    state = cohort.clients[user].state
    assert isinstance(state, Masked)
    return state.held


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("cut", range(0, 11, 2))
def test_split_views_open_one_list_and_one_secret_at_most(cohort, cut, mixed):
    """Some hear that the victim is alive, others that it is gone; the corrupt ones vote for both.

    The server hands each group its own votes, or (``mixed``) whatever was signed by anybody.
    """
    cohort.up_to(Phase.VOTES)
    roster = cohort.server._roster
    plan, everyone = roster.plan, list(range(roster.plan.clients))
    victim, corrupt = 0, list(range(1, 1 + plan.corrupt))
    honest = [user for user in everyone if user not in {victim, *corrupt}]
    colluding = {user for user in corrupt if victim in corrupt_shares(cohort, user)}
    views = (([victim, *honest[:cut]], everyone), (honest[cut:], everyone[1:]))
    told = [set(colluding), set(colluding)]
    answered = [0, 0]
    cast = [voted(cohort, group, survivors) for group, survivors in views]
    for view, (group, survivors) in enumerate(views):
        votes = cast[view] | {user: forged_vote(cohort, user, survivors) for user in corrupt}
        if mixed:
            votes |= {user: vote for user, vote in cast[1 - view].items() if user in survivors}
        for user in group:
            opened = None
            with contextlib.suppress(SumAborted):
                opened = cohort.clients[user].receive(messages.votes_message(votes))
            if opened is None:
                continue
            answered[view] += 1
            neighbours = roster.graph.neighbours(user)
            shares = dict(zip(neighbours, messages.read_openings(opened, len(neighbours)), strict=True))
            if shares.get(victim) is not None:
                told[view].add(user)
    assert min(answered) == 0
    assert min(map(len, told)) < plan.threshold
    sizes = [len(group) + len(corrupt) for group, _ in views]
    if not mixed:
        assert [bool(count) for count in answered] == [size >= plan.quorum for size in sizes]


def test_votes_over_another_list_of_sharers_are_refused(cohorts, refusal):
    """One client is told that somebody far away never shared; all agree on who survived."""
    cohort = cohorts(clients=60, rates=Rates(dropout=0.05, adversary=0.02))
    outgoing = cohort.up_to(Phase.INPUTS)
    roster = cohort.server._roster
    far = next(p for p in range(1, 60) if p not in roster.graph.neighbours(0))
    _, letters = messages.read_delivery(outgoing[0], roster, 0)
    outgoing[0] = messages.delivery(np.array([p for p in range(60) if p != far]), list(letters.values()), 60)
    for user, wire in outgoing.items():
        cohort.clients[user].receive(wire)
    survivors = [p for p in range(60) if p != far]
    votes = voted(cohort, survivors, survivors)
    del votes[0]
    assert refusal(cohort.clients[0], messages.votes_message(votes)) == "split view"
    assert cohort.clients[survivors[1]].receive(messages.votes_message(votes))


def test_of_everybody_one_kind_of_share_is_told_the_key_only_of_those_who_left(cohorts):
    cohort = cohorts(clients=12, rates=Rates(dropout=0.2, adversary=0.0))
    outgoing = cohort.up_to(Phase.INPUTS)
    gone = 5
    for phase in (Phase.INPUTS, Phase.VOTES):
        assert cohort.server.phase is phase
        for user, wire in outgoing.items():
            if user != gone:
                cohort.server.receive(user, cohort.clients[user].receive(wire))
        outgoing = cohort.server.advance()
    told = 0
    for user, wire in outgoing.items():
        held = cohort.clients[user].state.held
        opened = cohort.clients[user].receive(wire)
        for other, pair in held.items():
            right, wrong = (pair.key, pair.seed) if other == gone else (pair.seed, pair.key)
            assert right in opened
            assert wrong not in opened
            told += 1
    assert told == 11 * len(cohort.server._roster.graph.neighbours(0))


def test_the_threshold_alone_keeps_one_of_the_two_secrets(cohorts):
    """Even if every neighbour answered and the corrupt ones told both shares, one kind stays short."""
    for rates in (Rates(dropout=0.1, adversary=0.1), Rates(dropout=0.05, adversary=0.02)):
        cohort = cohorts(clients=60, rates=rates)
        cohort.up_to(Phase.SHARES)
        plan = cohort.server._roster.plan
        allowed = plan.corrupt if plan.degree == 59 else plan.threshold - plan.degree // 2 - 1
        assert 2 * (plan.threshold - allowed) > plan.degree - allowed


def test_a_second_list_gets_no_answer(cohort, refusal):
    outgoing = cohort.up_to(Phase.VOTES)
    client = cohort.clients[2]
    client.receive(outgoing[2])
    assert refusal(client, outgoing[2]) == "out of turn"
    assert refusal(client, outgoing[2]) == "out of turn"


@pytest.mark.parametrize("phase", [Phase.KEYS, Phase.INPUTS, Phase.DONE])
def test_nobody_starts_twice(cohort, phase):
    """Two rounds of keys from one client could serve two sums of one vector."""
    cohort.up_to(phase)
    if phase is Phase.KEYS:
        cohort.adverts()
    with pytest.raises(SumAborted, match="started already"):
        cohort.clients[2].start()


def test_shares_are_opened_once(cohort, refusal):
    outgoing = cohort.up_to(Phase.OPENINGS)
    cohort.clients[2].receive(outgoing[2])
    assert refusal(cohort.clients[2], outgoing[2]) == "out of turn"


@pytest.mark.parametrize("start", [Phase.SHARES, Phase.INPUTS, Phase.VOTES, Phase.OPENINGS])
@pytest.mark.parametrize("kind", list(messages.Kind))
def test_messages_out_of_turn_end_the_session(cohort, refusal, start, kind):
    due = {
        Phase.SHARES: messages.Kind.ROSTER,
        Phase.INPUTS: messages.Kind.DELIVERY,
        Phase.VOTES: messages.Kind.SURVIVORS,
        Phase.OPENINGS: messages.Kind.VOTES,
    }[start]
    outgoing = cohort.up_to(start)
    if kind is due:
        return
    wire = messages.framed(kind, outgoing[2][messages.HEAD :])
    assert refusal(cohort.clients[2], wire) == "out of turn"
    assert refusal(cohort.clients[2], outgoing[2]) == "out of turn"


def test_votes_are_counted_by_person_and_for_the_right_lists(cohort, refusal):
    outgoing = cohort.up_to(Phase.OPENINGS)
    roster = cohort.server._roster
    votes = dict(messages.read_votes(outgoing[2]))
    few = dict(list(votes.items())[: roster.plan.quorum - 1])
    packed = messages.votes_message(few)
    assert refusal(cohort.clients[2], packed) == "too few votes"
    assert refusal(cohort.clients[3], packed + packed[messages.HEAD :]) == "too few votes"
    swapped = dict(zip(votes, reversed(list(votes.values())), strict=True))
    assert refusal(cohort.clients[4], messages.votes_message(swapped)) == "split view"
    assert cohort.clients[5].receive(outgoing[5])


def test_people_who_are_gone_do_not_vote(cohorts, refusal):
    cohort = cohorts(clients=12, rates=Rates(dropout=0.2, adversary=0.0))
    cohort.up_to(Phase.VOTES)
    survivors = list(range(11))
    votes = voted(cohort, range(11), survivors)
    votes[11] = forged_vote(cohort, 11, survivors)
    assert refusal(cohort.clients[0], messages.votes_message(votes)) == "stranger"


def test_nobody_comes_back_from_the_dead(cohorts, refusal):
    """Survivors must have shared: a mask key is opened for the gone, so the gone cannot count."""
    cohort = cohorts(clients=12, rates=Rates(dropout=0.2, adversary=0.0))
    outgoing = cohort.up_to(Phase.SHARES)
    for user in range(11):
        cohort.server.receive(user, cohort.clients[user].receive(outgoing[user]))
    delivered = cohort.server.advance()
    cohort.clients[0].receive(delivered[0])
    everyone = messages.survivors_message(np.arange(12), 12)
    assert refusal(cohort.clients[0], everyone) == "revived"


@pytest.mark.parametrize("left_out", ["sharers", "survivors"])
def test_a_client_that_was_left_out_says_no_more(cohort, refusal, left_out):
    if left_out == "survivors":
        cohort.up_to(Phase.VOTES)
        wire = messages.survivors_message(np.arange(1, 12), 12)
    else:
        cohort.up_to(Phase.INPUTS)
        roster = cohort.server._roster
        wire = messages.delivery(np.arange(1, 12), [], roster.plan.clients)
        wire += bytes(82 * sum(other != 0 for other in roster.graph.neighbours(0)))
    assert refusal(cohort.clients[0], wire) == "left out"


@pytest.mark.parametrize(
    ("phase", "reason"), [(Phase.INPUTS, "too few sharers"), (Phase.VOTES, "too few inputs")]
)
def test_a_crowd_said_to_have_shrunk_too_far_gets_no_answer(cohorts, refusal, phase, reason):
    """Fewer survivors than the stated crowd: the client counts for itself."""
    cohort = cohorts(clients=40, rates=Rates(dropout=0.1, adversary=0.05, crowd=36))
    cohort.up_to(phase)
    roster = cohort.server._roster
    left = np.arange(roster.plan.minimum - 1)
    assert roster.plan.minimum == 36
    near = set(roster.graph.neighbours(0)) & set(left.tolist())
    wire = messages.survivors_message(left, 40)
    if phase is Phase.INPUTS:
        wire = messages.delivery(left, [bytes(82)] * len(near), 40)
    assert refusal(cohort.clients[0], wire) == reason


def test_a_client_whose_neighbours_are_kept_from_it_sends_nothing(cohorts, refusal):
    """All of its neighbours on one side "did not share": too few masks would be left on its vector."""
    cohort = cohorts(clients=60, rates=Rates(dropout=0.05, adversary=0.02))
    outgoing = cohort.up_to(Phase.INPUTS)
    roster = cohort.server._roster
    assert roster.plan.degree < 59
    mine = roster.graph.neighbours(0)
    hidden = set(mine[: roster.plan.degree - roster.plan.threshold + 1])
    sharers = np.array([p for p in range(60) if p not in hidden])
    letters = [bytes(82) for other in mine if other not in hidden]
    assert refusal(cohort.clients[0], messages.delivery(sharers, letters, 60)) == "lonely"
    assert cohort.clients[1].receive(outgoing[1])


@pytest.mark.parametrize("misled", [False, True])
def test_masks_cancel_only_between_those_who_saw_the_same_sharers(cohorts, misled):
    """One client is told that somebody far away never shared: none of its pair masks cancels any more."""
    cohort = cohorts(clients=60, rates=Rates(dropout=0.05, adversary=0.02), length=300)
    outgoing = cohort.up_to(Phase.INPUTS)
    roster = cohort.server._roster
    if misled:
        far = next(p for p in range(1, 60) if p not in roster.graph.neighbours(0))
        sharers = np.array([p for p in range(60) if p != far])
        cut = messages.HEAD + -(-60 // 8)
        outgoing[0] = messages.delivery(sharers, [outgoing[0][cut:]], 60)
    seeds = [(client.state.seed, -1) for client in cohort.clients.values()]
    left = np.zeros(300, dtype="<u4")
    for user, wire in outgoing.items():
        left += np.frombuffer(cohort.clients[user].receive(wire)[messages.HEAD :], dtype="<u4")
        left -= cohort.vectors[user]
    add_masks(left, seeds)
    assert (left != 0).mean() > 0.99 if misled else not left.any()


def test_masks_are_bound_to_the_roster_and_its_terms(cohorts):
    """The same keys on another roster, or for another model: another view, hence other masks."""
    cohort = cohorts(clients=12)
    adverts = [
        messages.Advert.read(messages.unframed(messages.Kind.ADVERT, w)) for w in cohort.adverts().values()
    ]
    everyone, model = np.arange(10), cohort.other_terms(model=b"m" * 32)
    views = {
        messages.Roster.of(chosen, terms).view(everyone)
        for chosen, terms in ((adverts, cohort.terms), (adverts[:-1], cohort.terms), (adverts, model))
    }
    keys = cohort.clients[0].state.masks_key, adverts[1].masks
    assert len({pair_seed(*keys, view, 0, 1) for view in views}) == 3


def test_damaged_letters_cost_a_share_and_nothing_else(cohort):
    """Letters a server damaged do not open; the sum goes on with the shares that are left."""
    outgoing = cohort.up_to(Phase.INPUTS)
    wire = bytearray(outgoing[2])
    wire[-1] ^= 1
    outgoing[2] = bytes(wire)
    server = cohort.server
    while server.phase is not Phase.DONE:
        for user, wire in outgoing.items():
            server.receive(user, cohort.clients[user].receive(wire))
        outgoing = server.advance()
    expected = np.sum(list(cohort.vectors.values()), axis=0, dtype=np.uint32)
    assert np.array_equal(server.total, expected)


def test_a_letter_sent_back_to_its_writer_does_not_open(cohort):
    """Each way has a key of its own: one nonce never seals two letters, and nobody holds its own share."""
    outgoing = cohort.up_to(Phase.INPUTS)
    near = cohort.server._roster.graph.neighbours(2)
    own = next(wire for phase, user, wire in cohort.heard if (phase, user) == (Phase.SHARES, 2))
    sent = messages.read_letters(own, len(near))
    _, come = messages.read_delivery(outgoing[2], cohort.server._roster, 2)
    reflected = messages.delivery(np.arange(12), [sent[0], *list(come.values())[1:]], 12)
    cohort.clients[2].receive(reflected)
    assert set(cohort.clients[2].state.held) == set(near[1:])


def test_letters_of_another_sum_do_not_open(cohorts):
    """The same people and keys on another roster: last round's letters are worth nothing."""
    cohort, other = cohorts(clients=12), cohorts(clients=12)
    other.terms = other.other_terms(round=6)
    other.clients = {user: other.client(user) for user in range(12)}
    other.server = type(other.server)(other.terms, other.directory, list(other.clients))
    replayed = other.up_to(Phase.INPUTS)[2]
    cohort.up_to(Phase.INPUTS)
    assert cohort.clients[2].state.keys.letters_key == other.clients[2].state.keys.letters_key
    cohort.clients[2].receive(replayed)
    assert not cohort.clients[2].state.held


def test_a_session_stored_and_loaded_between_messages_goes_on(cohort):
    """State is plain data: a device may be restarted between messages, and still says things once."""
    import pickle

    outgoing = cohort.up_to(Phase.VOTES)
    old = cohort.clients[2]
    moved = Client(cohort.terms, 2, cohort.identities[2], cohort.directory, cohort.vectors[2])
    moved.state = pickle.loads(pickle.dumps(old.state))
    assert moved.receive(outgoing[2]) == old.receive(outgoing[2])
