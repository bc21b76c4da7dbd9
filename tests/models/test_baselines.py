"""Baselines against their normal equations and closed forms, on small made-up data."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.interactions import Interactions
from tacit.errors import TacitError
from tacit.models.baselines import BASELINES, Known, fit_baseline
from tacit.rng import SeededKeys

KEYS = SeededKeys(9)
NEED_IMPLICIT = ("itemknn", "ials")
SETTINGS = {"ials": {"dim": 2}, "itemknn": {"neighbours": 10}, "ease": {"reg": 5.0}}


def log_of(users, items, values=None):
    ratings = np.ones(len(users)) if values is None else values
    return Interactions(np.asarray(users, "i4"), np.asarray(items, "i4"), np.asarray(ratings, "f4"))


def random_known(seed, users=20, items=12, share=0.4):
    generator = np.random.default_rng(seed)
    met = np.argwhere(generator.random((users, items)) < share)
    train = log_of(met[:, 0], met[:, 1], generator.integers(1, 6, len(met)))
    return Known(train, users=users, items=items, keys=KEYS)


def two_tastes(users=40, items=20, seed=0):
    """Even users like even items, odd users odd ones; each has met 7 of their 10."""
    generator = np.random.default_rng(seed)
    pairs = [
        (user, item)
        for user in range(users)
        for item in generator.choice(np.arange(user % 2, items, 2), 7, replace=False)
    ]
    return Known(log_of(*np.array(pairs).T), users=users, items=items, keys=KEYS)


def fitted(name, known, **settings):
    if name in NEED_IMPLICIT:
        pytest.importorskip("implicit", reason="the extra 'baselines' is not installed")
    return fit_baseline(name, known, **(SETTINGS.get(name, {}) | settings))


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_scores_the_catalogue_the_same_however_users_are_grouped(name):
    model = fitted(name, random_known(0))
    everybody = np.arange(20, dtype="i4")
    together = model.scores(everybody)
    assert together.shape == (20, 12)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    one_by_one = np.concatenate([model.scores(everybody[row : row + 1]) for row in range(20)])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_repeats_itself_at_equal_seeds(name):
    first, second = (fitted(name, random_known(1)).scores(np.arange(20, dtype="i4")) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", [name for name, one in BASELINES.items() if one.predicts_ratings])
def test_a_predicted_rating_is_the_score_of_the_pair(name):
    model = fitted(name, random_known(2))
    users, items = np.array([3, 7, 7], "i4"), np.array([0, 5, 11], "i4")
    assert np.array_equal(model.predict(users, items), model.scores(users)[np.arange(3), items])


@pytest.mark.parametrize("name", ["itemknn", "ials", "ease"])
def test_personal_baselines_find_the_rest_of_a_taste(name):
    """Every unmet item of a user's own kind comes before every item of the other kind."""
    known = two_tastes()
    scores = fitted(name, known).scores(np.arange(40, dtype="i4"))
    met = known.history().toarray() > 0
    for user in range(40):
        own = np.arange(20) % 2 == user % 2
        assert scores[user][own & ~met[user]].min() > scores[user][~own].max()


@pytest.mark.parametrize("name", ["itemknn", "ials", "ease"])
def test_support_says_who_a_newcomer_is_and_teaches_nothing_about_items(name):
    known = two_tastes()
    met = np.arange(1, 15, 2)
    newcomer = Known(known.train, 41, 20, KEYS, support=log_of(np.full(7, 40), met))
    scores = fitted(name, newcomer).scores(np.array([40], "i4"))[0]
    own = np.arange(20) % 2 == 1
    unmet = own & ~np.isin(np.arange(20), met)
    assert scores[unmet].min() > scores[~own].max()
    without = Known(known.train, 41, 20, KEYS)
    if (
        name != "ials"
    ):  # its starting vectors are drawn for 41 users in both cases, so the items agree as well
        np.testing.assert_array_equal(
            fitted(name, newcomer).scores(np.arange(40, dtype="i4")),
            fitted(name, without).scores(np.arange(40, dtype="i4")),
        )
    else:
        np.testing.assert_array_equal(fitted(name, newcomer).item, fitted(name, without).item)


