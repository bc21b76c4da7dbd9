import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.interactions import Scale
from tacit.errors import TacitError
from tacit.evaluate.ratings import rating_errors

STARS = Scale(1, 5, 1)


@given(seed=st.integers(0, 10_000), count=st.integers(1, 60))
def test_equals_the_plain_formulas_after_clipping(log, table, seed, count):
    generator = np.random.default_rng(seed)
    users, items = generator.integers(0, 5, count), generator.integers(0, 7, count)
    test = log(zip(users, items, strict=True), generator.integers(1, 6, count))
    scores = generator.normal(3, 3, (5, 7)).astype("f4")
    found = rating_errors(table(scores), test, STARS)
    error = (
        np.array([min(5, max(1, float(scores[u, i]))) for u, i in zip(users, items, strict=True)])
        - test.values
    )
    assert found.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert found.mae == pytest.approx(np.mean(np.abs(error)))
    assert found.users.tolist() == sorted(set(users.tolist()))
    for row, user in enumerate(found.users):
        assert found.rmse_per_user[row] == pytest.approx(np.sqrt(np.mean(error[users == user] ** 2)))
        assert found.mae_per_user[row] == pytest.approx(np.mean(np.abs(error[users == user])))


def test_standard_errors_agree_with_resampling_of_users(log, table):
    """Users differ in size and difficulty; 2,000 resamples leave 1.6 % of noise."""
    generator = np.random.default_rng(0)
    people = 300
    users = np.repeat(np.arange(people), generator.integers(1, 40, people))
    noise = generator.normal(0, generator.gamma(2, 0.5, people)[users])
    scores = np.full((people, 1), 50, "f4")
    wide = Scale(0, 100, 1)
    test = log(np.stack([users, users * 0], 1), 50 + noise)
    found = rating_errors(table(scores), test, wide)
    weights = generator.multinomial(people, np.full(people, 1 / people), 2_000)
    rmse = np.sqrt((weights @ found.squared) / (weights @ found.counts))
    mae = (weights @ found.absolute) / (weights @ found.counts)
    assert found.rmse_error == pytest.approx(rmse.std(), rel=0.1)
    assert found.mae_error == pytest.approx(mae.std(), rel=0.1)


def test_a_prediction_that_is_no_number_is_an_error(log, table):
    with pytest.raises(TacitError, match="user 1 are not finite"):
        rating_errors(table(np.array([[3.0], [np.nan]], "f4")), log([(0, 0), (1, 0)]), STARS)


def test_perfect_predictions_and_a_single_user(log, table):
    found = rating_errors(table(np.full((1, 2), 4, "f4")), log([(0, 0), (0, 1)], [4, 4]), STARS)
    assert (found.rmse, found.mae, found.rmse_error) == (0, 0, 0)
    assert np.isnan(found.mae_error)


def test_an_empty_test_part_is_refused(log, table):
    with pytest.raises(TacitError, match="no test ratings"):
        rating_errors(table(np.zeros((1, 1), "f4")), log([]), STARS)
