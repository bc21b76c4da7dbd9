import numpy as np
import pytest

from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Interactions, Scale
from tacit.data.published import Published, fingerprint, verify
from tacit.errors import TacitError

ROWS = [(0, 0, 4.5, 10), (0, 2, 1.0, 20), (1, 1, 4.5, 30), (2, 2, 3.0, 20)]


def dataset(rows, *, times=True):
    users, items, values, moments = (np.array(column) for column in zip(*rows, strict=True))
    log = Interactions(
        users.astype("i4"), items.astype("i4"), values.astype("f4"), moments.astype("i8") if times else None
    )
    return Dataset("toy", log, Ids(np.array([10, 20, 30])), Ids(np.array([5, 6, 7])), Scale(0.5, 5, 0.5))


def test_the_fingerprint_ignores_the_order_of_rows():
    assert fingerprint(dataset(ROWS)) == fingerprint(dataset(ROWS[::-1]))


@pytest.mark.parametrize(
    ("column", "times"),
    [(column, times) for column in range(4) for times in (True, False) if times or column < 3],
)
def test_one_altered_cell_changes_the_fingerprint(column, times):
    altered = [list(row) for row in ROWS]
    altered[1][column] = {0: 1, 1: 1, 2: 1.5, 3: 21}[column]
    assert fingerprint(dataset(ROWS, times=times)) != fingerprint(dataset(altered, times=times))


def test_swapping_two_values_changes_the_fingerprint_though_no_count_changes():
    swapped = [(0, 0, 1.0, 10), (0, 2, 4.5, 20), *ROWS[2:]]
    assert fingerprint(dataset(ROWS)) != fingerprint(dataset(swapped))
    right = Published(3, 3, 4, fingerprint(dataset(ROWS)), {4.5: 2, 1.0: 1})
    verify(dataset(ROWS), right, "here")
    with pytest.raises(
        TacitError, match="here is cut short or altered: it holds the published counts but other"
    ):
        verify(dataset(swapped), right, "here")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (Published(3, 3, 5), "4 interactions instead of 5"),
        (Published(4, 3, 4), "3 users instead of 4"),
        (Published(3, 4, 4), "3 items instead of 4"),
        (Published(3, 3, 4, None, {4.5: 3}), "2 ratings of 4.5 instead of 3"),
    ],
)
def test_each_count_is_checked(expected, message):
    with pytest.raises(TacitError, match=message):
        verify(dataset(ROWS), expected, "here")
