"""Replayed keys, swapped models, strangers and doubles: whose keys count, and for what."""

import pickle
import random
import secrets

import numpy as np
import pytest

from tacit.config.experiment import Experiment, resolved
from tacit.deploy.receptions import terms_of
from tacit.transport.secure_sum.client import signed
from tacit.transport.secure_sum.layout import Layout, Part
from tacit.transport.secure_sum.masks import RINGS, keypair
from tacit.transport.secure_sum.plan import Rates
from tacit.transport.secure_sum.server import Phase
from tacit.transport.secure_sum.terms import SumAborted
from tacit.transport.secure_sum.wire import Advert, Kind, Roster, delivery, framed, unframed
from tacit.types import RoundFacts


def roster_of(adverts):
    bodies = [unframed(Kind.ADVERT, wire) for _, wire in sorted(adverts.items())]
    return framed(Kind.ROSTER, b"".join(bodies))


@pytest.mark.parametrize(
    "change",
    [
        {"round": 4},
        {"round": 6},
        {"run": b"another"},
        {"run": b"nur"},
        {"run": b"runtr", "exchange": "ain"},
        {"exchange": "denoise"},
        {"exchange": "other"},
        {"model": b"m" * 32},
        {"length": 7},
        {"ring": 64},
        {"invited": 11},
        {"invited": 13},
        {"rates": Rates(dropout=0.2, adversary=0.1)},
        {"rates": Rates(dropout=0.1, adversary=0.05)},
        {"rates": Rates(dropout=0.1, adversary=0.1, crowd=3)},
        {"rates": Rates(dropout=0.1, adversary=0.1, secrecy=30)},
        {"rates": Rates(dropout=0.1, adversary=0.1, success=10)},
        {"rates": Rates(dropout=0.1, adversary=0.1, grinding=20)},
    ],
)
def test_keys_of_other_terms_are_refused(cohort, refusal, change):
    """A replay of last round's keys, or a victim that was told another model or safety than the others."""
    adverts = cohort.adverts()
    cohort.vectors[3] = np.zeros(change.get("length", 6), dtype=RINGS[change.get("ring", 32)])
    adverts[3] = cohort.client(3, terms=cohort.other_terms(**change)).start()
    assert refusal(cohort.clients[0], roster_of(adverts)) == "unsigned"


