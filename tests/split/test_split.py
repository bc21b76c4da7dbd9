"""What every split must hold, whatever its kind: nothing held out can be reached from training."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacit.data.load import load
from tacit.errors import TacitError
from tacit.split import NAMES, split, validation_part

logs = st.dictionaries(
    st.tuples(st.integers(0, 7), st.integers(0, 9)),
    st.tuples(st.integers(1, 5), st.integers(0, 12)),
    min_size=8,
    max_size=60,
)
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def rows_from(log):
    return [(user, item, float(value), time) for (user, item), (value, time) in log.items()]


def cut_or_skip(data, name, seed=1):
    try:
        return split(data, name, seed=seed)
    except TacitError as refused:
        assert "empty" in str(refused) or "same time" in str(refused)  # noqa: PT017 - the only two ways out
        return assume(False)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(log=logs, seed=st.integers(0, 9))
def test_parts_are_disjoint_and_make_up_the_log(dataset_of, rows_in, name, log, seed):
    rows = rows_from(log)
    parts = cut_or_skip(dataset_of(rows, users=8, items=10), name, seed)
    pieces = [rows_in(part) for part in (parts.train, parts.test, parts.support) if part is not None]
    joined = [row for piece in pieces for row in piece]
    assert len(joined) == len(set(joined))
    assert set(joined) <= set(rows)
    assert len(joined) + parts.dropped == len(rows)
    assert pieces[0]
    assert pieces[1]
    for piece in pieces:
        assert [row[:2] for row in piece] == sorted(row[:2] for row in piece)
    assert parts.train_users.tolist() == sorted({row[0] for row in pieces[0]})
    assert parts.test_users.tolist() == sorted({row[0] for row in pieces[1]})
    assert (parts.users, parts.items) == (8, 10)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(log=logs, shuffle=st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(dataset_of, rows_in, name, log, shuffle):
    rows = rows_from(log)
    parts = cut_or_skip(dataset_of(rows, users=8, items=10), name)
    shuffle.shuffle(rows)
    again = split(dataset_of(rows, users=8, items=10), name, seed=1)
    assert rows_in(parts.train) == rows_in(again.train)
    assert rows_in(parts.test) == rows_in(again.test)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(log=logs, seed=st.integers(0, 9))
def test_no_held_out_row_can_be_reached_through_validation(dataset_of, rows_in, name, log, seed):
    parts = cut_or_skip(dataset_of(rows_from(log), users=8, items=10), name)
    try:
        tuning = validation_part(parts, seed, share=0.3)
    except TacitError as refused:
        assert "empty" in str(refused) or "same time" in str(refused)  # noqa: PT017 - the only two ways out
        return
    hidden = set(rows_in(parts.test)) | set(rows_in(parts.support) if parts.support else ())
    inner = [set(rows_in(part)) for part in (tuning.train, tuning.test, tuning.support) if part is not None]
    assert hidden.isdisjoint(set.union(*inner))
    assert sum(map(len, inner)) + tuning.dropped == len(parts.train)
    assert set.union(*inner) <= set(rows_in(parts.train))
    assert len(set.union(*inner)) == sum(map(len, inner))
    assert tuning.kind == parts.kind
    assert tuning.name == f"{parts.name}/validation"


@pytest.fixture(scope="module")
def demo():
    return load("demo:users=300")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"by-time", "leave-last-out"}])
def test_seeds_repeat_and_differ(demo, rows_in, name):
    first, again, other = (rows_in(split(demo, name, seed=seed).test) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", NAMES)
def test_validation_is_cut_by_the_same_protocol_at_the_share_asked_for(demo, name):
    parts = split(demo, name, seed=1)
    tuning = validation_part(parts, seed=1, share=0.2)
    if name.startswith("leave"):
        assert len(tuning.test) == len(tuning.test_users) == 300
    elif name == "by-user":
        assert len(tuning.test_users) == round(0.2 * len(parts.train_users))
    else:
        assert (len(tuning.test) + tuning.dropped) / len(parts.train) == pytest.approx(0.2, abs=0.01)


def test_validation_draws_differ_from_the_split_and_follow_the_seed(demo, rows_in):
    parts = split(demo, "leave-one-out", seed=1)
    first, again, other = (rows_in(validation_part(parts, seed).test) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leave-last", "no split is called 'leave-last'; did you mean 'leave-last-out'"),
        ("ratings-5fold:6", "has no fold '6'; write ratings-5fold:1 to ratings-5fold:5"),
        ("ratings-5fold:", "has no fold ''"),
        ("by-user:2", "by-user takes nothing after a colon"),
    ],
)
def test_names_that_are_none(demo, name, message):
    with pytest.raises(TacitError, match=message):
        split(demo, name, seed=1)


@pytest.mark.parametrize("name", ["leave-last-out", "by-time"])
def test_times_are_needed_where_they_are(dataset_of, name):
    data = dataset_of([(0, 0, 1, 0), (0, 1, 1, 0)], times=False)
    with pytest.raises(TacitError, match=f"{name} needs times, which toy does not have; use leave-one-out"):
        split(data, name, seed=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_log_too_small_to_cut_is_refused(dataset_of, name):
    with pytest.raises(TacitError, match=r"empty|same time"):
        split(dataset_of([(0, 0, 1, 5)]), name, seed=1)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_a_share_that_is_none(demo, share):
    with pytest.raises(TacitError, match="leaves one part empty"):
        validation_part(split(demo, "leave-one-out", seed=1), 1, share)


def test_the_input_is_not_touched(demo):
    before = [column.copy() for column in (demo.interactions.users, demo.interactions.items)]
    for name in NAMES:
        split(demo, name, seed=3)
    np.testing.assert_array_equal(before[0], demo.interactions.users)
    np.testing.assert_array_equal(before[1], demo.interactions.items)


def test_a_log_that_trains_as_a_whole_is_not_copied():
    data = load("demo:users=40,items=50,mean=10")
    parts = split(data, "all", seed=1)
    assert np.shares_memory(parts.train.items, data.interactions.items)
    assert data.keeping(parts.train).interactions is parts.train
