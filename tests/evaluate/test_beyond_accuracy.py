import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.evaluate.beyond_accuracy import activity_groups, by_popularity, coverage
from tacit.evaluate.held_out import held_out
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


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(2, 5))
def test_activity_groups_rise_and_hold_equal_users_together(activity, groups):
    activity = np.array(activity)
    found = activity_groups(activity, groups)
    assert found.min() == 0
    assert found.max() < groups
    assert (np.diff(found[np.argsort(activity, kind="stable")]) >= 0).all()
    assert len({(a, g) for a, g in zip(activity.tolist(), found.tolist(), strict=True)}) == len(set(activity))


def test_activity_groups_are_equal_in_size_where_nobody_ties():
    found = activity_groups(np.random.default_rng(0).permutation(90), 3)
    assert np.bincount(found).tolist() == [30, 30, 30]


def test_malformed_groups_are_refused(judged):
    split, ranks = judged
    with pytest.raises(TacitError, match="two or more"):
        activity_groups(np.ones(3, "i8"), 1)
    with pytest.raises(TacitError, match="between 0 and 1"):
        by_popularity(ranks, split.train, 5, head_share=1.0)
