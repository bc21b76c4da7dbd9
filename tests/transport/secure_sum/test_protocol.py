"""Both halves together: exact sums over whoever is left, a clean end where too few are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.transport.secure_sum.in_process import summed
from tacit.transport.secure_sum.masks import RINGS
from tacit.transport.secure_sum.plan import Rates, plan_for
from tacit.transport.secure_sum.server import Phase
from tacit.transport.secure_sum.terms import SumAborted, Terms
from tacit.transport.secure_sum.wire import everybody_answers

PHASES = [Phase.KEYS, Phase.SHARES, Phase.INPUTS, Phase.VOTES, Phase.OPENINGS]


def terms(invited, length=9, ring=32, **rates):
    return Terms(b"run", 3, "train", bytes(32), length, ring, Rates(**rates), invited=invited)


def vectors(users, length=9, ring=32, seed=0):
    generator = np.random.default_rng(seed)
    top = 2 ** min(ring, 63)
    return {user: generator.integers(0, top, length).astype(RINGS[ring]) for user in users}


def ring_sum(held, users):
    return np.sum([held[user] for user in users], axis=0, dtype=next(iter(held.values())).dtype)


@settings(max_examples=30, deadline=None)
@given(
    clients=st.integers(14, 26),
    ring=st.sampled_from([16, 32, 64]),
    seed=st.integers(0, 10**6),
    drops=st.lists(st.sampled_from(PHASES), max_size=9),
)
def test_any_drop_outs_within_the_rates_leave_an_exact_sum(clients, ring, seed, drops):
    users = np.random.default_rng(seed).permutation(500)[:clients].tolist()
    rates = {"dropout": 0.3, "adversary": 0.05}
    gone = dict(zip(users, drops[: plan_for(clients, Rates(**rates)).dropped], strict=False))
    held = vectors(users, ring=ring, seed=seed)
    found = summed(terms(clients, ring=ring, **rates), held, gone)
    left = sorted(user for user in users if gone.get(user) not in {Phase.KEYS, Phase.SHARES, Phase.INPUTS})
    assert list(found.survivors) == left
    assert np.array_equal(found.total, ring_sum(held, left))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 0.9))
def test_whatever_happens_the_sum_is_exact_or_there_is_none(seed, share):
    generator = np.random.default_rng(seed)
    held = vectors(range(16), seed=seed)
    gone = {user: PHASES[generator.integers(len(PHASES))] for user in held if generator.random() < share}
    try:
        found = summed(terms(16, dropout=0.2, adversary=0.0), held, gone)
    except SumAborted:
        return
    assert np.array_equal(found.total, ring_sum(held, found.survivors))


@pytest.mark.parametrize("phase", PHASES)
def test_drop_outs_of_every_phase_at_the_very_limit(phase):
    rates = {"dropout": 0.3, "adversary": 0.0}
    clients = 21
    plan = plan_for(clients, Rates(**rates))
    limit = min(plan.degree - plan.threshold, clients - plan.minimum)
    assert limit >= plan.dropped == 7
    held = vectors(range(clients))
    found = summed(terms(clients, **rates), held, dict.fromkeys(range(limit), phase))
    assert np.array_equal(found.total, ring_sum(held, found.survivors))
    assert len(found.survivors) == (clients if phase in {Phase.VOTES, Phase.OPENINGS} else clients - limit)


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        (Phase.KEYS, "too few keys"),
        (Phase.SHARES, "too few sharers"),
        (Phase.INPUTS, "too few inputs"),
        (Phase.VOTES, "too few votes"),
        (Phase.OPENINGS, "too few openings"),
    ],
)
def test_past_the_limit_the_sum_ends_with_a_named_reason(phase, reason):
    held = vectors(range(12))
    with pytest.raises(SumAborted) as caught:
        summed(terms(12, dropout=0.2, adversary=0.0), held, dict.fromkeys(range(10), phase))
    assert caught.value.reason.value == reason
    assert "\n" not in str(caught.value)


@settings(max_examples=12, deadline=None)
@given(clients=st.integers(6, 30), length=st.integers(1, 40), ring=st.sampled_from([16, 32, 64]))
def test_bytes_are_known_without_sending_any(clients, length, ring):
    agreed = terms(clients, length, ring, dropout=0.1, adversary=0.0)
    found = summed(agreed, vectors(range(clients), length, ring))
    foretold = everybody_answers(agreed)
    assert (found.up, found.down) == (foretold.up, foretold.down)


def test_a_ring_of_neighbours_works_as_everyone_to_everyone_does():
    rates = {"dropout": 0.05, "adversary": 0.02}
    plan = plan_for(60, Rates(**rates))
    assert plan.degree < 59
    held = vectors(range(60))
    gone = {3: Phase.SHARES, 40: Phase.INPUTS, 17: Phase.OPENINGS}
    found = summed(terms(60, **rates), held, gone)
    assert np.array_equal(found.total, ring_sum(held, sorted(set(held) - {3, 40})))
