"""The audit passes clean samplers at its stated rate and catches the leak."""

import numpy as np
import pytest
from scipy import sparse, stats

from tacit.errors import TacitError
from tacit.evaluate.null_model import not_applicable, null_audit
from tacit.rng import SeededKeys

USERS, ITEMS = 300, 120


def split_of(random_parts, parts, seed):
    """One held-out item per user, drawn at random."""
    full = random_parts(seed, USERS, ITEMS, test_share=0.1)
    shuffled = full.test.take(np.random.default_rng(seed).permutation(len(full.test)))
    _, first = np.unique(shuffled.users, return_index=True)
    held = shuffled.take(first)
    train = np.stack([full.train.users, full.train.items], 1)
    return parts(train, np.stack([held.users, held.items], 1))


def drawn_by(split, generator, *, rounds, leaky=False, weights=None):
    """Four negatives per positive and round, uniformly (or by weight) from each user's pool."""
    hidden = np.zeros((USERS, ITEMS), bool)
    hidden[split.train.users, split.train.items] = True
    amounts = 4 * rounds * hidden.sum(axis=1)
    if leaky:
        hidden[split.test.users, split.test.items] = True
    chances = np.where(hidden, 0.0, 1.0 if weights is None else weights)
    chances /= chances.sum(axis=1, keepdims=True)
    return sparse.csr_array(generator.multinomial(amounts, chances))


@pytest.mark.parametrize("negatives", [None, 30])
def test_clean_samplers_fail_no_more_often_than_stated(random_parts, parts, negatives):
    """At a nominal 5 % the failures in 200 clean runs stay below the binomial's 1e-6 quantile."""
    split = split_of(random_parts, parts, 0)
    generator = np.random.default_rng(1)
    p_values = []
    for run in range(200):
        drawn = drawn_by(split, generator, rounds=1)
        p_values.append(null_audit(drawn, split, keys=SeededKeys(run), negatives=negatives).p_value)
    assert np.count_nonzero(np.array(p_values) < 0.05) <= stats.binom.isf(1e-6, 200, 0.05)
    assert np.median(p_values) > 0.2


@pytest.mark.parametrize("negatives", [None, 30])
@pytest.mark.parametrize("rounds", [1, 5, 50])
def test_the_leak_is_caught(random_parts, parts, rounds, negatives):
    split = split_of(random_parts, parts, 2)
    drawn = drawn_by(split, np.random.default_rng(3), rounds=rounds, leaky=True)
    audit = null_audit(drawn, split, keys=SeededKeys(0), negatives=negatives)
    assert not audit.passed
    assert audit.observed > audit.chance
    assert audit.mean_place < 0.5
    with pytest.raises(TacitError, match="complement of the training items only"):
        audit.require()


def test_a_leaky_popularity_sampler_is_caught_and_a_clean_one_passes(random_parts, parts):
    split = split_of(random_parts, parts, 4)
    weights = np.linspace(0.2, 3, ITEMS)
    generator = np.random.default_rng(5)
    clean = drawn_by(split, generator, rounds=20, weights=weights)
    leaky = drawn_by(split, generator, rounds=20, weights=weights, leaky=True)
    assert null_audit(clean, split, keys=SeededKeys(0)).passed
    assert not null_audit(leaky, split, keys=SeededKeys(0)).passed


def test_the_leak_is_caught_where_users_hold_out_many(random_parts):
    split = random_parts(6, USERS, ITEMS, test_share=0.2)
    generator = np.random.default_rng(7)
    leaky = null_audit(drawn_by(split, generator, rounds=5, leaky=True), split, keys=SeededKeys(0))
    clean = null_audit(drawn_by(split, generator, rounds=5), split, keys=SeededKeys(0))
    assert clean.passed
    assert not leaky.passed


def test_chance_is_k_over_the_candidates(parts):
    """Two users with 10 - 1 and 10 - 2 candidates."""
    split = parts([(0, 0), (1, 0), (1, 1)], [(0, 5), (1, 5)])
    audit = null_audit(sparse.csr_array(np.ones((2, 10))), split, keys=SeededKeys(0), k=2)
    assert audit.chance == pytest.approx((2 / 9 + 2 / 8) / 2)
    assert audit.users == 2
    sampled = null_audit(sparse.csr_array(np.ones((2, 10))), split, keys=SeededKeys(0), k=2, negatives=4)
    assert sampled.chance == pytest.approx(2 / 5)
    assert sampled.metric == "hr@2[4]"


def test_users_without_draws_do_not_dilute_the_audit(random_parts, parts):
    split = split_of(random_parts, parts, 8)
    drawn = drawn_by(split, np.random.default_rng(9), rounds=20, leaky=True).toarray()
    drawn[40:] = 0
    audit = null_audit(sparse.csr_array(drawn), split, keys=SeededKeys(0))
    assert audit.users <= 40
    assert not audit.passed


def test_nothing_drawn_is_nothing_to_audit(random_parts, parts):
    split = split_of(random_parts, parts, 10)
    audit = null_audit(sparse.csr_array((USERS, ITEMS), dtype=np.int32), split, keys=SeededKeys(0))
    assert not audit.applicable
    assert audit.passed
    assert "no negative was drawn" in audit.summary
    assert not not_applicable("closed form").applicable


def test_counts_for_too_few_users_are_refused(random_parts, parts):
    split = split_of(random_parts, parts, 11)
    with pytest.raises(TacitError, match="users x items"):
        null_audit(sparse.csr_array((3, ITEMS), dtype=np.int32), split, keys=SeededKeys(0))
