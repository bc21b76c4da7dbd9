import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.interactions import Scale
from tacit.data.load import load
from tacit.errors import TacitError

LINES = [("7", "b", 4.0, 100), ("3", "a", 3.5, 90), ("7", "a", 1.0, 95)]
EXPECTED = [(3, "a", 3.5, 90), (7, "a", 1.0, 95), (7, "b", 4.0, 100)]


def rows_of(data):
    log = data.interactions
    times = [None] * len(log) if log.times is None else log.times.tolist()
    users = [data.user_ids.raw(user) for user in log.users]
    items = [data.item_ids.raw(item) for item in log.items]
    return list(zip(users, items, log.values.tolist(), times, strict=True))


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return str(path)


def delimited(mark, header, *, newline="\n"):
    return newline.join([mark.join(header), *(mark.join(map(str, line)) for line in LINES)]) + newline


@pytest.mark.parametrize(
    ("suffix", "mark", "header"),
    [
        (".csv", ",", ["userId", "movieId", "rating", "timestamp"]),
        (".csv", ";", ["User", "Item", "Stars", "Time"]),
        (".txt", "|", ["user_id", "item_id", "score", "ts"]),
        (".tsv", "\t", ["uid", "asin", "overall", "unixReviewTime"]),
        (".inter", "\t", ["user_id:token", "item_id:token", "rating:float", "timestamp:float"]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_usual_headers_and_separators(tmp_path, suffix, mark, header, newline):
    data = load(written(tmp_path / f"log{suffix}", delimited(mark, header, newline=newline)))
    assert rows_of(data) == EXPECTED
    assert data.scale == Scale(1, 4, 0.5)


def test_columns_in_any_order_with_others_between(tmp_path):
    text = "comment,rating,item,x,user\nhi,2,b,,1\nho,3,a,,1\n"
    assert rows_of(load(written(tmp_path / "log.csv", text))) == [(1, "a", 3.0, None), (1, "b", 2.0, None)]


def test_quotes_byte_order_mark_and_accents(tmp_path):
    text = '\ufeffuser,item,rating\n"Zoë, A","x ""y""",4\nBo,z,2\n'
    assert rows_of(load(written(tmp_path / "log.csv", text))) == [
        ("Bo", "z", 2.0, None),
        ("Zoë, A", 'x "y"', 4.0, None),
    ]


def test_without_ratings_the_log_is_implicit(tmp_path):
    data = load(written(tmp_path / "log.csv", "user,item\n1,2\n1,3\n"))
    assert data.scale is None
    assert data.interactions.values.tolist() == [1, 1]


def test_a_file_without_header(tmp_path):
    path = written(tmp_path / "u.tsv", "".join("\t".join(map(str, line)) + "\n" for line in LINES))
    assert rows_of(load(path + ":columns=user/item/rating/timestamp")) == EXPECTED
    with pytest.raises(TacitError, match=r"u\.tsv, line 1: expected a column named user"):
        load(path)


ids = st.one_of(st.integers(0, 99).map(str), st.text("abé", min_size=1, max_size=3))


@given(st.dictionaries(st.tuples(ids, ids), st.integers(1, 5), min_size=1, max_size=30))
def test_what_is_written_is_what_is_loaded(tmp_path_factory, ratings):
    folder = tmp_path_factory.mktemp("tables")
    text = "user,item,rating\n" + "".join(f"{user},{item},{r}\n" for (user, item), r in ratings.items())
    data = load(written(folder / "log.csv", text))
    found = {(str(user), str(item)): value for user, item, value, _ in rows_of(data)}
    assert found == ratings
    log = data.interactions
    keys = log.users.astype(np.int64) * data.items + log.items
    assert (np.diff(keys) > 0).all()


@pytest.mark.parametrize("text_ids", [True, False])
@pytest.mark.parametrize("moments", ["number", "datetime"])
def test_parquet_equals_csv(tmp_path, text_ids, moments):
    frame = pd.DataFrame(LINES, columns=["user", "item", "rating", "timestamp"])
    frame["item"] = frame["item"] if text_ids else frame["item"].map({"a": 1, "b": 2})
    frame["user"] = frame["user"] if text_ids else frame["user"].astype(int)
    frame.to_csv(tmp_path / "log.csv", index=False)
    if moments == "datetime":
        frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="s")
    frame.to_parquet(tmp_path / "log.parquet")
    assert rows_of(load(str(tmp_path / "log.parquet"))) == rows_of(load(str(tmp_path / "log.csv")))


def test_parquet_mistakes_are_told(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    pd.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [1.0, None]}).to_parquet(path)
    with pytest.raises(TacitError, match=r"log\.parquet, row 2: no value for rating"):
        load(str(path))
    pd.DataFrame({"user": [1], "film": [1]}).to_parquet(path)
    with pytest.raises(TacitError, match="expected a column named item"):
        load(str(path))
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(TacitError, match="not a readable Parquet file"):
        load(str(path))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(TacitError, match="needs pyarrow"):
        load(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log.csv is empty"),
        ("user,item,rating\n", "log.csv holds no rows"),
        (
            "user,film,rating\n1,2,3\n",
            "log.csv, line 1: expected a column named item (itemId, item_id), found",
        ),
        ("user,userId,item\n1,2,3\n", "log.csv, line 1: both 'user' and 'userId' could be the user"),
        ("user,item,rating\n1,2,3\n1,3\n", "log.csv, line 3: expected 3 fields, found 2"),
        (
            "user,item,rating\n1,2,3\n1,3,good\n",
            "log.csv, line 3: expected a finite number for rating, found 'good'",
        ),
        ("user,item,rating\n1,2,3\n1,,3\n", "log.csv, line 3: expected an id for item, found ''"),
        (
            "user,item,rating\n1,2,3\n1,3,inf\n",
            "log.csv, line 3: expected a finite number for rating, found 'inf'",
        ),
        ("user,item,rating\n1,2,3\n4,5,3\n1,2,4\n", "log.csv, line 4 repeats user 1, item 2 of line 2"),
        ("user,item,time\n1,2,3\n1,3,noon\n", "log.csv, line 3: expected a finite number for timestamp"),
        ("user,item\n\x00\x00", "not plain UTF-8"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path, text, message):
    with pytest.raises(TacitError) as caught:
        load(written(tmp_path / "log.csv", text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_latin_1_ids_are_refused_with_a_remedy(tmp_path):
    with pytest.raises(TacitError, match="save the file as UTF-8"):
        load(written(tmp_path / "log.csv", "user,item\nZoë,1\n", "latin-1"))


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(TacitError, match="is a folder, not a table"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 5, 3], Scale(1, 5, 1)),
        ([0.5, 4, 4.5], Scale(0.5, 4.5, 0.5)),
        ([-2.25, 3], Scale(-2.25, 3, 0.25)),
        ([0.1, 0.7], Scale(0.1, 0.7, 0.2)),
        ([3, 3, 3], None),
        ([1, 2, 4000], None),
        ([0.123, 7.77777], None),
    ],
)
def test_the_scale_is_the_coarsest_that_fits(tmp_path, values, expected):
    text = "user,item,rating\n" + "".join(f"{at},1,{value}\n" for at, value in enumerate(values))
    assert load(written(tmp_path / "log.csv", text)).scale == expected


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("1-4", "log.csv, line 3: rating 4.5 is outside 1 to 4"),
        ("1-5", "log.csv, line 3: rating 4.5 is not 1 plus steps of 1"),
        ("5-1", "cannot read scale=5-1"),
        ("high", "cannot read scale=high"),
    ],
)
def test_a_declared_scale_is_checked(tmp_path, scale, message):
    path = written(tmp_path / "log.csv", "user,item,rating\n1,1,4\n1,2,4.5\n")
    with pytest.raises(TacitError) as caught:
        load(f"{path}:scale={scale}")
    assert message in str(caught.value)


