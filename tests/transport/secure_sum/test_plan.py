"""The plan's inequalities are those of its proof; the proof holds by brute force on small rings."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from tacit.errors import TacitError
from tacit.transport.secure_sum.plan import Graph, Rates, as_bitmap, members, plan_for

RATES = [(0.05, 0.01), (0.1, 0.05), (0.2, 0.05), (0.1, 0.1), (0.3, 0.1), (0.0, 0.3), (0.3, 0.0)]


@pytest.mark.parametrize(("dropout", "adversary"), RATES)
@pytest.mark.parametrize("clients", [20, 100, 943, 1000])
def test_every_plan_meets_the_conditions_of_its_proof(clients, dropout, adversary):
    rates = Rates(dropout=dropout, adversary=adversary)
    plan = plan_for(clients, rates)
    assert 2 * plan.quorum > clients + plan.corrupt
    assert clients - plan.dropped >= plan.minimum >= plan.quorum
    assert plan.honest >= 2
    whole = plan.degree == clients - 1
    allowed = plan.corrupt if whole else plan.threshold - plan.degree // 2 - 1
    assert 2 * plan.threshold > plan.degree + allowed
    lost = plan.degree - plan.threshold
    if whole:
        assert plan.dropped <= lost
        return
    leak = clients * hypergeom.sf(allowed, clients - 1, plan.corrupt, plan.degree) * 2.0**rates.grinding
    fail = clients * hypergeom.sf(lost, clients - 1, plan.dropped, plan.degree)
    assert leak <= 2.0**-rates.secrecy
    assert fail <= 2.0**-rates.success
    assert math.isclose(plan.secrecy_failure, min(1, leak), rel_tol=1e-6, abs_tol=1e-300)
    assert math.isclose(plan.success_failure, fail, rel_tol=1e-6, abs_tol=1e-300)


@pytest.mark.parametrize(
    ("clients", "dropout", "adversary"), [(3, 0.0, 0.3), (4, 0.2, 0.0), (5, 0.1, 0.05), (6, 0.1, 0.1)]
)
def test_small_cohorts_are_tied_to_everybody_and_tell_one_secret(clients, dropout, adversary):
    """Honest neighbours tell one share, corrupt ones both: two thresholds need more than there are."""
    plan = plan_for(clients, Rates(dropout=dropout, adversary=adversary))
    assert plan.degree == clients - 1
    assert 2 * plan.threshold > plan.degree + plan.corrupt
    assert plan.threshold <= plan.degree - plan.dropped
    assert (plan.secrecy_failure, plan.success_failure) == (0.0, 0.0)


def learnable_groups(clients, degree, threshold, dropped, corrupt):
    """The groups of honest people whose own sum a lying server could open, one list of survivors given."""
    half = degree // 2
    near = [[(p + s) % clients for s in range(-half, half + 1) if s] for p in range(clients)]
    alive = [p for p in range(clients) if p not in dropped]
    honest = [p for p in alive if p not in corrupt]
    opened = {p for p in honest if sum(q in alive for q in near[p]) >= threshold}
    groups, left = [], set(honest)
    while left:
        group, edge = set(), {left.pop()}
        while edge:
            p = edge.pop()
            group.add(p)
            fresh = {q for q in near[p] if q in honest} - group
            edge |= fresh
        left -= group
        if group <= opened:
            groups.append(group)
    return groups, honest


def broken_cases(clients, degree, threshold, allowed):
    broken = 0
    for roles in product("hdc", repeat=clients):
        dropped = {p for p, role in enumerate(roles) if role == "d"}
        corrupt = {p for p, role in enumerate(roles) if role == "c"}
        half = degree // 2
        if any(
            sum((p + s) % clients in corrupt for s in range(-half, half + 1) if s) > allowed
            for p in range(clients)
            if p not in corrupt
        ):
            continue
        groups, honest = learnable_groups(clients, degree, threshold, dropped, corrupt)
        broken += any(group != set(honest) for group in groups)
    return broken


@pytest.mark.parametrize(("clients", "degree", "allowed"), [(7, 4, 0), (8, 4, 0), (9, 6, 0), (8, 6, 1)])
def test_no_pattern_of_drop_outs_and_adversaries_opens_a_part_of_the_sum(clients, degree, allowed):
    assert broken_cases(clients, degree, degree // 2 + allowed + 1, allowed) == 0


def test_the_same_check_finds_the_hole_that_a_lower_threshold_leaves():
    assert broken_cases(8, 4, 2, 0) > 0


@settings(deadline=None, max_examples=200)
@given(
    st.integers(3, 140),
    st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.3]),
    st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.3]),
    st.data(),
)
def test_no_roster_a_server_may_choose_weakens_the_plan(invited, adversary, dropout, data):
    """It keeps all corrupt people and leaves honest ones out, down to the smallest roster clients accept."""
    rates = Rates(dropout=dropout, adversary=adversary)
    try:
        asked = plan_for(invited, rates)
    except TacitError:
        return
    clients = data.draw(st.integers(asked.minimum, invited))
    plan = plan_for(invited, rates, clients)
    corrupt = math.ceil(adversary * invited)
    assert plan.corrupt == corrupt <= clients - 2
    # every honest person invited votes once at most, for whatever roster and lists; the corrupt for all
    least_honest_votes = plan.quorum - corrupt
    assert 2 * least_honest_votes > invited - corrupt
    # nobody gets both secrets: honest neighbours tell one share each, corrupt ones two
    whole = plan.degree == clients - 1
    near = corrupt if whole else plan.threshold - plan.degree // 2 - 1
    assert (plan.degree - near) + 2 * near < 2 * plan.threshold
    if not whole:
        leak = clients * hypergeom.sf(near, clients - 1, corrupt, plan.degree) * 2.0**rates.grinding
        assert leak <= 2.0**-rates.secrecy
    # what was promised when people were asked holds for whoever is left, and drop-outs as stated are borne
    assert (plan.minimum, plan.quorum, plan.honest) == (asked.minimum, asked.quorum, asked.honest)
    assert plan.dropped >= asked.dropped - (invited - clients)
    assert clients - plan.dropped >= plan.minimum
    for other in (asked.minimum - 1, invited + 1):
        with pytest.raises(TacitError, match="no safe sum"):
            plan_for(invited, rates, other)


@given(st.integers(3, 60), st.integers(1, 20), st.binary(min_size=1, max_size=8))
@settings(max_examples=50)
def test_the_graph_is_regular_symmetric_and_without_loops(clients, half, digest):
    degree = min(2 * half, clients - 1)
    graph = Graph.drawn(digest, clients, degree)
    for position in range(clients):
        mine = graph.neighbours(position)
        assert len(mine) == len(set(mine)) == (degree if degree < clients - 1 else clients - 1)
        assert position not in mine
        assert all(position in graph.neighbours(other) for other in mine)


def test_another_roster_means_another_graph():
    one, other = (Graph.drawn(name, 50, 6).neighbours(0) for name in (b"one", b"two"))
    assert one != other


def test_neighbours_are_spread_evenly():
    """How often position 1 is a neighbour of 0 in 2,000 rosters: 6/49, five deviations allowed."""
    hits = sum(1 in Graph.drawn(n.to_bytes(4, "big"), 50, 6).neighbours(0) for n in range(2000))
    assert abs(hits / 2000 - 6 / 49) < 5 * math.sqrt(6 / 49 * 43 / 49 / 2000)


@pytest.mark.parametrize(
    ("clients", "rates"),
    [
        (2, Rates()),
        (10, Rates(dropout=0.5, adversary=0.3)),
        (1000, Rates(dropout=0.45, adversary=0.2)),
        (20, Rates(crowd=19)),
    ],
)
def test_where_nothing_is_safe_the_sum_is_refused(clients, rates):
    with pytest.raises(TacitError, match="no safe sum"):
        plan_for(clients, rates)


@pytest.mark.parametrize(
    "wrong", [{"dropout": 1.0}, {"adversary": -0.1}, {"dropout": 0.7, "adversary": 0.3}, {"crowd": 1}]
)
def test_impossible_rates_are_refused(wrong):
    with pytest.raises(TacitError):
        Rates(**wrong)


def test_the_failure_probability_is_printed():
    assert "secrecy fails with probability below" in str(plan_for(1000, Rates()))


@given(st.integers(1, 70), st.data())
def test_bitmaps_come_back_and_reject_other_sizes(clients, data):
    chosen = sorted(data.draw(st.sets(st.integers(0, clients - 1))))
    bitmap = as_bitmap(np.array(chosen, dtype=np.int64), clients)
    assert members(bitmap, clients).tolist() == chosen
    for wrong in (bitmap + b"\0", bitmap[:-1]):
        with pytest.raises(TacitError):
            members(wrong, clients)


def test_a_bitmap_names_nobody_beyond_the_roster():
    with pytest.raises(TacitError):
        members(b"\xff", 5)
