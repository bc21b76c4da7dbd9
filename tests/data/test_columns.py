import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import columns as module
from tacit.data.columns import Field, Table, read_columns, settled_ids
from tacit.errors import TacitError

WHOLE, NUMBER, ID = Field(0, "user", "whole"), Field(1, "rating", "number"), Field(0, "user", "id")


def table(raw, fields=2, **more):
    return Table("f.csv", raw, more.pop("delimiter", b","), fields, **more)


rows = st.lists(
    st.tuples(
        st.integers(0, 10**17),
        st.one_of(st.integers(0, 10**6).map(str), st.decimals(0, 9999, places=3).map(str)),
    ),
    min_size=1,
    max_size=40,
)


@given(rows, st.sampled_from([b",", b"\t", b"::"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_plain_fields_are_what_python_reads(lines, delimiter, newline, ended):
    text = newline.join(f"{left}{delimiter.decode()}{right}" for left, right in lines) + newline * ended
    users, values = read_columns(table(text.encode(), delimiter=delimiter), [WHOLE, NUMBER])
    assert users.tolist() == [left for left, _ in lines]
    assert values.tolist() == [float(right) for _, right in lines]


@given(rows)
def test_the_size_of_the_pieces_does_not_matter(lines):
    raw = "".join(f"{left},{right}\n" for left, right in lines).encode()
    whole = read_columns(table(raw), [WHOLE, NUMBER])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", 16)
        pieces = read_columns(table(raw), [WHOLE, NUMBER])
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
def test_signs_and_exponents_are_read_exactly(values):
    raw = "".join(f"1,{value!r}\n" for value in values).encode()
    assert read_columns(table(raw), [NUMBER])[0].tolist() == values


@given(st.lists(st.text('ab,"\n é', min_size=1, max_size=6), min_size=1, max_size=12))
def test_quoted_fields_come_out_as_they_went_in(names):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([name, "3"] for name in names)
    users, values = read_columns(table(out.getvalue().encode(), quoted=True), [ID, NUMBER])
    assert users.tolist() == names
    assert values.tolist() == [3.0] * len(names)


@pytest.mark.parametrize("pieces", [16, 1 << 22])
def test_ids_are_integers_only_if_all_are_written_as_integers(pieces, monkeypatch):
    monkeypatch.setattr(module, "_PIECE", pieces)
    integers = b"12,1\n" * 10 + b"-3,1\n"
    assert read_columns(table(integers), [ID])[0].tolist() == [12] * 10 + [-3]
    mixed = b"12,1\n" * 10 + b"x7,1\n"
    assert read_columns(table(mixed), [ID])[0].tolist() == ["12"] * 10 + ["x7"]
    padded = b"12,1\n" * 10 + b"012,1\n"
    assert read_columns(table(padded), [ID])[0].tolist() == ["12"] * 10 + ["012"]


def test_text_ids_beyond_ascii():
    assert settled_ids(np.array(["é".encode(), b"b"])).tolist() == ["é", "b"]


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"1,2\n3\n", 6, "expected 2 fields, found 1"),
        (b"1,2\n3,4\n5,6,7\n", 7, "expected 2 fields, found 3"),
        (b"1,2,9\n3\n", 5, "expected 2 fields, found 3"),
        (b"1,2\n\n3,4\n", 6, "expected 2 fields, found 1"),
        (b"1,2\n3,four\n", 6, "expected a finite number for rating, found 'four'"),
        (b"1,2\n3,nan\n", 6, "expected a finite number for rating, found 'nan'"),
        (b"1,2\n3,inf\n", 6, "expected a finite number for rating, found 'inf'"),
        (b"1,2\n3,1_0\n", 6, "expected a finite number for rating, found '1_0'"),
        (b"1,2\n3,.\n", 6, "expected a finite number for rating, found '.'"),
        (b"1,2\n3,1.2.3\n", 6, "expected a finite number"),
        (b"1,2\n3,\n", 6, "expected a finite number for rating, found ''"),
        (b"1,2\nx,4\n", 6, "expected a whole number for user, found 'x'"),
        (b"1,2\n1.5,4\n", 6, "expected a whole number for user, found '1.5'"),
        (b"1,2\n99999999999999999999,4\n", 6, "expected a whole number for user"),
        (b'1,2\n"3",four\n', 6, "expected a finite number for rating, found 'four'"),
        (b'1,2\n"3",4,5\n', 6, "expected 2 fields, found 3"),
        (b'1,2\n"3"x,4\n', 6, "check the quotes"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(raw, line, message):
    with pytest.raises(TacitError) as caught:
        read_columns(table(raw, first_line=5, quoted=True), [WHOLE, NUMBER])
    assert str(caught.value).startswith(f"f.csv, line {line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_body_is_refused():
    with pytest.raises(TacitError, match="holds no rows"):
        read_columns(table(b"\r\n"), [WHOLE])


def test_progress_ends_at_the_end():
    seen = []
    read_columns(table(b"1,2\n3,4\n"), [WHOLE], lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
