import numpy as np
import pytest

from tacit.data.describe import describe
from tacit.data.load import load
from tacit.data.sources import demo
from tacit.errors import TacitError
from tacit.split import split


@pytest.fixture(scope="module")
def data():
    return load("demo")


def same(one, other):
    return all(
        np.array_equal(getattr(one, column), getattr(other, column))
        for column in ("users", "items", "values", "times")
    )


def test_the_default_looks_like_a_log_of_ratings(data):
    told = describe(data)
    assert (told["users"], told["items"]) == (1000, 600)
    assert told["interactions"] == pytest.approx(61_000, rel=0.05)
    assert told["per_user"]["0%"] >= 10
    assert 3.4 < told["mean_value"] < 3.7
    assert max(told["ratings"], key=told["ratings"].get) in {"3", "4"}
    assert all(count > 0.02 * told["interactions"] for count in told["ratings"].values())
    assert told["popularity_gini"] > 0.45
    assert 0.4 < told["most_popular_share"] < 0.75
    activity = np.log(np.bincount(data.interactions.users) - 9)
    assert activity.std() == pytest.approx(0.9, abs=0.1)


def test_rows_are_in_order_without_repeats_and_in_range(data):
    log = data.interactions
    assert (np.diff(log.users.astype(np.int64) * data.items + log.items) > 0).all()
    assert set(np.unique(log.values)) == {1, 2, 3, 4, 5}
    assert (log.users.dtype, log.items.dtype, log.values.dtype) == (np.int32, np.int32, np.float32)
    assert log.items.min() >= 0
    assert log.items.max() < data.items


def test_equal_seeds_give_equal_worlds_and_others_do_not(data):
    assert same(load("demo:seed=1").interactions, data.interactions)
    other = load("demo:seed=2")
    assert not np.array_equal(other.interactions.items, data.interactions.items)
    assert not np.array_equal(other.item_features.flags["genres"], data.item_features.flags["genres"])


def test_a_person_is_the_same_however_many_there_are_and_however_grouped(data, monkeypatch):
    few = load("demo:users=150")
    rows = data.interactions.users < 150
    assert same(few.interactions, data.interactions.take(rows))
    for name, column in few.user_features.categories.items():
        np.testing.assert_array_equal(column, data.user_features.categories[name][:150])
    monkeypatch.setattr(demo, "_CROWD", 7)
    assert same(load("demo:users=150").interactions, few.interactions)


def test_people_rate_in_sessions(data):
    log = data.interactions
    order = np.lexsort((log.times, log.users))
    within = np.diff(log.users[order]) == 0
    gaps = np.diff(log.times[order])[within]
    assert (gaps >= 15).all()
    assert 0.85 < np.mean(gaps <= 136) < 0.97
    years = data.item_features.numbers["year"]
    assert years.max() < 2004
    assert log.times.min() >= 1_072_915_200


@pytest.mark.parametrize(("choice", "there"), [("auto", True), ("yes", True), ("no", False)])
def test_times_on_request(data, choice, there):
    log = load(f"demo:users=90,times={choice}").interactions
    assert (log.times is not None) == there
    mine = data.interactions.take(data.interactions.users < 90)
    assert np.bincount(log.users).tolist() == np.bincount(mine.users).tolist()
    if there:
        assert same(log, mine)


def test_genres_tell_something_about_taste(data):
    """A person's mean residual on one genre's odd films predicts the one on its even films."""
    log = data.interactions
    residual = log.values - np.bincount(log.items, log.values)[log.items] / np.bincount(log.items)[log.items]
    genre = int(data.item_features.flags["genres"].sum(axis=0).argmax())
    member = data.item_features.flags["genres"][log.items, genre] == 1
    means = []
    for parity in (0, 1):
        rows = member & (log.items % 2 == parity)
        other = ~member & (log.items % 2 == parity)
        inside = np.bincount(log.users[rows], residual[rows], data.users) / np.maximum(
            np.bincount(log.users[rows], minlength=data.users), 1
        )
        outside = np.bincount(log.users[other], residual[other], data.users) / np.maximum(
            np.bincount(log.users[other], minlength=data.users), 1
        )
        means.append(inside - outside)
    assert np.corrcoef(*means)[0, 1] > 0.15


def test_groups_of_people_differ_in_taste_but_only_weakly():
    """Between-group variance of genre preference exceeds what a random grouping gives, but stays small."""
    data = load("demo:users=4000,mean=40")
    log = data.interactions
    flags = data.item_features.flags["genres"][log.items].astype(float)
    share = np.stack([np.bincount(log.users, flags[:, g], data.users) for g in range(flags.shape[1])], axis=1)
    share /= np.bincount(log.users, minlength=data.users)[:, None]
    explained = []
    ages = data.user_features.categories["age"]
    for groups in (ages, np.random.default_rng(1).permutation(ages)):
        means = np.stack([share[groups == age].mean(axis=0) for age in range(7)])
        explained.append((means[groups].var(axis=0) / share.var(axis=0)).mean())
    assert explained[0] > 5 * explained[1]
    assert explained[0] < 0.3


