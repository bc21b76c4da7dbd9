"""Noise shares: bounded before, right in the sum, and worth what the claim says to whom it says it."""

import math

import numpy as np
import pytest

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import Gaussian
from tacit.errors import TacitError
from tacit.protect.clip import clip
from tacit.protect.distributed import LENGTHENING, discrete_gaussian, skellam
from tacit.protect.grid import grid
from tacit.protect.protection import Draws, chain
from tacit.rng import SeededKeys
from tacit.testing.contracts import check_protection
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts, Rows

FACTS = RoundFacts(2, "train", 50, 50, 40, {"items": (9, 4)})
KINDS = [skellam, discrete_gaussian]


def draws(clients, catalogue=9, seed=1):
    return Draws(SeededKeys(seed), np.arange(clients, dtype=np.int32), "noise", 2, catalogue)


def some_rows(clients, catalogue=9, dim=4, seed=0):
    generator = np.random.default_rng(seed)
    held = [np.sort(generator.permutation(catalogue)[: generator.integers(1, 6)]) for _ in range(clients)]
    lengths = np.array([len(ids) for ids in held])
    ids = np.concatenate(held).astype(np.int32)
    return Rows(
        np.cumsum(lengths) - lengths, lengths, ids, generator.normal(size=(len(ids), dim)).astype(np.float32)
    )


def written_out(rows, catalogue=9):
    total, counts = np.zeros((catalogue, rows.values.shape[1])), np.zeros(catalogue)
    np.add.at(total, rows.ids, rows.values)
    np.add.at(counts, rows.ids, 1)
    return total, counts


@pytest.mark.parametrize("make", KINDS)
def test_without_much_noise_and_clipping_the_sum_is_the_sum(make):
    """500 steps of noise and rounding on a scale of 2^20: the sum of 40 within 1e-3 of the clip norm."""
    rows = some_rows(40)
    stage = make(noise=1e-4, honest=40, clip=50.0, steps=1 << 20, weight=1.0)
    sent = stage.noised({"items": rows}, None, None, draws(40))
    assert sent["items"].shape == (40, 9, 4)
    assert sent["items"].dtype == np.int64
    total = {name: array.sum(axis=0) for name, array in sent.items()}
    back, _ = stage.on_server(total, None, None, FACTS, SeededKeys(1))
    expected, counts = written_out(rows)
    np.testing.assert_allclose(back["items"], expected, atol=0.05)
    np.testing.assert_allclose(back["items.count"], np.maximum(counts, 1), atol=0.05)


@pytest.mark.parametrize("make", KINDS)
def test_it_keeps_the_promises_of_a_protection(make):
    federation = tiny_federation(6, 9, seed=3)
    cohort = federation.cohort(federation.people)
    values = np.random.default_rng(0).normal(size=(len(cohort.items), 4)).astype("f4")
    rows = Rows(cohort.offsets[:-1], np.diff(cohort.offsets), cohort.items, values)
    for update in ({"items": rows}, {"w": np.random.default_rng(1).normal(size=(6, 5)).astype("f4")}):
        check_protection(make(noise=1.0, honest=3, clip=1.0), update, cohort)


@pytest.mark.parametrize("make", KINDS)
def test_every_vector_keeps_its_bound_before_the_noise(make):
    """With next to no noise, what is sent is at most the norm that the claim counts on."""
    rows = some_rows(200)
    stage = make(noise=1e-6, honest=1, clip=0.3, steps=2000)
    sent = stage.noised({"items": rows, "bias": np.full((200, 3), 1e6)}, None, None, draws(200))
    flat = np.concatenate([array.reshape(200, -1) for array in sent.values()], axis=1).astype(float)
    assert np.linalg.norm(flat, axis=1).max() <= stage.norm <= 2000 * math.sqrt(1.01) * (1 + 1e-12)


def test_rounding_too_coarse_for_the_length_is_refused():
    with pytest.raises(TacitError, match="use more steps"):
        skellam(noise=1.0, honest=5, clip=1.0, steps=10).noised(
            {"w": np.ones((2, 500))}, None, None, draws(2)
        )


@pytest.mark.parametrize("make", KINDS)
def test_the_noise_on_the_sum_is_what_was_asked_for(make):
    """100 empty updates of 4,000 numbers: the deviation of the sum within 4 percent (seven deviations)."""
    stage = make(noise=2.0, honest=100, clip=3.0)
    sent = stage.noised({"w": np.zeros((100, 4000))}, None, None, draws(100))
    back, _ = stage.on_server({"w": sent["w"].sum(axis=0)}, None, None, FACTS, SeededKeys(1))
    assert back["w"].std() == pytest.approx(6.0, rel=0.08)
    assert abs(back["w"].mean()) < 5 * 6.0 / math.sqrt(4000)


