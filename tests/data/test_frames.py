"""What is in memory becomes the same data set as the same log in a file."""

import tempfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.data import load
from tacit.data.frames import from_memory, written_table
from tacit.errors import TacitError

ROWS = [("ann", "x", 4.0, 30), ("bob", "x", 1.0, 10), ("ann", "y", 5.0, 20)]
NAMES = ["userId", "movieId", "stars", "timestamp"]


def as_columns():
    return dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))


def as_polars():
    return pytest.importorskip("polars", reason="polars is not installed").DataFrame(as_columns())


SHAPES = {
    "columns": as_columns,
    "pandas": lambda: pd.DataFrame(as_columns()),
    "polars": as_polars,
    "rows": lambda: ROWS,
    "array": lambda: np.array(ROWS, dtype=object),
    "odd index": lambda: pd.DataFrame(as_columns(), index=[7, 7, 9]),
}


def assert_same(ours, theirs):
    for name in ("users", "items", "values", "times"):
        mine, other = getattr(ours.interactions, name), getattr(theirs.interactions, name)
        np.testing.assert_array_equal(mine, other) if mine is not None else None
        assert (mine is None) == (other is None)
    assert ours.user_ids.values.tolist() == theirs.user_ids.values.tolist()
    assert ours.item_ids.values.tolist() == theirs.item_ids.values.tolist()
    assert ours.scale == theirs.scale


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_log_as_the_file(shape, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("userId,movieId,stars,timestamp\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in ROWS))
    assert_same(from_memory(SHAPES[shape]()), load(str(file)))


def test_parquet_and_a_frame_are_the_same(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"user": [2, 1, 2], "item": [5, 5, 9], "rating": [3.5, 1.0, 5.0]})
    frame.to_parquet(tmp_path / "mine.parquet")
    assert_same(from_memory(frame), load(str(tmp_path / "mine.parquet")))


IDS = st.one_of(
    st.integers(-(2**40), 2**40),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.tuples(IDS, IDS), st.integers(0, 10), min_size=1, max_size=12), st.booleans())
def test_a_written_table_is_the_same_data_set(log, timed):
    rows = [(user, item, value / 2, *([value * 7] if timed else [])) for (user, item), value in log.items()]
    assume(len({(str(user), str(item)) for user, item in log}) == len(log))  # 1 and "1" are one id
    ours = from_memory(rows)
    with tempfile.TemporaryDirectory() as folder:
        options = written_table(ours, Path(folder) / "table.csv")
        read = load(f"{folder}/table.csv" + (f":{options}" if options else ""))
    assert_same(ours, read)


def test_dates_become_seconds():
    when = pd.to_datetime([datetime(2020, 1, 1), datetime(2020, 1, 2)])
    data = from_memory(pd.DataFrame({"user": [1, 2], "item": [1, 1], "timestamp": when}))
    assert data.interactions.times.tolist() == [1577836800, 1577923200]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"user": [1], "thing": [2]}, "expected a column named item"),
        ({"user": [1, 2], "item": [2]}, "different lengths"),
        ({"user": [], "item": []}, "no rows"),
        ({"user": [1, None], "item": [2, 3]}, "row 1: no value for user"),
        ({"user": [1.5], "item": [2]}, "neither integers nor text"),
        ({"user": ["a"], "item": ["b"], "rating": ["good"]}, "does not hold numbers"),
        ({"user": [1], "item": [2], "rating": [float("inf")]}, "not finite"),
        ({"user": [1, 1], "item": [2, 2]}, "row 1 repeats user 1, item 2 of row 0"),
        ({"user": ["a\0b"], "item": [2]}, "is no id"),
        ({"user": [""], "item": [2]}, "is no id"),
        ([("ann", "x"), ("bob",)], "different lengths"),
        (["ann", "bob"], "not tuples"),
        (np.zeros((3, 7)), "shape (3, 7)"),
        (42, "a int is no table"),
    ],
)
def test_what_is_wrong_is_one_line(table, says):
    with pytest.raises(TacitError) as refused:
        from_memory(table)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
