import numpy as np
import pytest

from tacit.data.load import load
from tacit.split import split
from tacit.split.rating_folds import fold_of_each, random_share


@pytest.fixture(scope="module")
def data():
    return load("demo:users=200")


def test_the_five_folds_of_a_seed_partition_the_log(data, rows_in):
    tests = [rows_in(split(data, f"ratings-5fold:{k}", seed=4).test) for k in range(1, 6)]
    joined = sorted(row for rows in tests for row in rows)
    assert joined == sorted(rows_in(data.interactions))
    sizes = [len(rows) for rows in tests]
    assert max(sizes) - min(sizes) <= 1


def test_the_first_fold_is_the_default(data, rows_in):
    plain = split(data, "ratings-5fold", seed=4)
    assert plain.name == "ratings-5fold:1"
    assert plain.kind == "ratings"
    assert rows_in(plain.test) == rows_in(split(data, "ratings-5fold:1", seed=4).test)


def test_membership_is_even_over_rows(data):
    log = data.interactions
    taken = sum((fold_of_each(log, 5, np.random.default_rng(seed)) == 0).astype(int) for seed in range(200))
    # 200 draws at 1/5: mean 40, standard deviation 5.66; five of them bound 12,000 rows comfortably.
    assert np.abs(taken - 40).max() < 5 * 5.66
    assert taken.std() == pytest.approx(5.66, rel=0.05)
    halves = taken[: len(log) // 2].mean(), taken[len(log) // 2 :].mean()
    assert halves[0] == pytest.approx(halves[1], abs=0.5)


def test_a_share_of_rows_is_exact(data):
    assert random_share(data.interactions, 0.1, np.random.default_rng(1)).sum() == round(
        0.1 * len(data.interactions)
    )


@pytest.mark.slow
def test_a_hundred_million_rows_need_a_byte_each():
    import tracemalloc

    from tacit.data.interactions import Interactions

    rows = 100_000_000
    log = Interactions(np.zeros(rows, "i4"), np.zeros(rows, "i4"), np.zeros(rows, "f4"))
    tracemalloc.start()
    fold = fold_of_each(log, 5, np.random.default_rng(1))
    assert tracemalloc.get_traced_memory()[1] < 4 * rows
    tracemalloc.stop()
    assert np.bincount(fold).tolist() == [rows // 5] * 5
