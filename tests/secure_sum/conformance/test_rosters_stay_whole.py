"""Shrunken and doubled rosters: whoever a server leaves out, one list is opened and nobody stands alone."""

import contextlib

import numpy as np
import pytest

from tacit.transport.secure_sum import wire as messages
from tacit.transport.secure_sum.client import pair_seed, signed
from tacit.transport.secure_sum.masks import add_masks
from tacit.transport.secure_sum.plan import Rates, plan_for
from tacit.transport.secure_sum.shares import joined
from tacit.transport.secure_sum.terms import SumAborted
from tacit.transport.secure_sum.wire import Kind


def adverts_of(cohort):
    return {u: messages.Advert.read(messages.unframed(Kind.ADVERT, w)) for u, w in cohort.adverts().items()}


class Lied:
    """One roster that a server shows to some people only, and everything they say to it."""

    def __init__(self, cohort, adverts, chosen, shown):
        self.cohort, self.chosen, self.shown = cohort, chosen, shown
        self.roster = messages.Roster.of([adverts[user] for user in chosen], cohort.terms)
        self.plan, self.every = self.roster.plan, np.arange(len(chosen))
        self.place = {user: place for place, user in enumerate(chosen)}
        letters = {}
        for user in shown:
            near = self.near(user)
            told = messages.read_letters(cohort.clients[user].receive(self.roster.wire), len(near))
            letters[self.place[user]] = dict(zip(near, told, strict=True))
        self.masked = {user: self.mask(user, letters) for user in shown}

    def near(self, user):
        return self.roster.graph.neighbours(self.place[user])

    def mask(self, user, letters):
        """Letters of people who saw another roster are made up: they do not open."""
        blank, place = bytes(messages.SEALED_BYTES), self.place[user]
        come = [letters[other][place] if other in letters else blank for other in self.near(user)]
        wire = messages.delivery(self.every, come, len(self.chosen))
        return np.frombuffer(messages.unframed(Kind.MASKED, self.cohort.clients[user].receive(wire)), "<u4")

    def opened(self, group, corrupt, survivors):
        """The shares that a group tells of each place, after votes of its own and all corrupt people's."""
        clients, votes, told = self.cohort.clients, {}, {}
        wire = messages.survivors_message(survivors, len(self.chosen))
        for user in group:
            with contextlib.suppress(SumAborted):
                votes[self.place[user]] = messages.unframed(Kind.VOTE, clients[user].receive(wire))
        for user in corrupt:
            statement = self.roster.vote(self.every, survivors)
            votes[self.place[user]] = signed(self.cohort.identities[user], statement)
        for user in group:
            with contextlib.suppress(SumAborted):
                answer = clients[user].receive(messages.votes_message(votes))
                near = self.near(user)
                shares = messages.read_openings(answer, len(near))
                told[self.place[user]] = dict(zip(near, shares, strict=True))
        return told


CASES = [(31, 0.3, 0.1), (40, 0.2, 0.15), (30, 0.2, 0.2), (40, 0.3, 0.2), (100, 0.1, 0.05)]


@pytest.mark.parametrize(("invited", "dropout", "adversary"), CASES)
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_honest_people_left_off_the_roster_do_not_give_one_away(
    cohorts, invited, dropout, adversary, share, more
):
    """All corrupt people stay on it; some hear that the victim is alive, the others that it is gone."""
    rates = Rates(dropout=dropout, adversary=adversary)
    cohort = cohorts(clients=invited, rates=rates)
    asked = plan_for(invited, rates)
    corrupt = list(range(invited - asked.corrupt, invited))
    chosen = [*range(asked.minimum + more - asked.corrupt), *corrupt]
    lied = Lied(cohort, adverts_of(cohort), chosen, chosen)
    held = {lied.place[user]: cohort.clients[user].state.held for user in corrupt}
    victim, others = 0, [user for user in chosen[1:] if user not in corrupt]
    cut = round(share * len(others))
    gone = np.array([place for place in lied.every if place != lied.place[victim]])
    alive = lied.opened([victim, *others[:cut]], corrupt, lied.every)
    dead = lied.opened(others[cut:], corrupt, gone)
    assert not (alive and dead)
    at = lied.place[victim]
    seeds = {q + 1: told[at] for q, told in alive.items() if told.get(at)}
    seeds |= {q + 1: pairs[at].seed for q, pairs in held.items() if at in pairs}
    keys = {q + 1: told[at] for q, told in dead.items() if told.get(at)}
    keys |= {q + 1: pairs[at].key for q, pairs in held.items() if at in pairs}
    assert min(len(seeds), len(keys)) < lied.plan.threshold
    if seeds and keys:
        assert not np.array_equal(unmasked(lied, victim, seeds, keys), cohort.vectors[victim])


def unmasked(lied, victim, seeds, keys):
    """What comes out when the server uses as many shares as it has, up to the threshold."""
    some = [joined(*zip(*list(told.items())[: lied.plan.threshold], strict=True)) for told in (seeds, keys)]
    found, view, at = lied.masked[victim].copy(), lied.roster.view(lied.every), lied.place[victim]
    taken = [(some[0], -1)]
    for other in lied.near(victim):
        seed, sign = pair_seed(some[1], lied.roster.adverts[other].masks, view, at, other)
        taken.append((seed, -sign))
    add_masks(found, taken)
    return found


@pytest.mark.parametrize("invited", [39, 40])
def test_two_rosters_of_one_sum_are_not_both_opened(cohorts, invited):
    """Half of the people see a roster without one of the others, and the other way round."""
    rates = Rates(dropout=0.1, adversary=0.1)
    cohort = cohorts(clients=invited, rates=rates)
    adverts = adverts_of(cohort)
    corrupt = list(range(invited - plan_for(invited, rates).corrupt, invited))
    honest = [user for user in range(invited) if user not in corrupt]
    groups = honest[::2], honest[1::2]
    told = []
    for group, others in (groups, groups[::-1]):
        lied = Lied(cohort, adverts, [user for user in range(invited) if user != others[0]], group)
        told.append(lied.opened(group, corrupt, lied.every))
    assert not all(told)