def rmse(error):
    return float(np.sqrt(np.mean(np.square(error))))


def biases(train, users, items):
    mean, of_user, of_item = train.values.mean(), np.zeros(users), np.zeros(items)
    for _ in range(6):
        left = train.values - mean - of_user[train.users]
        of_item = np.bincount(train.items, left, items) / (np.bincount(train.items, minlength=items) + 5)
        left = train.values - mean - of_item[train.items]
        of_user = np.bincount(train.users, left, users) / (np.bincount(train.users, minlength=users) + 5)
    return mean, of_user, of_item


def ridge(rows, columns, target, factors, count):
    solved = np.zeros((count, factors.shape[1]))
    order = np.argsort(rows, kind="stable")
    edges = np.searchsorted(rows[order], np.arange(count + 1))
    for row in range(count):
        mine = order[edges[row] : edges[row + 1]]
        seen = factors[columns[mine]]
        solved[row] = np.linalg.solve(seen.T @ seen + 8 * np.eye(seen.shape[1]), seen.T @ target[mine])
    return solved


def test_biases_beat_the_mean_and_low_rank_beats_biases(data):
    parts = split(data, "ratings-5fold", seed=1)
    train, test = parts.train, parts.test
    mean, of_user, of_item = biases(train, data.users, data.items)
    guess = mean + of_user[test.users] + of_item[test.items]
    left = train.values - mean - of_user[train.users] - of_item[train.items]
    films = np.random.default_rng(0).normal(0, 0.1, (data.items, 5))
    for _ in range(8):
        people = ridge(train.users, train.items, left, films, data.users)
        films = ridge(train.items, train.users, left, people, data.items)
    low_rank = guess + (people[test.users] * films[test.items]).sum(axis=1)
    errors = [rmse(test.values - answer) for answer in (mean, guess, low_rank)]
    assert errors[1] < 0.9 * errors[0]
    assert errors[2] < 0.98 * errors[1]


def test_item_to_item_beats_popularity_beats_chance(data):
    parts = split(data, "leave-one-out", seed=1)
    seen = np.zeros((data.users, data.items))
    seen[parts.train.users, parts.train.items] = 1

    def hits(scores):
        scores = np.where(seen > 0, -np.inf, scores)
        target = scores[parts.test.users, parts.test.items]
        return np.mean((scores[parts.test.users] > target[:, None]).sum(axis=1) < 10)

    inverse = np.linalg.inv(seen.T @ seen + 300 * np.eye(data.items))  # EASE, Steck 2019, eq. 8
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    popular, ease = hits(np.broadcast_to(seen.sum(axis=0), seen.shape)), hits(seen @ weights)
    assert popular > 5 * 10 / data.items
    assert ease > 1.2 * popular


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("demo:items=40", "61 ratings per person are too many for 40 items; ask for at most mean=20"),
        ("demo:users=0", "not a whole number of at least 1"),
        ("demo:shape=ml-2m", "did you mean 'ml-20m'"),
        ("demo:user=4", "did you mean 'users'"),
    ],
)
def test_impossible_wishes_are_refused(spec, message):
    with pytest.raises(TacitError, match=message):
        load(spec)


def test_a_person_who_wants_half_of_a_steep_catalogue_gets_it():
    log = load("demo:users=30,items=60,mean=30").interactions
    counts = np.bincount(log.users)
    assert counts.max() == 30
    assert len(np.unique(log.users.astype(np.int64) * 60 + log.items)) == len(log)


def test_the_shape_of_ml_1m():
    told = describe(load("demo:shape=ml-1m"))
    assert (told["users"], told["items_touched"]) == (6040, 3706)
    assert told["interactions"] == pytest.approx(1_000_209, rel=0.03)
    assert told["per_user"]["0%"] >= 20
    assert told["popularity_gini"] == pytest.approx(0.634, abs=0.04)
    assert told["most_popular_share"] == pytest.approx(3428 / 6040, abs=0.05)


def test_the_tails_of_ml_20m():
    told = describe(load("demo:shape=ml-20m,users=8000"))
    assert told["items"] == 9781
    assert told["interactions"] / 8000 == pytest.approx(231.7, rel=0.03)
    assert told["per_user"]["0%"] >= 60
    # the published 0.90 is that of all 26,744 films; most of them are not in this part of 9,781
    assert told["popularity_gini"] == pytest.approx(0.81, abs=0.03)
    assert told["most_popular_share"] == pytest.approx(67_310 / 138_493, abs=0.04)


@pytest.mark.slow
def test_a_hundred_million_ratings():
    done = []
    data = load("demo:users=1000000,items=100000,mean=100", progress=lambda so_far, _: done.append(so_far))
    assert len(data.interactions) == pytest.approx(1e8, rel=0.01)
    assert data.interactions.times is None
    assert len(done) > 20
    assert done[-1] == len(data.interactions)
