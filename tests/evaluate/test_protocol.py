import math

import numpy as np
import pytest
from scipy import sparse

from tacit.data.interactions import Interactions, Scale
from tacit.errors import TacitError
from tacit.evaluate import evaluate, not_applicable, null_audit, parse_metric
from tacit.rng import SeededKeys

KEYS = SeededKeys(3)
STARS = Scale(1, 5, 1)
ALL = (
    "rmse",
    "mae",
    "hr@10",
    "recall@10",
    "ndcg@10",
    "mrr",
    "mrr@5",
    "coverage@10",
    "hr@5[20]",
    "ndcg@5[20]",
)
BY_USER = ("hr@5[positives-alone]", "ndcg@5[positives-alone]")


@pytest.fixture(scope="module")
def judged(random_parts, table):
    split = random_parts(0, 80, 60)
    model = table(np.random.default_rng(0).random((80, 60), "f4") * 5)
    return evaluate(model, split, metrics=ALL + BY_USER, keys=KEYS, catalogue=60, scale=STARS)


def test_metrics_come_in_the_order_asked_for(judged):
    assert tuple(judged.metrics) == ALL + BY_USER


def test_a_metric_is_the_mean_of_its_users_with_their_standard_error(judged):
    for name in ALL[2:7] + ALL[8:] + BY_USER:
        values = judged.per_user[name].values
        assert judged.metrics[name] == pytest.approx(values.mean())
        assert judged.errors[name] == pytest.approx(values.std(ddof=1) / math.sqrt(len(values)))
        assert len(values) == judged.users
    assert "coverage@10" not in judged.per_user
    assert set(judged.errors) == set(judged.metrics) - {"coverage@10"}


def test_random_scores_are_at_chance(random_parts, table):
    """One held-out item among n candidates is in the first ten with probability 10 / n; five sigma."""
    users, items = 4_000, 60
    split = random_parts(1, users, items, test_share=0.02)
    _, first = np.unique(split.test.users, return_index=True)
    split = type(split)(split.train, split.test.take(first))
    model = table(np.random.default_rng(2).random((users, items), "f4"))
    names = ("hr@10", "hr@10[19]", "hr@10[positives-alone]", "mrr[19]")
    found = evaluate(model, split, metrics=names, keys=KEYS, catalogue=items)
    ranks = found.ranks["full"]
    expected = {
        "hr@10": np.mean(10 / ranks.among),
        "hr@10[19]": 0.5,
        "hr@10[positives-alone]": np.mean(10 / ranks.among),
        "mrr[19]": np.mean(1 / np.arange(1, 21)),
    }
    for name, value in expected.items():
        assert abs(found.metrics[name] - value) < 5 * found.errors[name]


def test_an_oracle_is_perfect_and_its_opposite_worthless(random_parts, table):
    split = random_parts(3, 50, 60)
    scores = np.random.default_rng(0).random((50, 60), "f4")
    scores[split.test.users, split.test.items] += 10
    names = ("hr@10", "ndcg@10", "mrr", "hr@10[20]", "ndcg@1[positives-alone]")
    best = evaluate(table(scores), split, metrics=names, keys=KEYS, catalogue=60).metrics
    assert best["hr@10"] == best["ndcg@10"] == best["mrr"] == best["ndcg@1[positives-alone]"] == 1
    worst = evaluate(table(-scores), split, metrics=names, keys=KEYS, catalogue=60).metrics
    assert worst["hr@10"] == worst["ndcg@10"] == worst["ndcg@1[positives-alone]"] == 0


def test_training_and_support_items_are_never_candidates(random_parts, table):
    """Scores that shout for known items change nothing."""
    split = random_parts(4, 50, 60, support=True)
    scores = np.random.default_rng(0).random((50, 60), "f4")
    names = ("hr@10", "ndcg@10", "mrr", "coverage@5", "hr@5[20]", "hr@5[positives-alone]")
    quiet = evaluate(table(scores), split, metrics=names, keys=KEYS, catalogue=60)
    for part in (split.train, split.support):
        scores[part.users, part.items] += 100
    loud = evaluate(table(scores), split, metrics=names, keys=KEYS, catalogue=60)
    assert quiet.metrics == loud.metrics


def test_a_metric_does_not_depend_on_what_else_is_asked_for(judged, random_parts, table):
    split = random_parts(0, 80, 60)
    model = table(np.random.default_rng(0).random((80, 60), "f4") * 5)
    for name in ALL + BY_USER:
        alone = evaluate(model, split, metrics=[name], keys=KEYS, catalogue=60, scale=STARS)
        assert alone.metrics == {name: judged.metrics[name]}


