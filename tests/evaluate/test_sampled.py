"""Sampled candidates: which, how many, how often."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.evaluate.held_out import held_out
from tacit.evaluate.sampled import sampled_ranks
from tacit.rng import SeededKeys

KEYS = SeededKeys(7)
FALSE_ALARM = 1e-6


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_drawing_everything_ranks_within_the_complement_of_what_was_seen(random_parts, table, seed):
    users, items = 5, 14
    split = random_parts(seed, users, items, support=True)
    scores = np.random.default_rng(seed).permuted(np.tile(np.arange(items, dtype="f4"), (users, 1)), axis=1)
    held = held_out(split, items)
    ranks = sampled_ranks(table(scores), held, negatives=items, keys=KEYS)
    for row, user in enumerate(held.users):
        unseen = set(range(items)) - set(held.seen[row].tolist())
        for slot, item in zip(
            range(ranks.offsets[row], ranks.offsets[row + 1]), held.positives[row], strict=True
        ):
            assert ranks.ranks[slot] == 1 + sum(scores[user, other] > scores[user, item] for other in unseen)
            assert ranks.among[slot] == len(unseen)


def test_negatives_differ_from_one_another_and_from_the_target(random_parts, table):
    """A target below all others meets exactly as many better items as were drawn."""
    split = random_parts(1, 40, 60, test_share=0.1)
    held = held_out(split, 60)
    scores = np.ones((40, 60), "f4")
    scores[split.test.users, split.test.items] = 0
    ranks = sampled_ranks(table(scores), held, negatives=9, keys=KEYS)
    assert ranks.bounds[1].tolist() == [10] * len(ranks.items)
    assert ranks.among.tolist() == [10] * len(ranks.items)


def test_each_unseen_item_is_drawn_equally_often_and_no_seen_one(parts, table):
    """One item at a time outranks the target, so rank 2 says it was drawn; binomial test."""
    users, items, negatives, target, other_held_out, seen = 4_000, 12, 4, 3, 5, 7
    everybody = np.arange(users)
    test = [(user, item) for user in everybody for item in (target, other_held_out)]
    split = parts(np.stack([everybody, everybody * 0 + seen], 1), test)
    held = held_out(split, items)
    pool = items - 2  # without the seen item and the target
    for probe in range(items):
        if probe == target:
            continue
        scores = np.zeros((users, items), "f4")
        scores[:, target], scores[:, probe] = 1, 2
        ranks = sampled_ranks(table(scores), held, negatives=negatives, keys=KEYS)
        drawn = int((ranks.ranks[ranks.items == target] == 2).sum())
        if probe == seen:
            assert drawn == 0
        else:
            assert stats.binomtest(drawn, users, negatives / pool).pvalue > FALSE_ALARM


def test_ties_fall_uniformly(parts, table):
    users = 6_000
    everybody = np.arange(users)
    split = parts([(0, 0)], np.stack([everybody, 1 + everybody % 20], 1))
    ranks = sampled_ranks(table(np.zeros((users, 30), "f4")), held_out(split, 30), negatives=5, keys=KEYS)
    assert stats.chisquare(np.bincount(ranks.ranks, minlength=7)[1:]).pvalue > FALSE_ALARM


def test_candidates_depend_on_the_seed_and_not_on_grouping_or_model(random_parts, table):
    split = random_parts(2, 50, 80)
    held = held_out(split, 80)
    scores = np.random.default_rng(0).random((50, 80), "f4")
    ranks = sampled_ranks(table(scores), held, negatives=9, keys=KEYS)
    alone = sampled_ranks(table(scores), held, negatives=9, keys=KEYS, block_bytes=1)
    rescaled = sampled_ranks(table(scores * 4 + 1), held, negatives=9, keys=KEYS)
    another = sampled_ranks(table(scores), held, negatives=9, keys=SeededKeys(8))
    assert np.array_equal(ranks.ranks, alone.ranks)
    assert np.array_equal(ranks.ranks, rescaled.ranks)
    assert not np.array_equal(ranks.ranks, another.ranks)


def test_no_negatives_is_refused(random_parts, table):
    with pytest.raises(TacitError, match="at least one"):
        sampled_ranks(
            table(np.zeros((5, 9), "f4")), held_out(random_parts(0, 5, 9), 9), negatives=0, keys=KEYS
        )
