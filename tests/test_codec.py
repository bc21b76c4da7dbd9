"""What crosses a wire: round trips, exact lengths, and refusal of everything malformed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import codec
from tacit.errors import TacitError
from tacit.kernels.packed import unpacked
from tacit.types import RankOne, Rows


def rows_of(lengths, dim, seed, *, counted, dtype):
    generator = np.random.default_rng(seed)
    lengths = np.array(lengths, dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    ids = np.concatenate([generator.permutation(50)[:n] for n in lengths] or [[]]).astype(np.int32)
    values = (100 * generator.standard_normal((len(ids), dim))).astype(dtype)
    counts = generator.integers(-3, 9, len(ids)).astype(np.int32) if counted else None
    return Rows(starts, lengths, ids, values, counts)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    dim=st.integers(1, 6),
    seed=st.integers(0, 99),
    counted=st.booleans(),
    dtype=st.sampled_from(["f4", "f8", "i8"]),
)
def test_a_message_is_as_long_as_was_said_and_comes_back_sorted(lengths, dim, seed, counted, dtype):
    rows = rows_of(lengths, dim, seed, counted=counted, dtype=dtype)
    dense = np.random.default_rng(seed).standard_normal((len(lengths), 3)).astype("f4")
    arrays = {"items": rows, "bits": dense}
    said = codec.nbytes(arrays, len(lengths))
    for client in range(len(lengths)):
        wire = codec.encode(arrays, round=7, client=client)
        assert len(wire) == said[client]
        message = codec.decode(wire)
        found = message.arrays["items"]
        mine = slice(rows.starts[client], rows.starts[client] + rows.lengths[client])
        order = np.argsort(rows.ids[mine], kind="stable")
        assert message.round == 7
        assert np.array_equal(found.ids, rows.ids[mine][order])
        assert np.array_equal(found.values, rows.values[mine][order])
        if counted:
            assert np.array_equal(found.counts, rows.counts[mine][order])
        assert np.array_equal(message.arrays["bits"], dense[client : client + 1])


@pytest.mark.parametrize("grid", [0, 16])
def test_rows_known_by_their_factors_travel_as_numbers(grid):
    table = np.arange(12, dtype="f4").reshape(4, 3)
    known = RankOne(
        np.array([2.0, -1.0, 0.5], "f4"), np.array([[1, 2, 3], [4, 5, 6]], "f4"), table, 0.1, grid
    )
    rows = Rows(np.array([0, 2]), np.array([2, 1]), np.array([3, 1, 0], "i4"), known)
    assert codec.nbytes({"items": rows}, 2).tolist() == [
        len(codec.encode({"items": rows}, 0, c)) for c in (0, 1)
    ]
    found = codec.decode(codec.encode({"items": rows}, 0, 0)).arrays["items"]
    expected = np.array([[-1, -2, -3], [2, 4, 6]]) + 0.1 * table[[1, 3]]
    if grid:
        assert found.values.dtype == np.int64
        assert np.abs(found.values / 2**grid - expected).max() <= 2.0 ** -(grid + 1) + 1e-6
    else:
        np.testing.assert_allclose(found.values, expected, rtol=1e-6)


def test_a_broadcast_has_no_client_axis():
    arrays = {"items": np.ones((5, 2), "f4"), "round": np.array([3], "i8")}
    wire = codec.encode_broadcast(arrays, 4)
    assert len(wire) == codec.broadcast_nbytes(arrays)
    message = codec.decode_broadcast(wire)
    assert message.round == 4
    assert all(np.array_equal(message.arrays[name], arrays[name]) for name in arrays)


def test_who_has_nothing_to_say_sends_nothing():
    assert codec.nbytes({}, 3).tolist() == [0, 0, 0]
    assert codec.broadcast_nbytes({}) == 0


def wire_of_two():
    rows = rows_of([4], 2, 0, counted=True, dtype="f4")
    return codec.encode({"items": rows, "bits": np.ones((1, 3), "f4")}, 1)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_one_clear_error(data):
    """Every cut, and every changed byte of the body or of the mark, is refused as a TacitError."""
    wire = wire_of_two()
    if data.draw(st.booleans()):
        damaged = wire[: data.draw(st.integers(0, len(wire) - 1))]
    else:
        place = data.draw(st.sampled_from([*range(4), *range(12, len(wire))]))
        flip = data.draw(st.integers(1, 255))
        damaged = wire[:place] + bytes([wire[place] ^ flip]) + wire[place + 1 :]
    with pytest.raises(TacitError):
        codec.decode(damaged)


def test_a_well_marked_message_that_lies_about_its_lengths_is_refused():
    import struct
    import zlib

    body = struct.pack("<B5sBBB2I", 5, b"items", 1, 0, 2, 2**31, 2**31)
    with pytest.raises(TacitError, match="too early"):
        codec.decode(struct.pack("<4sHHII", b"TCT1", 1, 0, 0, zlib.crc32(body)) + body)


def cells(shape):
    one = np.zeros(1, dtype=np.int64)
    values = np.array([[1.5], [-2.5]], dtype=np.float32)
    return Rows(one, one + 2, np.array([7, 2], dtype=np.int32), values, None, shape[-1], shape)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 4)])
def test_cells_remember_the_array_they_come_from(shape):
    update = {"w": cells(shape)}
    wire = codec.encode(update, 1)
    assert len(wire) == codec.nbytes(update, 1)[0]
    found = codec.decode(wire).arrays["w"]
    assert isinstance(found, Rows)
    assert (found.whole, found.cells, found.ids.tolist()) == (shape, shape[-1], [2, 7])
    back = unpacked(codec.decode(wire).arrays)["w"]
    expected = np.zeros(shape, dtype=np.float32)
    expected.reshape(-1)[[2, 7]] = [-2.5, 1.5]
    assert np.array_equal(back, expected[np.newaxis])  # type: ignore[arg-type]


def test_cells_of_an_impossible_array_are_refused():
    with pytest.raises(TacitError, match="too large"):
        codec.decode(codec.encode({"w": cells((1 << 30, 1 << 30))}, 1))
    with pytest.raises(TacitError, match="outside"):
        unpacked(codec.decode(codec.encode({"w": cells((2, 3))}, 1)).arrays)