def test_random_is_uniform_and_depends_on_the_seed():
    """10,000 scores: Kolmogorov's distance exceeds 0.027 with probability 1e-6."""
    known = Known(log_of([0], [0]), users=100, items=100, keys=KEYS)
    scores = np.sort(fit_baseline("random", known).scores(np.arange(100, dtype="i4")).ravel())
    assert np.abs(scores - np.linspace(0, 1, 10_000)).max() < 0.027
    other = Known(log_of([0], [0]), users=100, items=100, keys=SeededKeys(10))
    assert not np.array_equal(
        scores, np.sort(fit_baseline("random", other).scores(np.arange(100, dtype="i4")).ravel())
    )


def test_pop_counts_training_interactions_only():
    known = Known(log_of([0, 1, 2], [1, 1, 0]), 3, 4, KEYS, support=log_of([2, 2], [3, 2]))
    assert fit_baseline("pop", known).scores(np.array([0], "i4")).tolist() == [[1, 2, 0, 0]]


@given(seed=st.integers(0, 1000), reg=st.floats(0.1, 100))
@settings(max_examples=20, deadline=None)
def test_ease_columns_are_ridge_regressions_on_the_other_items(seed, reg):
    """With the diagonal held at zero, column j minimises ||X_j - X_others b||^2 + reg ||b||^2."""
    known = random_known(seed)
    met = known.learned().toarray().astype(np.float64)
    weights = fit_baseline("ease", known, reg=reg).weights
    for item in range(12):
        others = np.arange(12) != item
        design = met[:, others]
        expected = np.linalg.solve(design.T @ design + reg * np.eye(11), design.T @ met[:, item])
        np.testing.assert_allclose(weights[others, item], expected, rtol=1e-4, atol=1e-5)
        assert weights[item, item] == 0


def test_ease_refuses_what_does_not_fit_in_memory():
    with pytest.raises(TacitError, match=r"EASE on 12 items needs .* GB; filter the catalogue"):
        fit_baseline("ease", random_known(0), most_items=11)


def test_itemknn_equals_cosines_when_all_neighbours_are_kept():
    known = random_known(3)
    met = known.learned().toarray().astype(np.float64)
    lengths = np.linalg.norm(met, axis=0)
    cosine = met.T @ met / np.outer(lengths, lengths)
    np.testing.assert_allclose(fitted("itemknn", known, neighbours=12).similar.toarray(), cosine, atol=1e-6)


def test_itemknn_keeps_the_most_similar_items():
    known = random_known(4)
    every = fitted("itemknn", known, neighbours=12).similar.toarray()
    kept = fitted("itemknn", known, neighbours=3).similar.toarray()
    for item in range(12):
        assert np.count_nonzero(kept[item]) == 4  # itself and three others
        np.testing.assert_allclose(np.sort(kept[item])[-4:], np.sort(every[item])[-4:], rtol=1e-6)


def test_ials_user_vectors_solve_their_normal_equations():
    """(V'V + (weight - 1) V_met' V_met + reg I) u = weight * sum of met vectors (Hu et al., equation 4)."""
    known = random_known(5)
    model = fitted("ials", known, dim=4, reg=0.7, weight=6.0)
    vectors = model.item.astype(np.float64)
    for user in range(20):
        met = vectors[known.history().toarray()[user] > 0]
        left = vectors.T @ vectors + 5.0 * met.T @ met + 0.7 * np.eye(4)
        np.testing.assert_allclose(left @ model.user[user], 6.0 * met.sum(axis=0), rtol=1e-3, atol=1e-3)


def test_ials_lowers_the_loss_it_is_made_for():
    known = random_known(6)
    met = known.learned().toarray()

    def loss(model):
        error = (met - model.user @ model.item.T) ** 2 * np.where(met > 0, 10.0, 1.0)
        return error.sum() + (model.user**2).sum() + (model.item**2).sum()

    losses = [loss(fitted("ials", known, rounds=rounds)) for rounds in (1, 3, 30)]
    assert losses[0] > losses[1] > losses[2]


