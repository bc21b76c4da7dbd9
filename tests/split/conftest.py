import numpy as np
import pytest

from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Interactions


@pytest.fixture(scope="session")
def dataset_of():
    """A data set out of (user, item, value, time) rows, in the order given."""

    def build(rows, *, users=None, items=None, times=True):
        who, what, values, moments = (np.array(column) for column in zip(*rows, strict=True))
        log = Interactions(
            who.astype("i4"), what.astype("i4"), values.astype("f4"), moments.astype("i8") if times else None
        )
        people = int(who.max()) + 1 if users is None else users
        things = int(what.max()) + 1 if items is None else items
        return Dataset("toy", log, Ids(np.arange(people)), Ids(np.arange(things)), None)

    return build


@pytest.fixture(scope="session")
def rows_in():
    """The rows of a log as a list of (user, item, value, time)."""

    def rows(log):
        times = [None] * len(log) if log.times is None else log.times.tolist()
        return list(zip(log.users.tolist(), log.items.tolist(), log.values.tolist(), times, strict=True))

    return rows
