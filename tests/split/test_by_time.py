import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.split import split
from tacit.split.by_time import moment

entries = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 5)), st.integers(0, 30), min_size=5, max_size=30
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries)
def test_training_ends_before_testing_begins_and_only_the_known_is_asked(dataset_of, rows_in, log):
    rows = [(user, item, 1.0, time) for (user, item), time in log.items()]
    try:
        parts = split(dataset_of(rows, users=5, items=6), "by-time", seed=1)
    except TacitError:
        assume(False)
    assert parts.train.times.max() < parts.test.times.min()
    train, test = rows_in(parts.train), rows_in(parts.test)
    assert {row[0] for row in test} <= {row[0] for row in train}
    assert {row[1] for row in test} <= {row[1] for row in train}
    left_out = set(rows) - set(train) - set(test)
    assert len(left_out) == parts.dropped
    for user, item, _, time in left_out:
        assert time > parts.train.times.max()
        assert user not in parts.train.users or item not in parts.train.items


@given(st.lists(st.integers(0, 20), min_size=2, max_size=60), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_cut_is_the_nearest_to_the_share(times, share):
    found = moment(np.array(times), share)
    if len(set(times)) == 1:
        assert found is None
        return
    errors = {
        cut: abs(sum(time < cut for time in times) - share * len(times)) for cut in set(times) - {min(times)}
    }
    assert errors[found] == min(errors.values())


def test_what_was_left_out_is_told(dataset_of):
    rows = [(0, item, 1, item) for item in range(8)] + [
        (0, 8, 1, 90),
        (1, 0, 1, 91),
        (0, 9, 1, 1),
        (1, 1, 1, 2),
    ]
    parts = split(dataset_of(rows), "by-time", seed=1)
    assert parts.test.users.tolist() == [1]
    assert parts.dropped == 1
    assert parts.notes == ("1 later interactions of users or items unknown before the cut were left out",)


def test_one_moment_cannot_be_cut(dataset_of):
    with pytest.raises(TacitError, match="all interactions carry the same time"):
        split(dataset_of([(0, 0, 1, 5), (0, 1, 1, 5)]), "by-time", seed=1)
