"""Surveys that ask once: unbiased, worth what they cost, and never worse than their own popularity."""

import numpy as np
import pytest

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency, Observer
from tacit.account.events import NonPrivate, PureLocal, RandomisedResponse, Repeated, Shuffled
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.methods.ldp_counts import ldp_popularity, ldp_spectral
from tacit.rng import SeededKeys
from tacit.runtime.simulate import Execution, new_world, one_round, set_up
from tacit.settings import settings_of
from tacit.testing.tiny import tiny_federation


def asked(method, federation, seed=1, execution=None):
    world = new_world(method, federation, SeededKeys(seed), execution)
    return world, [*set_up(world), *one_round(world)]


def lists(people, items, halves, seed=0, share=0.35):
    """Two halves of the catalogue, two kinds of people: one direction of taste beside popularity."""
    generator = np.random.default_rng(seed)
    popularity = np.linspace(0.6, 0.05, items)
    kinds = generator.integers(0, 2, people)
    liked = np.where(np.arange(items) % 2 == kinds[:, np.newaxis], 1 + share, 1 - share)
    met = generator.random((people, items)) < np.clip(popularity * (liked if halves else 1.0), 0, 1)
    met[:, 0] = True  # nobody is silent
    offsets = np.concatenate([[0], np.cumsum(met.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(met)[1].astype(np.int32)
    return Federation(offsets, columns, np.ones(len(columns), dtype=np.float32), items), met, kinds


def test_popularity_is_unbiased():
    """Over 300 fresh surveys, every item within 4.5 standard errors: a false alarm in 1 of 10,000 runs."""
    federation = tiny_federation(30, 12, seed=2)
    truth = np.bincount(federation.items, minlength=12) / 30
    found = [
        asked(ldp_popularity(epsilon=1.0, k=20, n_min=2), federation, seed)[0].server.shared["popularity"]
        for seed in range(300)
    ]
    scores = (np.mean(found, axis=0) - truth) / (np.std(found, axis=0, ddof=1) / np.sqrt(300))
    assert np.abs(scores).max() < 4.5
    assert (scores**2).mean() == pytest.approx(1.0, abs=1.0)


def test_popularity_has_the_variance_of_its_bits():
    """``(M B / (2 N k))^2`` times the reports about an item, about ``N k / M`` of them."""
    people, items, k, eps = 2000, 8, 40, 1.5
    federation, met, _ = lists(people, items, halves=False)
    found = np.array(
        [
            asked(ldp_popularity(epsilon=eps, k=k, n_min=2), federation, seed)[0].server.shared["popularity"]
            for seed in range(40)
        ]
    )
    slope = np.tanh(eps / 2)
    # One report: an item in M, then plus or minus one with mean slope * (2 p - 1); the estimate is of p.
    signs = 2 * met.mean(axis=0) - 1
    expected = (items / slope**2 - signs**2) / (4 * people * k)
    assert found.var(axis=0, ddof=1).mean() == pytest.approx(expected.mean(), rel=0.25)
    assert np.abs(found.mean(axis=0) - met.mean(axis=0)).max() < 4.5 * np.sqrt(expected.max() / 40)


@pytest.mark.parametrize("mechanism", ["vector", "bits"])
def test_directions_are_those_of_taste(mechanism):
    """With a budget that drowns nothing, the direction found separates the two kinds of people."""
    federation, met, kinds = lists(3000, 30, halves=True)
    settings_ = {"epsilon": 3000.0, "items": 30, "mechanism": mechanism, "n_min": 2, "history": 30}
    world, _ = asked(ldp_spectral(**settings_, report=50.0, dim=4), federation)
    shared = world.server.shared
    np.testing.assert_allclose(shared["popularity"], met.mean(axis=0), atol=0.06)
    strengths = (shared["directions"] ** 2).sum(axis=0)
    assert strengths[0] > 5 * strengths[1:].max()
    assert (strengths[1:] > 0).sum() <= 1
    taste = world.method.model.folded_in(shared, federation.cohort(federation.people))["taste"][:, 0]
    assert abs(np.corrcoef(taste, kinds)[0, 1]) > 0.55
    truth = np.cov(met.astype(np.float64), rowvar=False)
    lead = np.linalg.eigh(truth - np.diag(np.diag(truth)))[1][:, -1]
    found = shared["directions"][:, 0]
    assert abs(found @ lead) / np.linalg.norm(found) > 0.93


@pytest.mark.parametrize("mechanism", ["vector", "bits"])
def test_without_a_signal_scores_are_the_noisy_popularity(mechanism):
    """Where everybody is alike nothing stands out of the noise, and every device ranks by popularity."""
    federation, _, _ = lists(400, 60, halves=False)
    world, _ = asked(ldp_spectral(epsilon=40.0, items=60, mechanism=mechanism, n_min=2), federation)
    shared = world.server.shared
    assert not shared["directions"].any()
    folded = world.method.model.folded_in(shared, federation.cohort(federation.people))
    scores = world.method.model.scorer(shared, folded).scores(federation.people[:3])
    assert np.array_equal(scores, np.tile(shared["popularity"], (3, 1)))


def test_a_device_finds_its_owners_place_by_the_conditional_mean():
    """``E[z | x] = L^T (L L^T + Psi)^-1 (x - m)``, from the joint normal law."""
    federation, met, _ = lists(300, 20, halves=True)
    world, _ = asked(ldp_spectral(epsilon=2000.0, items=20, history=20), federation)
    shared = {name: np.asarray(array, dtype=np.float64) for name, array in world.server.shared.items()}
    doubt = shared["doubt"][0]
    assert 0 < doubt < 0.05
    mean, directions = shared["popularity"], shared["directions"]
    likely = np.clip(mean, 2 * doubt, 0.99)
    variance = likely * (1 - likely)
    rest = np.maximum(variance - (directions**2).sum(axis=1), 0.1 * variance)
    joint = np.linalg.inv(directions @ directions.T + np.diag(rest))
    expected = (met - mean) @ joint @ directions
    cohort = federation.cohort(federation.people)
    found = world.method.model.folded_in(world.server.shared, cohort)["taste"]
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize(
    "method",
    [
        ldp_popularity(k=7, n_min=2),
        ldp_spectral(epsilon=300.0, items=15),
        ldp_spectral(epsilon=300.0, items=15, mechanism="bits", n_min=2),
    ],
    ids=["popularity", "vector", "bits"],
)
def test_grouping_and_threads_change_nothing_at_all(method):
    federation = tiny_federation(23, 20, seed=3)
    whole, told = asked(method, federation)
    for execution in (Execution(1, pairs_per_chunk=1), Execution(3, pairs_per_chunk=30)):
        parts, same = asked(method, federation, execution=execution)
        for name, array in whole.server.shared.items():
            assert np.array_equal(array, parts.server.shared[name]), name
        assert [record.traffic for record in told] == [record.traffic for record in same]


def test_a_person_spends_what_was_asked_for():
    federation = tiny_federation(23, 20, seed=3)
    _, (counts,) = asked(ldp_popularity(epsilon=2.0, k=5, n_min=2), federation)
    assert counts.claim.event(Observer.SERVER) == Repeated(Shuffled(2.0, 23, one_bit=True), 5)
    assert "2 per report, 10 per round, the only one" in " ".join(ldp_popularity(epsilon=2.0, k=5).notes)
    _, vectors = asked(ldp_spectral(epsilon=50.0, share=0.3), federation)
    assert [r.claim.event(Observer.SERVER) for r in vectors] == [PureLocal(15.0), PureLocal(35.0)]
    _, bits = asked(
        ldp_spectral(epsilon=50.0, share=0.3, items=10, mechanism="bits", n_min=2, report=2.5), federation
    )
    assert bits[0].claim.event(Observer.SERVER) == Repeated(Shuffled(2.5, 23, one_bit=True), 6)
    assert bits[1].claim.event(Observer.SERVER) == RandomisedResponse(3.5, 10, by_item=True)
    for records in (vectors, bits):
        assert all(record.claim.adjacency is Adjacency.REPLACE_ONE for record in records)
        # Whoever colludes with the proxy: the reports' own epsilons, added up.
        events = [record.claim.event(Observer.SERVER) for record in records]
        if records is bits:
            events[0] = Repeated(PureLocal(2.5), 6)
        assert epsilon(events, 0.0, Adjacency.REPLACE_ONE).value == pytest.approx(50.0)


def test_the_central_twin_counts_the_true_histories():
    federation, met, _ = lists(60, 20, halves=True)
    world, records = asked(ldp_popularity(twin="central"), federation)
    np.testing.assert_allclose(world.server.shared["popularity"], met.mean(axis=0), rtol=1e-6)
    assert all(isinstance(record.claim.event(Observer.SERVER), NonPrivate) for record in records)


def test_the_central_twin_finds_the_directions_of_the_true_covariance():
    """The spiked part of the exact correlation, by its own eigenvectors: no randomiser, no noise to undo."""
    federation, met, _ = lists(3000, 30, halves=True)
    world, records = asked(ldp_spectral(twin="central", items=30, dim=4), federation)
    shared = world.server.shared
    np.testing.assert_allclose(shared["popularity"], met.mean(axis=0), atol=1e-6)
    spread = np.sqrt((met.sum(axis=0) + 1) / 3002 * (1 - (met.sum(axis=0) + 1) / 3002))
    whitened = np.cov(met.astype(np.float64), rowvar=False, bias=True) / np.outer(spread, spread)
    lead = np.linalg.eigh(whitened)[1][:, -1] * spread
    found = shared["directions"][:, 0]
    assert abs(found @ lead) == pytest.approx(np.linalg.norm(found) * np.linalg.norm(lead), rel=1e-5)
    assert all(isinstance(record.claim.event(Observer.SERVER), NonPrivate) for record in records)


@pytest.mark.parametrize("maker", [ldp_popularity, ldp_spectral])
def test_a_device_alone_sends_nothing_and_orders_nothing(maker):
    federation, _, _ = lists(23, 20, halves=True)
    world, records = asked(maker(twin="local"), federation)
    assert sum(record.traffic.total for record in records) == 0
    scores = world.method.model.scorer(world.server.shared, world.private).scores(federation.people)
    assert (scores == scores[:, :1]).all()


POPULARITY = {"epsilon": 1.0, "k": 3, "n_min": 24, "twin": "central"}
SPECTRAL = {
    "epsilon": 200.0, "share": 0.6, "items": 10, "dim": 1, "history": 100, "mechanism": "bits",
    "report": 4.0, "n_min": 24, "twin": "central",
}  # fmt: skip


@pytest.mark.parametrize(
    ("maker", "setting", "value"),
    [(ldp_popularity, *pair) for pair in POPULARITY.items()]
    + [(ldp_spectral, *pair) for pair in SPECTRAL.items()],
)
def test_every_setting_matters(maker, setting, value):
    assert set(settings_of(maker)) == set(POPULARITY if maker is ldp_popularity else SPECTRAL)
    federation, _, _ = lists(23, 20, halves=True)
    base = {"n_min": 2}
    if maker is ldp_spectral:
        base |= {"epsilon": 2000.0, "items": 20, "dim": 3, "history": 20}
        base |= {"mechanism": "bits", "items": 8} if setting in {"report", "n_min"} else {}
    if setting == "n_min":
        with pytest.raises(TacitError, match="below 24 people"):
            asked(maker(**{**base, setting: value}), federation)
        return
    before, after = (
        asked(maker(**settings_), federation)[0].server.shared
        for settings_ in (base, {**base, setting: value})
    )
    assert any(
        array.shape != after[name].shape or (array != after[name]).any() for name, array in before.items()
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [({"share": 1.0}, "leaves nothing"), ({"mechanism": "bits", "epsilon": 2.0}, "pays for 0 reports")],
)
def test_budgets_that_cannot_be_split_are_refused(more, message):
    with pytest.raises(TacitError, match=message):
        ldp_spectral(**more)
