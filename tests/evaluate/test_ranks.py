"""Ranks against slow sorting, ties against statistics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.evaluate.held_out import held_out
from tacit.evaluate.ranks import alone_ranks, full_ranks
from tacit.rng import SeededKeys

KEYS = SeededKeys(11)
FALSE_ALARM = 1e-6


def coarse_scores(seed, users, items):
    """Few different values, so that ties are everywhere."""
    return np.random.default_rng(seed).integers(-3, 4, (users, items)).astype("f4")


@given(seed=st.integers(0, 10_000), support=st.booleans())
@settings(max_examples=40, deadline=None)
def test_full_ranks_are_places_in_one_sorted_list(random_parts, table, seed, support):
    users, items = 6, 15
    split, scores = random_parts(seed, users, items, support=support), coarse_scores(seed, users, items)
    held = held_out(split, items)
    ranks = full_ranks(table(scores), held, keys=KEYS, depth=items)
    for row, user in enumerate(held.users):
        candidates = sorted(set(range(items)) - set(held.seen[row].tolist()))
        order = [item for item in ranks.shown[row].tolist() if item >= 0]
        assert sorted(order) == candidates
        assert ranks.shown[row, len(order) :].tolist() == [-1] * (items - len(order))
        assert all(np.diff(scores[user, order]) <= 0)
        mine = slice(ranks.offsets[row], ranks.offsets[row + 1])
        assert ranks.ranks[mine].tolist() == [1 + order.index(item) for item in held.positives[row]]
        assert set(ranks.among[mine].tolist()) == {len(candidates)}


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_best_and_worst_put_held_out_items_first_and_last_among_equals(random_parts, table, seed):
    users, items = 6, 15
    split, scores = random_parts(seed, users, items), coarse_scores(seed, users, items)
    held = held_out(split, items)
    ranks = full_ranks(table(scores), held, keys=KEYS)
    for row, user in enumerate(held.users):
        relevant = set(held.positives[row].tolist())
        candidates = [item for item in range(items) if item not in set(held.seen[row].tolist())]
        mine = slice(ranks.offsets[row], ranks.offsets[row + 1])
        for way, sign in (("best", -1), ("worst", 1)):
            order = sorted(candidates, key=lambda item: (-scores[user, item], sign * (item in relevant)))
            expected = sorted(1 + order.index(item) for item in relevant)
            assert sorted(ranks.settled(way).ranks[mine].tolist()) == expected
    assert (ranks.bounds[0] <= ranks.ranks).all()
    assert (ranks.ranks <= ranks.bounds[1]).all()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_alone_ranks_count_only_items_never_met(random_parts, table, seed):
    users, items = 6, 15
    split, scores = random_parts(seed, users, items, support=True), coarse_scores(seed, users, items)
    held = held_out(split, items)
    ranks = alone_ranks(table(scores), held, keys=KEYS)
    for row, user in enumerate(held.users):
        met = set(held.seen[row].tolist()) | set(held.positives[row].tolist())
        never = [item for item in range(items) if item not in met]
        for slot, item in zip(
            range(ranks.offsets[row], ranks.offsets[row + 1]), held.positives[row], strict=True
        ):
            higher = sum(scores[user, other] > scores[user, item] for other in never)
            equal = sum(scores[user, other] == scores[user, item] for other in never)
            assert ranks.bounds[:, slot].tolist() == [1 + higher, 1 + higher + equal]
            assert 1 + higher <= ranks.ranks[slot] <= 1 + higher + equal
            assert ranks.among[slot] == len(never) + 1


def test_a_disliked_test_item_is_a_candidate_in_full_ranking_and_none_for_positives_alone(parts, log, table):
    split = parts([(0, 0)], [])
    split = type(split)(split.train, log([(0, 1), (0, 2)], [5, 1]))
    held = held_out(split, 4, relevant_from=3)
    model = table(np.array([[9, 5, 7, 6]], "f4"))
    assert full_ranks(model, held, keys=KEYS).ranks.tolist() == [3]
    assert alone_ranks(model, held, keys=KEYS).ranks.tolist() == [2]


@pytest.mark.parametrize("ranker", [full_ranks, alone_ranks])
def test_ties_fall_uniformly(parts, table, ranker):
    """Constant scores: each of 8 places is equally likely; chi-square at a false-alarm rate of 1e-6."""
    users, items = 8_000, 9
    everybody = np.arange(users)
    split = parts(np.stack([everybody, everybody * 0], 1), np.stack([everybody, 1 + everybody % 8], 1))
    ranks = ranker(table(np.zeros((users, items), "f4")), held_out(split, items), keys=KEYS)
    counts = np.bincount(ranks.ranks, minlength=9)[1:]
    assert counts.sum() == users
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert ranks.tied.all()


def test_grouping_of_users_never_changes_a_rank(random_parts, table):
    split, model = random_parts(3, 30, 20), table(coarse_scores(3, 30, 20))
    held = held_out(split, 20)
    together = full_ranks(model, held, keys=KEYS, depth=5)
    one_by_one = full_ranks(model, held, keys=KEYS, depth=5, block_bytes=1)
    assert np.array_equal(together.ranks, one_by_one.ranks)
    assert np.array_equal(together.shown, one_by_one.shown)
    half = held.keeping(held.users % 2 == 0)
    chosen = np.repeat(held.users % 2 == 0, held.positives.lengths)
    assert np.array_equal(full_ranks(model, half, keys=KEYS).ranks, together.ranks[chosen])


def test_another_seed_settles_ties_otherwise_and_nothing_else(random_parts, table):
    split = random_parts(4, 40, 20)
    held = held_out(split, 20)
    coarse, fine = table(coarse_scores(4, 40, 20)), table(np.random.default_rng(4).random((40, 20), "f4"))
    assert not np.array_equal(
        full_ranks(coarse, held, keys=KEYS).ranks, full_ranks(coarse, held, keys=SeededKeys(12)).ranks
    )
    assert np.array_equal(
        full_ranks(fine, held, keys=KEYS).ranks, full_ranks(fine, held, keys=SeededKeys(12)).ranks
    )


def test_scores_are_left_as_they_were(random_parts, table):
    scores = coarse_scores(5, 10, 12)
    before = scores.copy()
    full_ranks(table(scores), held_out(random_parts(5, 10, 12), 12), keys=KEYS, depth=3)
    assert np.array_equal(scores, before)


def test_keeping_drops_items_and_emptied_users(random_parts, table):
    held = held_out(random_parts(6, 10, 12), 12)
    ranks = full_ranks(table(coarse_scores(6, 10, 12)), held, keys=KEYS)
    chosen = ranks.items < 4
    kept = ranks.keeping(chosen)
    owners = np.repeat(ranks.users, ranks.positives)
    assert np.repeat(kept.users, kept.positives).tolist() == owners[chosen].tolist()
    assert kept.ranks.tolist() == ranks.ranks[chosen].tolist()
    assert (kept.positives > 0).all()


def test_an_unknown_way_to_settle_ties_is_refused(random_parts, table):
    ranks = full_ranks(table(coarse_scores(6, 5, 12)), held_out(random_parts(6, 5, 12), 12), keys=KEYS)
    with pytest.raises(TacitError, match="did you mean 'best'"):
        ranks.settled("bets")
