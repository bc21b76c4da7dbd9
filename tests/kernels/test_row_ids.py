"""Ids come back, their length is known beforehand, and damage is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.kernels.row_ids import Form, id_sizes, packed_length, read_ids, written_ids

IDS = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), unique=True, max_size=60)


@given(IDS)
@settings(max_examples=200, deadline=None)
def test_every_form_comes_back_and_the_shorter_is_chosen(ids):
    rising = np.array(sorted(ids), dtype=np.int32)
    lengths = {form: len(written_ids(rising, form)) for form in Form}
    for form in Form:
        assert np.array_equal(read_ids(written_ids(rising, form), len(rising), form), rising)
    found = id_sizes(np.array([0]), np.array([len(ids)]), np.array(ids, dtype=np.int32))
    assert found.nbytes[0] == min(lengths.values())
    assert found.nbytes[0] == lengths[Form(found.forms[0])]
    if ids:
        assert lengths[Form.PACKED] == packed_length(max(ids), len(ids))


@given(st.integers(2, 2000), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_packed_ids_are_near_the_least_there_is(count, seed):
    """At most 2 + log2(m / n) bits an id, beside the head and two partly filled bytes."""
    generator = np.random.default_rng(seed)
    ids = np.sort(generator.choice(4000, count, replace=False)).astype("i4")
    bits = 8 * (len(written_ids(ids, Form.PACKED)) - 4)
    assert bits <= count * (2 + np.log2((ids[-1] + 1) / count)) + 16


@given(st.lists(IDS.filter(lambda ids: max(ids, default=0) < 2000), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_clients_do_not_change_each_others_sizes(lists):
    lengths = np.array([len(ids) for ids in lists], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    flat = np.array([item for ids in lists for item in ids], dtype=np.int32)
    together = id_sizes(starts, lengths, flat).nbytes
    alone = [id_sizes(np.array([0]), np.array([len(i)]), np.array(i, "i4")).nbytes[0] for i in lists]
    assert together.tolist() == [int(size) for size in alone]


def test_ids_that_repeat_come_back():
    ids = np.array([5, 5, 6, 900, 900], dtype="i4")
    assert np.array_equal(read_ids(written_ids(ids, Form.PACKED), 5, Form.PACKED), ids)


@given(st.binary(max_size=20), st.integers(0, 2**32 - 1), st.sampled_from(list(Form)))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused_and_never_take_more_memory_than_they_say(raw, count, form):
    try:
        found = read_ids(np.frombuffer(raw, dtype=np.uint8), count, form)
    except TacitError:
        return
    assert len(found) == count <= 8 * len(raw)
    assert not len(found) or found.min() >= 0


@pytest.mark.parametrize("damage", [0, 4, 5, 9])
def test_a_changed_byte_is_refused_or_changes_the_ids(damage):
    ids = np.array([3, 70, 71, 900], dtype="i4")
    raw = written_ids(ids, Form.PACKED).copy()
    raw[min(damage, len(raw) - 1)] ^= 1
    try:
        found = read_ids(raw, 4, Form.PACKED)
    except TacitError:
        return
    assert not np.array_equal(found, ids)
