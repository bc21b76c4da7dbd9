"""A budget where devices add normal noise: what the model shows keeps it, and hardly less noise would."""

import pytest

from tacit.account.claim import Observer
from tacit.config.experiment import with_protection
from tacit.errors import TacitError
from tacit.ledger.privacy import PrivacyLedger
from tacit.methods.dp_sub import dp_fedmf, priv_fedmf_sub
from tacit.methods.fedncf import dp_fedncf, dp_fedncf_dgc
from tacit.rng import SeededKeys
from tacit.round import claim_of, first_state
from tacit.runtime.simulate import surroundings
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts


@pytest.mark.parametrize("method", [dp_fedmf, dp_fedncf, dp_fedncf_dgc])
def test_a_budget_without_noise_or_beside_its_noise_is_refused(method):
    with pytest.raises(TacitError, match="without noise; leave it out"):
        method(noise="none", epsilon=4.0)
    with pytest.raises(TacitError, match="both say how much noise there is; give one"):
        method(epsilon=4.0, sigma=2.0)


def test_a_budget_that_the_bits_about_items_exceed_is_refused():
    with pytest.raises(TacitError, match="bits about items cost a person more; give sigma"):
        priv_fedmf_sub(epsilon=4.0)


@pytest.mark.parametrize("method", [dp_fedncf, dp_fedncf_dgc])
def test_a_budget_for_published_noise_that_reads_none_is_refused(method):
    with pytest.raises(TacitError, match="give sigma, or noise=gaussian"):
        method(noise="published", epsilon=4.0)


def epsilons(asked):
    settled = asked.settled(surroundings(tiny_federation(40, 15), 1e-6))
    ledger, state = PrivacyLedger(1e-6), first_state(settled, 15, SeededKeys(1))
    for round in range(settled.rounds):
        ledger.add(claim_of(settled.exchanges[0], state, RoundFacts(round, "train", 40, 10, 10)))
    return {line.observer: line.epsilon for line in ledger.guarantees()}


def test_a_budget_is_kept_behind_a_compressor_too():
    told = epsilons(with_protection(dp_fedmf(dim=4, rounds=30, clients=10, epsilon=4.0), "topk:0.5"))
    assert 3.96 < told[Observer.RELEASE] <= 4


@pytest.mark.parametrize("budget", [1.0, 8.0])
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (dp_fedmf, {"dim": 4}),
        (dp_fedmf, {"dim": 4, "share": 0.5, "warm_up": 1}),
        (dp_fedncf, {"factors": 2, "tower": "8-4"}),
        (dp_fedncf_dgc, {"factors": 2, "tower": "8-4"}),
    ],
)
def test_devices_add_as_much_noise_as_a_budget_against_the_model_needs(method, settings, budget):
    told = epsilons(method(**settings, rounds=30, clients=10, epsilon=budget))
    assert 0.99 * budget < told[Observer.RELEASE] <= budget
    # the server sees one upload's noise, and knows whom it asked
    assert told[Observer.SERVER] > 3 * told[Observer.RELEASE]
