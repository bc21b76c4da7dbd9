"""A letter is a straight line; the server has the same rows under a name."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.audit.peers import linked, remaining, sender_of
from tacit.audit.reconstruction import Gradient, Upload


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(3, 40), mean=st.floats(1, 5))
def test_slope_and_intercept_are_vector_and_mean(upload_of, seed, count, mean):
    draw = np.random.default_rng(seed)
    table, person = draw.normal(0, 1, (count, 6)), draw.normal(0, 0.5, 6)
    found = sender_of(upload_of(table, person, np.arange(count), mean, 0.04), Gradient(0.04))
    np.testing.assert_allclose(found.vector, person, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5)
    assert found.misfit < 1e-9


def test_predicted_fillers_are_off_the_line(upload_of):
    draw = np.random.default_rng(0)
    table, person = draw.normal(0, 1, (40, 6)), draw.normal(0, 0.5, 6)
    letter = upload_of(table, person, np.arange(40), draw.uniform(1, 5, 40))
    assert sender_of(letter, Gradient()).misfit > 0.1


def people(upload_of, kind="f4"):
    draw = np.random.default_rng(4)
    table, log, letters = draw.normal(0, 1, (50, 4)), {}, []
    for user in range(8):
        ids = np.sort(draw.permutation(50)[:12])
        log[user] = upload_of(table, draw.normal(0, 1, 4), ids, draw.integers(1, 6, 12), kind=kind)
        part = np.sort(draw.permutation(12)[:5])
        letters.append(Upload(log[user].ids[part], log[user].rows[part], table))
    return log, letters


def test_equal_rows_link_every_letter(upload_of):
    log, letters = people(upload_of)
    assert linked(letters, log) == list(range(8))
    assert all(len(remaining(log[user], letter)) == 7 for user, letter in enumerate(letters))


def test_rows_that_differ_leave_the_ids(upload_of):
    """Noise of its own on each copy: only whoever names all of a letter's items is left."""
    log, letters = people(upload_of)
    blurred = [Upload(letter.ids, letter.rows + np.float32(1e-3), letter.table) for letter in letters]
    for owner, (user, letter) in zip(linked(blurred, log), enumerate(letters), strict=True):
        fits = [name for name, mine in log.items() if set(letter.ids) <= set(mine.ids)]
        assert owner == (user if fits == [user] else -1)
