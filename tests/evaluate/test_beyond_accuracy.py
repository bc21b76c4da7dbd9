from itertools import pairwise

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.evaluate.beyond_accuracy import by_activity, by_popularity, coverage
from tacit.evaluate.held_out import held_out
from tacit.evaluate.ranking import hit_rate
from tacit.evaluate.ranks import full_ranks
from tacit.rng import SeededKeys

KEYS = SeededKeys(2)


@pytest.fixture(scope="module")
def judged(random_parts, table):
    split = random_parts(0, 60, 40)
    scores = np.random.default_rng(0).random((60, 40), "f4")
    return split, full_ranks(table(scores), held_out(split, 40), keys=KEYS, depth=10)


def test_coverage_counts_items_anyone_is_shown(judged):
    _, ranks = judged
    for k in (1, 4, 10):
        shown = {item for row in ranks.shown[:, :k].tolist() for item in row if item >= 0}
        assert coverage(ranks, k) == len(shown) / 40


def test_coverage_of_popularity_is_its_head(random_parts, table):
    split = random_parts(1, 60, 40)
    counts = np.bincount(split.train.items, minlength=40).astype("f4")
    popular = table(np.tile(counts, (60, 1)))
    random = table(np.random.default_rng(1).random((60, 40), "f4"))
    held = held_out(split, 40)
    found = [coverage(full_ranks(model, held, keys=KEYS, depth=3), 3) for model in (popular, random)]
    assert found[0] < 0.5 < 0.9 < found[1]


def test_coverage_beyond_the_kept_depth_is_refused(judged):
    with pytest.raises(TacitError, match="depth"):
        coverage(judged[1], 11)


def test_head_and_tail_share_out_the_held_out_items(judged):
    split, ranks = judged
    head, tail = by_popularity(ranks, split.train, 5)
    counts = np.bincount(split.train.items, minlength=40)
    edge = np.sort(counts)[::-1][8] + 1
    for group, inside in ((head, counts >= edge), (tail, counts < edge)):
        per_user = []
        for row in range(len(ranks.users)):
            mine = slice(ranks.offsets[row], ranks.offsets[row + 1])
            hits = [
                rank <= 5
                for item, rank in zip(ranks.items[mine], ranks.ranks[mine], strict=True)
                if inside[item]
            ]
            per_user += [np.mean(hits)] if hits else []
        assert group.users == len(per_user)
        assert group.mean == pytest.approx(np.mean(per_user))


def test_a_popularity_model_serves_the_head(random_parts, table):
    split = random_parts(2, 200, 50)
    items = np.arange(50)
    keep = np.random.default_rng(0).random(len(split.train)) < 1 / (1 + split.train.items)
    train = split.train.take(keep)
    counts = np.bincount(train.items, minlength=50).astype("f4") - items * 1e-3
    split = type(split)(train, split.test)
    ranks = full_ranks(table(np.tile(counts, (200, 1)).astype("f4")), held_out(split, 50), keys=KEYS)
    head, tail = by_popularity(ranks, train, 10)
    assert head.mean > 0.5 > tail.mean


def test_activity_groups_hold_equal_users_together_and_average_to_the_whole(judged):
    split, ranks = judged
    values = hit_rate(ranks, 5)
    results = by_activity(ranks.users, values, split.train, groups=3)
    assert sum(result.users for result in results) == len(values)
    whole = sum(result.users * result.mean for result in results) / len(values)
    assert whole == pytest.approx(values.mean())
    spans = [tuple(int(word) for word in result.meaning.split() if word.isdigit()) for result in results]
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_malformed_groups_are_refused(judged):
    split, ranks = judged
    with pytest.raises(TacitError, match="two groups"):
        by_activity(ranks.users, np.ones(3), split.train)
    with pytest.raises(TacitError, match="between 0 and 1"):
        by_popularity(ranks, split.train, 5, head_share=1.0)
