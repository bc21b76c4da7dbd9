"""The published noises do what is printed and claim what is true; a shared mask tells and loses nothing."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.account.claim import Claim, Observer
from tacit.account.events import Gaussian, Laplace, NonPrivate
from tacit.errors import TacitError
from tacit.kernels.laplace import add_laplace
from tacit.protect.protection import Draws, chain
from tacit.protect.published_noise import PublishedNoise
from tacit.protect.row_laplace import RowLaplace
from tacit.protect.shared_mask import MASKED, SharedMask, kept
from tacit.rng import SeededKeys, stream
from tacit.schedule import Warming
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts, Rows

USERS = np.arange(3, dtype=np.int32)
CLAIM = Claim.unbounded("raw")


def facts(**received):
    return RoundFacts(0, "train", 10, 3, 3, received)


def guarded(stage, update, round=0, keys=None) -> Any:
    guard = chain(stage)
    return guard.on_client(
        update, guard.init(), tiny_federation().cohort(USERS), keys or SeededKeys(1), "train", round
    )


def test_laplace_numbers_have_the_laplace_distribution():
    """Kolmogorov and Smirnov on 200,000 numbers; fails a right generator with probability 1e-6."""
    numbers = np.zeros(200_000)
    add_laplace(numbers, stream(np.array([5], dtype=np.uint64), 200_000), 2.5)
    assert stats.kstest(numbers, "laplace", args=(0, 2.5)).pvalue > 1e-6


def test_rows_are_clipped_one_by_one_before_the_noise():
    update = {"items": np.array([[[3.0, 4.0], [0.3, 0.4]]] * 3)}
    clipped: Any = RowLaplace(1.0, clip=1.0).on_client(update, None, None, np.zeros(3, "u8"))["items"]
    np.testing.assert_allclose(clipped[0], [[0.6, 0.8], [0.3, 0.4]])
    free: Any = RowLaplace(1.0, clip=0.0).on_client(update, None, None, np.zeros(3, "u8"))["items"]
    assert np.array_equal(free, update["items"])


def test_the_noise_is_each_clients_own_and_another_in_each_round():
    update = {"items": np.zeros((3, 40, 8), np.float32)}
    first, again, later = (guarded(RowLaplace(2.0), update, round)["items"] for round in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)
    assert not np.array_equal(first[0], first[1])
    assert np.abs(first).mean() == pytest.approx(2.0, rel=5 / math.sqrt(first.size))


def test_the_claim_of_row_noise_is_rows_times_root_of_length():
    event = (
        RowLaplace(2.5, 1.0)
        .event(CLAIM, None, facts(items=(545, 32), selected=(211,)))
        .event(Observer.SERVER)
    )
    assert event == Laplace(2.5, 545 * math.sqrt(32), 545 * 32)
    free = RowLaplace(2.5, 0.0).event(CLAIM, None, facts(items=(545, 32)))
    assert isinstance(free.event(Observer.SERVER), NonPrivate)


def test_row_noise_bounds_the_largest_change_of_a_person():
    """Two uploads of clipped rows differ in the first norm by at most twice the claim's clip."""
    generator = np.random.default_rng(1)
    one, other = (generator.normal(size=(1, 9, 5)) * 100 for _ in range(2))
    stage = RowLaplace(1.0, 1.0)
    sent: list[Any] = [
        stage.on_client({"items": update}, None, None, np.zeros(1, "u8"))["items"] for update in (one, other)
    ]
    apart = sum(np.abs(table).sum() for table in sent)
    assert apart <= 2 * 9 * math.sqrt(5)


@pytest.mark.parametrize("stage", [RowLaplace(1.0), PublishedNoise(1.0, 1.0)])
def test_rows_with_ids_are_refused(stage):
    rows = Rows(np.zeros(3, "i8"), np.array([1, 0, 0]), np.zeros(1, "i4"), np.ones((1, 4), "f4"))
    with pytest.raises(TacitError, match="ids"):
        guarded(stage, {"items": rows})


def test_published_noise_clips_its_two_parts_and_keeps_the_largest_deep_entries():
    quiet = PublishedNoise(1.0, 1e-12, deep=("deep",), share=0.25)
    update = {"items": np.full((3, 2, 2), 4.0), "deep": np.tile([[1.0, -9.0, 3.0, 2.0]], (3, 1))}
    sent = guarded(quiet, update)
    np.testing.assert_allclose(np.sqrt((sent["items"][0] ** 2).sum()), 1.0, rtol=1e-5)
    assert sent["deep"].ids.tolist() == [1, 1, 1]
    np.testing.assert_allclose(sent["deep"].values, -1.0, rtol=1e-5)


def test_published_noise_has_the_deviation_that_is_printed():
    """Eq. 14 on 3 x 60,000 entries: the deviation within five of its own deviations."""
    sent = guarded(PublishedNoise(0.5, 3.0), {"items": np.zeros((3, 300, 200))})["items"]
    assert sent.std() == pytest.approx(1.5, rel=5 / math.sqrt(2 * sent.size))


def test_published_noise_claims_nothing_where_places_are_told():
    whole = PublishedNoise(1.0, 2.0, deep=("deep",)).event(CLAIM, None, facts())
    assert whole.event(Observer.SERVER) == Gaussian(2.0, math.sqrt(2))
    assert PublishedNoise(1.0, 2.0).event(CLAIM, None, facts()).event(Observer.SERVER) == Gaussian(2.0, 1.0)
    sparse = PublishedNoise(1.0, 2.0, deep=("deep",), share=0.1).event(CLAIM, None, facts())
    assert isinstance(sparse.event(Observer.SERVER), NonPrivate)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.05, 1.0), round=st.integers(0, 30), shape=st.sampled_from([(7,), (4, 5), (1,)]))
def test_a_shared_mask_comes_back_to_the_same_places(share, round, shape):
    stage = SharedMask(Warming(share), (("w", shape),))
    update = np.random.default_rng(round).normal(size=(3, *shape))
    draws = Draws(SeededKeys(1), USERS, "train/0", round)
    sent: Any = stage.noised({"w": update}, None, None, draws)["w" + MASKED]
    size = math.prod(shape)
    assert sent.shape == (3, math.ceil(share * size))
    total: Any
    total, _ = stage.on_server(
        {"w" + MASKED: sent.sum(axis=0)}, None, None, RoundFacts(round, "train", 3, 3, 3), SeededKeys(9)
    )
    places = kept("w", round, size, share)
    expected = np.zeros(size)
    expected[places] = update.sum(axis=0).reshape(-1)[places]
    np.testing.assert_allclose(total["w"].reshape(-1), expected)


def test_the_draw_of_a_mask_is_public_and_changes_with_the_round():
    assert np.array_equal(kept("w", 3, 100, 0.2), kept("w", 3, 100, 0.2))
    assert not np.array_equal(kept("w", 3, 100, 0.2), kept("w", 4, 100, 0.2))
    assert not np.array_equal(kept("w", 3, 100, 0.2), kept("v", 3, 100, 0.2))


def test_refusals():
    for make in (
        lambda: RowLaplace(0.0),
        lambda: PublishedNoise(0.0, 1.0),
        lambda: PublishedNoise(1.0, 1.0, (), 0.0),
    ):
        with pytest.raises(TacitError):
            make()
