"""Supports: how many are real, which, and what survives comparing rounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.audit.rated_set import area_under_curve, from_one_upload, in_common, mixing_of, rated_count
from tacit.methods.dp_sub import Recipe, implicit_fedmf
from tacit.methods.fedrec import fedmf, fedrec


@given(rated=st.integers(1, 100), rho=st.sampled_from([0.0, 1.0, 2.0, 3.0]))
def test_the_number_of_rated_items_follows_from_the_settings(rated, rho):
    method = fedrec(rho=rho) if rho else fedmf()
    mixing = mixing_of(method.exchanges[0], 1000)
    assert rated_count(round(rated * (1 + rho)), mixing, usual=7.0, catalogue=1000) == rated


def test_repeated_draws_of_negatives_count_once():
    """4 negatives per item and 5 epochs: the mean number of distinct ones, checked by drawing."""
    exchange = implicit_fedmf(Recipe(4, 1, 0.1, 5, 64, 4, 1.0, 0.1)).exchanges[0]
    draw = np.random.default_rng(1)
    sizes = [30 + len(np.unique(draw.integers(0, 470, 20 * 30))) for _ in range(200)]
    assert mixing_of(exchange, 500)(30) == pytest.approx(np.mean(sizes), rel=0.01)


def test_an_upload_of_the_whole_catalogue_says_nothing_of_its_size():
    assert rated_count(500, lambda n: 2.0 * n, usual=31.4, catalogue=500) == 31


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_area_equals_the_share_of_pairs_in_order(pairs):
    scores = np.array([score for score, _ in pairs], dtype=float)
    positive = np.array([mine for _, mine in pairs])
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in scores[positive] for b in scores[~positive]]
    assert area_under_curve(scores, positive) == pytest.approx(np.mean(wins) if wins else 0.5)


def test_popularity_ranks_only_what_was_named():
    popularity = np.array([0.9, 0.1, 0.8, 0.3])
    assert from_one_upload(np.array([1, 3]), popularity, 1).tolist() == [3]


@given(st.lists(st.sets(st.integers(0, 20)), min_size=1, max_size=4), st.sets(st.integers(0, 20)))
def test_what_is_in_every_upload_survives(fillers, rated):
    supports = [np.array(sorted(drawn | rated), dtype="i4") for drawn in fillers]
    assert set(in_common(supports).tolist()) == set.intersection(*fillers) | rated
