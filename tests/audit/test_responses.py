"""Odds equal Bayes' rule written out, and answers drawn anew give the truth away."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from tacit.audit.responses import odds


@given(
    answers=st.lists(st.booleans(), min_size=1, max_size=8),
    epsilon=st.floats(0.1, 4),
    prior=st.floats(0.01, 0.99),
)
def test_belief_is_bayes(answers, epsilon, prior):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    here = prior * math.prod(keep if yes else 1 - keep for yes in answers)
    there = (1 - prior) * math.prod(1 - keep if yes else keep for yes in answers)
    told = np.array(answers, dtype=int)[:, None]
    assert expit(odds(told, epsilon, np.array([prior])))[0] == pytest.approx(here / (here + there), rel=1e-9)


def test_the_posterior_of_one_answer_on_a_sparse_history():
    """Base rate 0.0631 (ML-100K) and epsilon 2: a yes makes an item 33.2 % likely."""
    assert expit(odds(np.array([[1]]), 2.0, np.array([0.0631])))[0] == pytest.approx(0.332, abs=2e-3)


def test_ten_fresh_answers_reveal_nearly_everything():
    draw = np.random.default_rng(3)
    truth = draw.random(20_000) < 0.06
    keep = math.exp(2) / (1 + math.exp(2))
    answers = np.where(draw.random((10, 20_000)) < keep, truth, ~truth).astype(int)
    said = odds(answers, 2.0, np.full(20_000, 0.06)) > 0
    assert (said & truth).sum() / said.sum() > 0.97
    assert (said & truth).sum() / truth.sum() > 0.98


def test_answers_told_as_they_are_are_believed():
    assert expit(odds(np.array([[1, 0]]), math.inf, np.array([1e-6, 0.999]))).round(6).tolist() == [1.0, 0.0]