@pytest.mark.parametrize("make", KINDS)
def test_few_honest_devices_draw_large_shares_and_none_beyond_what_can_be_drawn(make):
    """Three devices' shares of variance 1.4e9; 2,000 draws, so within 16 percent (five deviations)."""
    stage = make(noise=2.0, honest=3, clip=3.0)
    sent = stage.noised({"w": np.zeros((1, 2000))}, None, None, draws(1))["w"]
    assert sent.var() == pytest.approx((2.0 * 2**15) ** 2 / 3, rel=0.16)
    make(noise=9.6, honest=1, clip=3.0)
    with pytest.raises(TacitError, match="choose steps"):
        make(noise=9.7, honest=1, clip=3.0)


def test_noise_is_fresh_per_person_and_round_and_never_depends_on_grouping():
    stage = skellam(noise=1.0, honest=5, clip=1.0)
    zeros = {"w": np.zeros((6, 20))}
    together = stage.noised(zeros, None, None, draws(6))["w"]
    alone = Draws(SeededKeys(1), np.array([4], dtype=np.int32), "noise", 2, 9)
    assert np.array_equal(stage.noised({"w": np.zeros((1, 20))}, None, None, alone)["w"][0], together[4])
    assert not np.array_equal(together[0], together[1])


def test_an_update_that_is_no_number_becomes_an_empty_one():
    stage = skellam(noise=1e-4, honest=1, clip=1.0)
    sent = stage.noised({"w": np.array([[np.nan, 1.0], [np.inf, 1.0]])}, None, None, draws(2))["w"]
    assert np.abs(sent).max() < 60  # a handful of steps of noise out of 32,768


def test_against_the_sum_it_is_worth_the_gaussian_and_alone_one_share():
    """At 2^15 steps the discrete mechanisms cost almost what the Gaussian does."""
    for make in KINDS:
        guard = chain(make(noise=1.5, honest=30, clip=2.0))
        claim = guard.event(Claim.unbounded("raw"), guard.init(), FACTS)
        gaussian = epsilon([Gaussian(3.0, 2.0)], 1e-6, Adjacency.ADD_REMOVE).value
        released = epsilon([claim.event(Observer.RELEASE)], 1e-6, Adjacency.ADD_REMOVE).value
        assert gaussian < released < 1.1 * gaussian
        assert claim.summed.event == claim.event(Observer.RELEASE)
        alone = epsilon([claim.event(Observer.SERVER)], 1e-6, Adjacency.ADD_REMOVE).value
        assert alone > 4 * released


def test_fewer_answers_than_counted_on_are_less_noise_more_are_not_more():
    stage = skellam(noise=1.5, honest=30, clip=2.0)
    variances = [
        stage.event(Claim.unbounded("raw"), None, RoundFacts(0, "t", 50, 50, answered)).summed.event.variance
        for answered in (15, 30, 45)
    ]
    assert variances[0] == pytest.approx(variances[1] / 2)
    assert variances[1] == variances[2] == pytest.approx((1.5 * 2**15) ** 2)


def test_the_bound_is_the_smaller_of_two_and_there_must_be_one():
    rounded = Bound(2, 0.5 * LENGTHENING)
    assert chain(clip(size=0.5), skellam(clip=2.0)).bounds()[-1] == rounded
    assert chain(clip(size=0.5), skellam()).bounds()[-1] == rounded
    with pytest.raises(TacitError, match="without a bound"):
        chain(skellam())
    with pytest.raises(TacitError, match="grid out"):
        chain(clip(), grid(), skellam()).steps()


@pytest.mark.parametrize(
    "change", [{"noise": 2.0}, {"honest": 8}, {"clip": 0.5}, {"steps": 1 << 14}, {"weight": 0.5}]
)
def test_every_setting_matters(change):
    base = {"noise": 1.0, "honest": 5, "clip": 1.0}
    found = []
    for settings in (base, base | change):
        stage = skellam(**settings)
        sent = stage.noised({"items": some_rows(3)}, None, None, draws(3))
        total = {name: array.sum(axis=0) for name, array in sent.items()}
        found.append(stage.on_server(total, None, None, FACTS, SeededKeys(1))[0]["items"])
    assert not np.array_equal(*found)
