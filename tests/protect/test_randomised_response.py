"""Randomised response lies as often as it says, its estimate is right, and it tells what was computed."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Claim, Observer, Unit
from tacit.account.local import keep_probability, lies_below, randomised_bits
from tacit.errors import TacitError
from tacit.kernels.responses import respond
from tacit.kernels.responses import truth as true_bits
from tacit.models.sub_model import chosen, estimated_frequencies
from tacit.protect.randomised_response import RandomisedResponse
from tacit.rng import SeededKeys, SystemKeys, stream
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

FACTS = RoundFacts(0, "report", 10, 10, 10)


def answers(guard, keys, round, federation):
    cohort = guard.on_cohort(federation.cohort(federation.people), keys, round)
    return np.unpackbits(cohort.extras["bits"], axis=1, count=federation.catalogue)


def truth(federation):
    met = np.zeros((len(federation), federation.catalogue), dtype=int)
    met[np.repeat(np.arange(len(federation)), np.diff(federation.offsets)), federation.items] = 1
    return met


@pytest.mark.parametrize("budget", [0.5, 2.0])
def test_lies_come_with_the_right_probability_for_both_truths(budget):
    """Two binomial tests; each fails a right mechanism with probability 1e-6."""
    federation = tiny_federation(800, 60)
    met, told = truth(federation), answers(RandomisedResponse(budget, 60), SeededKeys(3), 0, federation)
    lie = 1 - keep_probability(budget)
    for value in (0, 1):
        mine = met == value
        flips = int((told[mine] != value).sum())
        assert stats.binomtest(flips, int(mine.sum()), lie).pvalue > 1e-6


def test_bits_are_independent_of_each_other():
    """Pairs of neighbouring items lie together as often as two independent coins do (chi-square, 1e-6)."""
    federation = tiny_federation(4000, 2)
    lies = (truth(federation) != answers(RandomisedResponse(1.0, 2), SeededKeys(5), 0, federation)).astype(
        int
    )
    counts = np.zeros((2, 2))
    np.add.at(counts, (lies[:, 0], lies[:, 1]), 1)
    found: Any = stats.chi2_contingency(counts, correction=False)
    assert found.pvalue > 1e-6


def test_true_answers_are_true_and_nothing_lies_beyond_the_catalogue():
    federation = tiny_federation(30, 13)
    told = true_bits(federation.offsets, federation.items, 13)
    assert np.array_equal(np.unpackbits(told, axis=1, count=13), truth(federation))
    respond(told, stream(np.arange(30, dtype="u8"), 13), 2**62)
    assert not np.array_equal(np.unpackbits(told, axis=1, count=13), truth(federation))
    assert not (told[:, -1] & 0b111).any()


@pytest.mark.parametrize("redraw", ["never", "round"])
def test_a_devices_coins_are_no_stream_of_a_64_bit_key(redraw):
    """Such a key could be tried offline against the answers: its words would differ by a known step."""
    federation, keys = tiny_federation(20, 400), SystemKeys(b"a secret of the device")
    told = answers(RandomisedResponse(1.0, 400, redraw), keys, 0, federation)
    short = keys.users(federation.people, "randomised response")
    coins = np.packbits(stream(short, 400) < np.uint64(lies_below(1.0)), axis=1)
    assert not np.array_equal(told, truth(federation) ^ np.unpackbits(coins, axis=1, count=400))
    words = keys.kept_words(federation.people, "randomised response", 400)
    assert np.array_equal(words, keys.kept_words(federation.people, "randomised response", 500)[:, :400])
    assert np.array_equal(words[7:8], keys.kept_words(federation.people[7:8], "randomised response", 400))
    assert len(np.unique(words)) == words.size
    assert stats.kstest(words.ravel() / 2.0**64, "uniform").pvalue > 1e-6
    other = SystemKeys(b"another secret").kept_words(federation.people, "randomised response", 400)
    assert not np.isin(words, other).any()


@given(st.floats(1e-6, 2000.0))
def test_a_coin_lies_at_least_as_often_as_the_claim_says(budget):
    """With doubles alone it told the plain truth from epsilon 37 on."""
    lie = math.exp(-budget) / (1 + math.exp(-budget))
    assert 1 <= lies_below(budget) <= 2**63
    assert lies_below(budget) / 2.0**64 >= lie * (1 - 1e-15)


class AllZeros(SeededKeys):
    """The word that lies at every epsilon."""

    def kept_words(self, users, purpose, width):
        del purpose
        return np.zeros((len(users), width), dtype=np.uint64)


@pytest.mark.parametrize("budget", [2.0, 36.9, 37.0, 44.0, 800.0])
def test_there_is_a_coin_that_lies_at_every_epsilon(budget):
    federation = tiny_federation(20, 15)
    told = answers(RandomisedResponse(budget, 15), AllZeros(1), 0, federation)
    assert np.array_equal(told, 1 - truth(federation))


def test_kept_answers_stay_and_fresh_ones_change():
    federation = tiny_federation(20, 15)
    for keys in (SeededKeys(1), SystemKeys(b"a secret of the device")):
        kept, fresh = RandomisedResponse(1.0, 15), RandomisedResponse(1.0, 15, "round")
        assert np.array_equal(answers(kept, keys, 0, federation), answers(kept, keys, 9, federation))
        assert not np.array_equal(answers(fresh, keys, 0, federation), answers(fresh, keys, 9, federation))


@settings(max_examples=50, deadline=None)
@given(true=st.floats(0, 1), budget=st.floats(0.1, 6))
def test_the_estimate_inverts_the_mechanism(true, budget):
    keep = keep_probability(budget)
    told = np.array([true * keep + (1 - true) * (1 - keep)])
    assert estimated_frequencies(told, budget)[0] == pytest.approx(true, abs=1e-9)


def test_the_estimate_is_the_maximum_of_the_likelihood():
    """Against a search over the likelihood of c ones among n answers, inside and at the borders."""
    keep, n = keep_probability(1.5), 200
    grid = np.linspace(0, 1, 20_001)
    shown = grid * keep + (1 - grid) * (1 - keep)
    for count in (0, 10, 60, 100, 150, 200):
        likelihood = count * np.log(shown) + (n - count) * np.log1p(-shown)
        best = grid[np.argmax(likelihood)]
        assert estimated_frequencies(np.array([count / n]), 1.5)[0] == pytest.approx(best, abs=1e-4)


def test_the_estimate_is_unbiased_with_the_variance_of_the_closed_form():
    """2000 repetitions with 300 people, a third of whom met the item: within five deviations."""
    keep, people = keep_probability(2.0), 300
    ones = np.random.default_rng(1).binomial(100, keep, 2000) + np.random.default_rng(2).binomial(
        200, 1 - keep, 2000
    )
    found = (ones / people + keep - 1) / (2 * keep - 1)
    variance = keep * (1 - keep) / (people * (2 * keep - 1) ** 2)
    assert abs(found.mean() - 1 / 3) < 5 * math.sqrt(variance / 2000)
    assert found.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / 2000))


def test_choice_is_above_the_mean_or_a_threshold():
    assert chosen(np.array([0.1, 0.2, 0.9]), 0.4).tolist() == [False, False, True]
    assert chosen(np.array([0.1, 0.2, 0.9]), 0.15).tolist() == [False, True, True]
    with pytest.raises(TacitError, match="lower the threshold"):
        chosen(np.array([0.1, 0.1]), 0.1)


def posterior(ones, answers, budget, prior):
    """P(met | so many ones in so many fresh answers)."""
    odds = prior / (1 - prior) * math.exp(budget * (2 * ones - answers))
    return odds / (1 + odds)


def test_what_one_answer_tells():
    """One answer at epsilon 2 and the flat prior of ML-100K (0.0630): P(met | 1) = 0.332."""
    assert posterior(1, 1, 2.0, 100_000 / (943 * 1682)) == pytest.approx(0.332, abs=5e-4)


@pytest.mark.parametrize(
    ("reports", "precision", "recall"),
    [(2, 0.79, 0.78), (3, 0.97, 0.69), (5, 0.98, 0.89), (7, 0.99, 0.96), (10, 0.994, 0.997)],
)
def test_fresh_answers_reveal_and_kept_ones_do_not(reports, precision, recall):
    """Closed form of the flat-prior rule "met if more likely than not", against computed values for ML-100K;
    and the mechanism itself on simulated people: fresh answers follow the curve, kept ones stay at one."""
    budget, prior = 2.0, 100_000 / (943 * 1682)
    keep = keep_probability(budget)
    hits = [posterior(ones, reports, budget, prior) > 0.5 for ones in range(reports + 1)]
    met = stats.binom.pmf(np.arange(reports + 1), reports, keep)[hits].sum()
    unmet = stats.binom.pmf(np.arange(reports + 1), reports, 1 - keep)[hits].sum()
    assert prior * met / (prior * met + (1 - prior) * unmet) == pytest.approx(precision, abs=0.0075)
    assert met == pytest.approx(recall, abs=0.0075)

    federation = tiny_federation(400, 100, seed=1)
    told = {}
    for redraw in ("round", "never"):
        guard = RandomisedResponse(budget, 100, redraw)
        told[redraw] = sum(answers(guard, SeededKeys(2), round, federation) for round in range(reports))
    mine = truth(federation) == 1
    seen = np.isin(told["round"][mine], np.flatnonzero(hits)).mean()
    assert seen == pytest.approx(met, abs=5 * math.sqrt(met * (1 - met) / mine.sum()) + 1e-9)
    assert set(np.unique(told["never"])) <= {0, reports}


def test_what_a_person_an_item_and_a_swap_cost():
    """epsilon per item, twice that for a swap, items times epsilon for a person; fresh answers add up."""
    claim = RandomisedResponse(2.0, 1682).event(Claim.unbounded("bits"), None, FACTS)
    event = claim.event(Observer.SERVER)
    assert epsilon([event], 0, Adjacency.ADD_REMOVE).value == 3364
    assert epsilon([event] * 3, 0, Adjacency.ADD_REMOVE).value == 3 * 3364
    item = randomised_bits(2.0, 1682, Unit.INTERACTION, Adjacency.ADD_REMOVE)
    swap = randomised_bits(2.0, 1682, Unit.INTERACTION, Adjacency.REPLACE_ONE)
    assert epsilon([item], 0, Adjacency.ADD_REMOVE).value == 2.0
    assert epsilon([swap], 0, Adjacency.REPLACE_ONE).value == 4.0


def test_the_ratio_of_probabilities_is_the_claim():
    """Every answer about one item is at most e^epsilon times likelier under the other truth."""
    keep = keep_probability(2.0)
    assert keep / (1 - keep) == pytest.approx(math.exp(2.0))


@pytest.mark.parametrize("broken", [{"epsilon": 0.0, "items": 3}, {"epsilon": 1.0, "items": 0}])
def test_refusals(broken):
    with pytest.raises(TacitError, match="epsilon above 0"):
        RandomisedResponse(**broken)