def test_a_declared_scale_holds_whatever_occurs(tmp_path):
    path = written(tmp_path / "log.csv", "user,item,rating\n1,1,4\n1,2,4.5\n")
    assert load(f"{path}:scale=0.5-5-0.5").scale == Scale(0.5, 5, 0.5)
    assert load(f"{path}:scale=none").scale is None


def test_repeated_pairs_are_settled_as_asked(tmp_path):
    text = "user,item,rating,time\n1,2,5,30\n1,2,1,10\n1,3,4,20\n1,2,3,20\n"
    path = written(tmp_path / "log.csv", text)
    last = load(f"{path}:duplicates=last")
    assert rows_of(last) == [(1, 2, 5.0, 30), (1, 3, 4.0, 20)]
    assert "2 repeated pairs" in last.notes[0]
    mean = load(f"{path}:duplicates=mean,scale=none")
    assert [value for *_, value, _ in rows_of(mean)] == [3.0, 4.0]
    timeless = written(tmp_path / "timeless.csv", "user,item,rating\n1,2,5\n1,2,1\n")
    assert rows_of(load(f"{timeless}:duplicates=last")) == [(1, 2, 1.0, None)]


def test_one_persons_history_needs_no_column_of_users(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("item,rating\nx,4\ny,5\n")
    data = load(f"{path}:person=me")
    assert data.user_ids.values.tolist() == ["me"]
    assert data.interactions.values.tolist() == [4.0, 5.0]
    with pytest.raises(TacitError, match="expected a column named user"):
        load(str(path))


def test_a_column_of_users_wins_over_the_name_of_one(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("user,item,rating\nann,x,4\nbob,x,1\n")
    assert load(f"{path}:person=me").user_ids.values.tolist() == ["ann", "bob"]
