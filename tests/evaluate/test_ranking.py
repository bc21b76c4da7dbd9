"""Metrics against their definitions, written as loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.evaluate.ranking import hit_rate, ndcg, recall, reciprocal_rank
from tacit.evaluate.ranks import Ranks

ITEMS = 30
lists = st.lists(st.sets(st.integers(1, ITEMS), min_size=1, max_size=12), min_size=1, max_size=5)


def ranks_of(places, *, alone=False):
    flat = np.array([rank for each in places for rank in sorted(each)], "i4")
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in places])])
    users = np.arange(len(places), dtype="i4")
    shown = np.empty((len(places), 0), "i4")
    among = np.full(len(flat), ITEMS, "i4")
    return Ranks(users, offsets, flat, flat, np.tile(flat, (2, 1)), among, shown, alone, ITEMS)


@given(places=lists, k=st.integers(1, ITEMS + 5))
def test_one_list_per_user_equals_the_textbook(places, k):
    ranks = ranks_of(places)
    for row, mine in enumerate(places):
        shown = [place in mine for place in range(1, min(k, ITEMS) + 1)]
        assert hit_rate(ranks, k)[row] == float(any(shown))
        assert recall(ranks, k)[row] == pytest.approx(sum(shown) / len(mine))
        gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(shown))
        ideal = sum(1 / math.log2(place + 2) for place in range(min(k, ITEMS, len(mine))))
        assert ndcg(ranks, k)[row] == pytest.approx(gain / ideal)
        assert reciprocal_rank(ranks)[row] == pytest.approx(1 / min(mine))
        assert reciprocal_rank(ranks, k)[row] == pytest.approx(1 / min(mine) if min(mine) <= k else 0)


@given(places=lists, k=st.integers(1, ITEMS))
def test_alone_is_the_mean_over_queries_with_one_relevant_item(places, k):
    ranks = ranks_of(places, alone=True)
    for row, mine in enumerate(places):
        hits = [place <= k for place in mine]
        gains = [hit / math.log2(place + 1) for place, hit in zip(mine, hits, strict=True)]
        assert hit_rate(ranks, k)[row] == pytest.approx(np.mean(hits))
        assert recall(ranks, k)[row] == pytest.approx(np.mean(hits))
        assert ndcg(ranks, k)[row] == pytest.approx(np.mean(gains))
        assert reciprocal_rank(ranks)[row] == pytest.approx(np.mean([1 / place for place in mine]))


@given(places=lists, k=st.integers(1, ITEMS - 1))
def test_hits_recall_and_mrr_never_fall_as_the_list_grows(places, k):
    ranks = ranks_of(places)
    for metric in (hit_rate, recall, reciprocal_rank):
        assert (metric(ranks, k) <= metric(ranks, k + 1)).all()
    assert (ndcg(ranks, k) <= 1 + 1e-12).all()


def test_a_perfect_list_scores_one_everywhere():
    ranks = ranks_of([{1, 2, 3}, {1}])
    for k in (1, 2, 3, 10):
        assert ndcg(ranks, k).tolist() == [1.0, 1.0]
    assert recall(ranks, 3).tolist() == [1.0, 1.0]


def test_a_cut_off_below_one_is_refused():
    with pytest.raises(TacitError, match="at least 1"):
        hit_rate(ranks_of([{1}]), 0)