def test_public_states_beside_the_model_are_bound_as_it_is():
    """The victim alone is told a clip norm of its own: on a device, that makes other terms."""
    plan = resolved(Experiment("fedmf", transport="secure-sum", data="demo:users=20,items=20,mean=5"))[1]
    exchange, layout = plan.method.exchanges[0], Layout((Part("w", (3,), rows=False),))
    facts = RoundFacts(0, "train", 20, 20, 0, {"w": (3,)})
    told = [(b"model", (0.5, None)), (b"model", (0.25, None)), (b"other", (0.5, None))]
    digests = [terms_of(exchange, "run", facts, sent, layout).digest for sent in (told[0], *told)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_the_victim_of_a_model_swap_refuses_everybody_else(cohort, refusal):
    adverts = cohort.adverts()
    victim = cohort.client(3, terms=cohort.other_terms(model=b"m" * 32))
    adverts[3] = victim.start()
    assert refusal(victim, roster_of(adverts)) == "unsigned"


def test_keys_put_in_place_of_a_clients_own_are_noticed_by_it(cohort, refusal):
    """The server in the middle: it cannot sign for the others, nor hide the change from the owner."""
    adverts = cohort.adverts()
    real = Advert.read(unframed(Kind.ADVERT, adverts[3]))
    fake = Advert(3, keypair(b"x" * 32)[1], keypair(b"y" * 32)[1], real.signature)
    forged = {**adverts, 3: framed(Kind.ADVERT, fake.raw)}
    assert refusal(cohort.clients[0], roster_of(forged)) == "unsigned"
    cohort.clients[0] = cohort.client(0)
    own_old = cohort.clients[3]
    adverts[3] = cohort.client(3, entropy=random.Random(1).randbytes).start()
    assert refusal(own_old, roster_of(adverts)) == "left out"


@pytest.mark.parametrize("invited", [12, 30])
def test_people_who_were_never_enrolled_are_refused(cohorts, refusal, invited):
    """A crowd of invented people around one victim, beyond those invited or in the place of some."""
    cohort, sybils = cohorts(clients=12, invited=invited), cohorts(clients=30, seed=99)
    sybils.terms = cohort.terms
    adverts = cohort.adverts() | {user: sybils.client(user).start() for user in range(12, 30)}
    assert refusal(cohort.clients[0], roster_of(adverts)) == "stranger"


def test_one_person_cannot_stand_on_the_roster_twice(cohort, refusal):
    adverts = cohort.adverts()
    again = cohort.client(3, entropy=random.Random(1).randbytes).start()
    doubled = framed(
        Kind.ROSTER,
        b"".join(
            unframed(Kind.ADVERT, w)
            for w in (*list(adverts.values())[:4], again, *list(adverts.values())[4:])
        ),
    )
    assert refusal(cohort.clients[0], doubled) == "duplicate"


def test_one_key_cannot_stand_for_two_people(cohort, refusal):
    adverts = cohort.adverts()
    same = b"k" * 32
    for user in (3, 4):
        adverts[user] = cohort.client(user, entropy=lambda size: same[:size]).start()
    assert refusal(cohort.clients[0], roster_of(adverts)) == "duplicate"


def test_a_roster_too_small_to_hide_in_is_refused(cohorts):
    cohort = cohorts(clients=12, rates=Rates(dropout=0.1, adversary=0.1, crowd=8))
    few = {user: wire for user, wire in cohort.adverts().items() if user < 7}
    with pytest.raises(Exception, match="no safe sum: 7 of 12 clients, at least 8 are needed"):
        cohort.clients[0].receive(roster_of(few))


@pytest.mark.parametrize("kind", ["letters", "masks"])
def test_keys_of_small_order_end_the_session(cohort, refusal, kind):
    """Everybody would agree on the same secret with their owner, and the server would know it."""
    cohort.server.receive(3, small_order(cohort, kind))
    assert "small order" in cohort.server.ignored[3]
    adverts = {**cohort.adverts(), 3: small_order(cohort, kind)}
    found = []
    for user in cohort.clients.keys() - {3}:
        client = cohort.clients[user]
        refused = refusal(client, roster_of(adverts))
        if refused is None and kind == "masks":
            roster = Roster.read(roster_of(adverts), cohort.terms)
            near = len(roster.graph.neighbours(user))
            refused = refusal(client, delivery(np.arange(12), [bytes(82)] * near, 12))
        found.append(refused)
        assert refusal(client, b"") in {"out of turn", "malformed"}
    assert "malformed" in found


def small_order(cohort, kind):
    keys = {"letters": keypair(b"x" * 32)[1], "masks": keypair(b"y" * 32)[1], kind: bytes(32)}
    advert = Advert(3, keys["letters"], keys["masks"], bytes(64))
    signature = signed(cohort.identities[3], advert.signed_part(cohort.terms))
    return framed(Kind.ADVERT, Advert(3, advert.letters, advert.masks, signature).raw)


def test_keys_and_seeds_are_fresh_for_every_sum(cohort):
    """On a device they come from the operating system: not from the identity, nor from the round."""
    told, seeds = [], []
    for _ in range(2):
        cohort.clients[0] = cohort.client(0, entropy=secrets.token_bytes)
        adverts = {user: cohort.client(user).start() for user in range(1, 12)}
        adverts[0] = cohort.clients[0].start()
        cohort.clients[0].receive(roster_of(adverts))
        mine = Advert.read(unframed(Kind.ADVERT, adverts[0]))
        told += [mine.letters, mine.masks]
        seeds.append(cohort.clients[0].state.seed)
    assert len(set(told)) == 4
    assert seeds[0] != seeds[1]


def everything_in(client):
    return pickle.dumps({name: value for name, value in vars(client).items() if name != "_entropy"})


def test_what_was_used_is_forgotten(cohort):
    """Once the masked vector is out, neither keys nor seed nor vector are left; at the end, no shares."""
    outgoing = cohort.up_to(Phase.INPUTS)
    before = [client.state for client in cohort.clients.values()]
    secret = [(s.seed, s.keys.letters_key, s.keys.masks_key) for s in before]
    vectors = [vector.tobytes() for vector in cohort.vectors.values()]
    for user, wire in outgoing.items():
        cohort.server.receive(user, cohort.clients[user].receive(wire))
    outgoing = cohort.server.advance()
    for user, client in cohort.clients.items():
        left = everything_in(client)
        assert not any(piece in left for piece in (*secret[user], vectors[user]))
    held = cohort.clients[0].state.held.values()
    while cohort.server.phase is not Phase.DONE:
        for user, wire in outgoing.items():
            cohort.server.receive(user, cohort.clients[user].receive(wire))
        outgoing = cohort.server.advance()
    left = everything_in(cohort.clients[0]) + pickle.dumps(cohort.server._openings)
    assert not any(share in left for pair in held for share in pair)


def test_a_round_is_summed_once(cohort):
    """Two sums over one round, one person missing from the second, would give that person away."""
    with pytest.raises(SumAborted) as caught:
        cohort.client(3, last_round=5)
    assert caught.value.reason.value == "round reused"
    cohort.client(3, last_round=4)


def test_an_honest_server_leaves_out_whose_keys_do_not_verify(cohort):
    wires = cohort.adverts()
    wires[3] = cohort.client(3, terms=cohort.other_terms(round=4)).start()
    for user, wire in wires.items():
        cohort.server.receive(user, wire)
    cohort.server.receive(77, wires[0])
    assert set(cohort.server.ignored) == {3, 77}
    roster = cohort.server.advance()
    assert set(roster) == set(range(12)) - {3}
    assert cohort.server.phase is Phase.SHARES