def test_notes_tell_users_candidates_ties_and_what_was_left_out(parts, table):
    split = parts([(0, 0), (1, 0)], [(0, 1), (0, 0), (1, 2)])
    found = evaluate(
        table(np.zeros((2, 9), "f4")), split, metrics=["hr@2", "hr@2[99]"], keys=KEYS, catalogue=9
    )
    told = "\n".join(found.notes)
    assert "2 users with 2 held-out items" in told
    assert "1 test pairs left out" in told
    assert "100.0% of held-out items tie" in told
    assert "hr@2 is 0.0000 at worst and 1.0000 at best" in told
    assert "2 held-out items had fewer candidates than 99" in told


def test_ties_may_be_settled_in_the_best_or_worst_way(parts, table):
    split = parts([(0, 0)], [(0, 1)])
    found = {
        ties: evaluate(
            table(np.zeros((1, 9), "f4")), split, metrics=["mrr"], keys=KEYS, catalogue=9, ties=ties
        )
        for ties in ("best", "worst")
    }
    assert found["best"].metrics["mrr"] == 1
    assert found["worst"].metrics["mrr"] == 1 / 8


def test_a_threshold_for_positives_is_told(parts, log, table):
    split = parts([(0, 0)], [])
    split = type(split)(split.train, log([(0, 1), (0, 2)], [5, 1]))
    model = table(np.array([[0, 1, 2, 0]], "f4"))
    found = evaluate(model, split, metrics=["mrr"], keys=KEYS, catalogue=4, relevant_from=4)
    assert found.metrics["mrr"] == 0.5
    assert "held-out items rated 4 or higher count as positives" in found.notes


def test_a_failed_audit_stops_the_evaluation_and_a_passed_one_is_told(parts, table):
    people = range(60)
    split = parts([(user, 0) for user in people], [(user, 1 + user % 9) for user in people])
    model = table(np.random.default_rng(0).random((60, 20), "f4"))
    counts = np.full((60, 20), 2)
    clean = null_audit(sparse.csr_array(counts), split, keys=KEYS)
    assert (
        clean.summary in evaluate(model, split, metrics=["hr@5"], keys=KEYS, catalogue=20, audit=clean).notes
    )
    counts[split.test.users, split.test.items] = 0
    leaky = null_audit(sparse.csr_array(counts), split, keys=KEYS)
    with pytest.raises(TacitError, match="give the held-out items away"):
        evaluate(model, split, metrics=["hr@5"], keys=KEYS, catalogue=20, audit=leaky)
    none = not_applicable("closed form")
    assert none.summary in evaluate(model, split, metrics=["hr@5"], keys=KEYS, catalogue=20, audit=none).notes


def test_a_cut_off_beyond_the_catalogue_is_the_whole_list(parts, table):
    split = parts([(0, 0)], [(0, 1)])
    names = ["hr@500", "recall@500", "coverage@500"]
    found = evaluate(table(np.zeros((1, 9), "f4")), split, metrics=names, keys=KEYS, catalogue=9)
    assert found.metrics == {"hr@500": 1, "recall@500": 1, "coverage@500": 8 / 9}


@pytest.mark.parametrize(
    "text", ["rmse", "mrr", "mrr@3", "hr@10", "coverage@7", "ndcg@10[99]", "mrr[positives-alone]"]
)
def test_known_names_are_read(text):
    assert parse_metric(text).text == text


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("hitrate@10", "hr@10"),
        ("hr", "hr@10"),
        ("hr@0", "hr@10"),
        ("ndgc@10", "did you mean 'ndcg@10'"),
        ("rmse@10", "did you mean 'rmse'"),
        ("coverage@10[99]", "did you mean 'coverage@10'"),
        ("hr@10[all]", "did you mean 'hr@10"),
        ("HR@10", "hr@10"),
        ("hr@10\n", "did you mean 'hr@10'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(text, remedy):
    with pytest.raises(TacitError) as refused:
        parse_metric(text)
    assert remedy in refused.value.remedy


def test_rating_metrics_need_a_scale_and_a_rater(parts, table, order_only):
    split, scores = parts([(0, 0)], [(0, 1)]), np.zeros((1, 3), "f4")
    with pytest.raises(TacitError, match="without a rating scale"):
        evaluate(table(scores), split, metrics=["rmse"], keys=KEYS, catalogue=3)
    with pytest.raises(TacitError, match="predicts no ratings"):
        evaluate(order_only(scores), split, metrics=["rmse"], keys=KEYS, catalogue=3, scale=STARS)


def test_nothing_new_to_rank_is_refused(parts, table):
    with pytest.raises(TacitError, match="no user has a new item"):
        evaluate(
            table(np.zeros((1, 3), "f4")), parts([(0, 0)], [(0, 0)]), metrics=["mrr"], keys=KEYS, catalogue=3
        )


def test_reading_never_writes(random_parts, table):
    split = random_parts(5, 20, 30)
    before = [column.copy() for part in (split.train, split.test) for column in (part.users, part.items)]
    evaluate(table(np.zeros((20, 30), "f4")), split, metrics=["mrr"], keys=KEYS, catalogue=30)
    after = [column for part in (split.train, split.test) for column in (part.users, part.items)]
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert isinstance(split.train, Interactions)
