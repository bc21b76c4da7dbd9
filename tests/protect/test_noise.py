"""What noise that devices add is worth against a sum, and what is left when uploads change one by one."""

import numpy as np
import pytest

from tacit.account.claim import Adjacency, Claim, Observer
from tacit.account.events import Gaussian
from tacit.protect.clip import Clip
from tacit.protect.distributed import skellam
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.protect.shared_mask import SharedMask
from tacit.protect.sparsify import TopK
from tacit.rng import SeededKeys
from tacit.schedule import Warming
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts

PEOPLE = 25
FACTS = RoundFacts(0, "train", 100, PEOPLE, PEOPLE)
NOISY = (Clip(0.5), GaussianNoise(3.0, "device"))
ONE, ALL = Gaussian(1.5, 0.5), Gaussian(7.5, 0.5)  # the square root of 25 people's variances


def claimed(*stages):
    guard = chain(*stages)
    return guard.event(Claim.unbounded("raw"), guard.init(), FACTS)


def test_the_model_shows_a_sum_with_everybodys_noise_the_server_sees_one():
    claim = claimed(*NOISY)
    assert claim.event(Observer.SERVER) == ONE
    assert claim.event(Observer.RELEASE) == ALL
    assert claim.adjacency is Adjacency.REPLACE_ONE
    assert "everybody who answered added their own noise" in claim.assumes[Observer.RELEASE]


def test_the_sum_really_carries_that_noise():
    """25 empty updates of 4,000 numbers: the sum's variance is 7.5 squared; false alarms: 1 in 10,000."""
    cohort = tiny_federation(PEOPLE, 10).cohort(np.arange(PEOPLE, dtype=np.int32))
    sent = chain(*NOISY).on_client(
        {"w": np.zeros((PEOPLE, 4000))}, (None, None), cohort, SeededKeys(5), "train", 0
    )
    variance = float(np.square(sent["w"].sum(axis=0)).mean())
    assert abs(variance / ALL.noise_std**2 - 1) < 3.9 * np.sqrt(2 / 4000)


def test_a_mask_that_all_share_leaves_the_sum_a_sum():
    assert claimed(*NOISY, SharedMask(Warming(0.5), (("w", (4, 2)),))).event(Observer.RELEASE) == ALL


@pytest.mark.parametrize("after", [TopK(0.5), Clip(0.1)])
def test_what_changes_uploads_one_by_one_leaves_each_its_own_noise(after):
    """The sum of truncated uploads is no function of their sum: nobody else's noise covers them."""
    claim = claimed(*NOISY, after)
    assert claim.event(Observer.RELEASE) == claim.event(Observer.SERVER) == ONE


def test_shares_of_noise_do_not_add_up_behind_such_a_stage_either():
    whole = claimed(skellam(noise=4.0, honest=25, clip=1.0))
    cut = claimed(skellam(noise=4.0, honest=25, clip=1.0), TopK(0.5))
    assert whole.event(Observer.RELEASE).variance == pytest.approx(25 * cut.event(Observer.RELEASE).variance)
    assert cut.event(Observer.RELEASE) == cut.event(Observer.SERVER)