def test_threads_change_nothing_but_time():
    known = random_known(7, users=200, items=60)
    everybody = np.arange(200, dtype="i4")
    for name in NEED_IMPLICIT:
        one, two = (fitted(name, known, threads=threads).scores(everybody) for threads in (1, 2))
        assert np.array_equal(one, two)


def test_the_blas_of_the_caller_keeps_its_threads():
    pytest.importorskip("implicit", reason="the extra 'baselines' is not installed")
    threadpoolctl = importlib.import_module("threadpoolctl")
    before = threadpoolctl.threadpool_info()
    fitted("ials", random_known(8))
    after = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    assert all(after[pool["filepath"]] == pool["num_threads"] for pool in before)


def test_a_missing_library_is_one_clear_line(monkeypatch):
    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", gone)
    for name in NEED_IMPLICIT:
        with pytest.raises(TacitError, match=r"pip install 'tacit\[baselines\]'"):
            fit_baseline(name, random_known(0))


@given(seed=st.integers(0, 1000), item_damping=st.floats(0, 50), user_damping=st.floats(0, 50))
@settings(max_examples=30, deadline=None)
def test_bias_equals_its_equations(seed, item_damping, user_damping):
    known = random_known(seed)
    train, mean = known.train, known.train.values.mean()
    model = fit_baseline("bias", known, item_damping=item_damping, user_damping=user_damping)
    for item in range(12):
        residuals = train.values[train.items == item] - mean
        expected = residuals.sum() / (item_damping + len(residuals)) if len(residuals) else 0
        assert model.item[item] == pytest.approx(expected, abs=1e-4)
    for user in range(20):
        mine = train.users == user
        residuals = train.values[mine] - mean - model.item[train.items[mine]]
        expected = residuals.sum() / (user_damping + len(residuals)) if len(residuals) else 0
        assert model.user[user] == pytest.approx(expected, abs=1e-4)


def test_means_for_strangers_and_from_support():
    known = Known(log_of([0, 0], [0, 1], [2, 4]), 3, 2, KEYS, support=log_of([1], [0], [5]))
    everybody = np.arange(3, dtype="i4")
    assert fit_baseline("global-mean", known).scores(everybody)[:, 0].tolist() == [3, 3, 3]
    assert fit_baseline("user-mean", known).scores(everybody)[:, 1].tolist() == [3, 5, 3]


def test_strong_damping_leaves_the_global_mean():
    model = fit_baseline("bias", random_known(1), item_damping=1000, user_damping=1000)
    assert np.abs(model.item).max() < 0.05
    assert np.abs(model.user).max() < 0.05


@pytest.mark.parametrize(
    ("name", "settings_given", "problem"),
    [
        ("eas", {}, "did you mean 'ease'"),
        ("ease", {"regg": 1}, "did you mean 'reg'"),
        ("pop", {"reg": 1}, "it has no settings"),
        ("ease", {"reg": 0}, "reg = 0 is out of range"),
        ("bias", {"item_damping": -1}, "item_damping = -1 is out of range"),
        ("ials", {"dim": 0}, "dim = 0 is out of range"),
        ("ials", {"weight": float("nan")}, "weight = nan is out of range"),
        ("itemknn", {"neighbours": 0}, "neighbours = 0 is out of range"),
    ],
)
def test_what_makes_no_sense_is_refused(name, settings_given, problem):
    with pytest.raises(TacitError, match=problem):
        fit_baseline(name, random_known(0), **settings_given)


def test_interactions_outside_the_data_set_are_refused():
    with pytest.raises(TacitError, match="outside 2 users and 2 items"):
        Known(log_of([0, 2], [0, 1]), 2, 2, KEYS)
    with pytest.raises(TacitError, match="no training interactions"):
        Known(log_of([], []), 2, 2, KEYS)
