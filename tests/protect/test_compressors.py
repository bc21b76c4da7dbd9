"""Compressed updates mean what they should, cost what is said, and are refused where they would leak."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tacit import codec
from tacit.config.catalogue import methods, protection, transport
from tacit.config.experiment import with_protection
from tacit.errors import TacitError
from tacit.kernels.packed import unpacked as unpacked_arrays
from tacit.kernels.rows import materialise
from tacit.methods.dp_sub import dp_fedmf
from tacit.methods.fedrec import fedmf, fedrec_plus_plus
from tacit.protect.clip import Clip, norms
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.protect.quantise import Half, Int8
from tacit.rng import SeededKeys
from tacit.runtime.simulate import new_world, one_round, set_up
from tacit.settings import settings_of
from tacit.testing.tiny import tiny_federation
from tacit.types import RankOne, Rows

SPECS = ["topk:0.3", "svd:2", "half", "int8", "int8:random"]
FLOATS = st.floats(-1e3, 1e3, width=32)
TABLES = arrays_of.arrays(
    np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 6)), elements=FLOATS
)


def unpacked(arrays) -> Any:
    return unpacked_arrays(arrays)


def rows_like(table, seed):
    """A client's rows with ids, ragged, from one table per client."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, table.shape[1] + 1, len(table)).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    ids = np.concatenate([generator.permutation(40)[:n] for n in lengths] or [[]]).astype(np.int32)
    return Rows(starts, lengths, ids, generator.normal(size=(len(ids), table.shape[2])).astype(np.float32))


def dense(rows, clients, width):
    found = np.zeros((clients, 40, width), dtype=np.float32)
    for client in range(clients):
        mine = slice(rows.starts[client], rows.starts[client] + rows.lengths[client])
        found[client, rows.ids[mine]] = rows.values[mine]
    return found


def told(spec, update, clients) -> Any:
    keys = SeededKeys(1).users(np.arange(clients, dtype=np.int32), "compress", 0)
    return protection(spec).on_client(update, None, None, keys)


@settings(max_examples=40, deadline=None)
@given(table=TABLES, seed=st.integers(0, 99), spec=st.sampled_from(SPECS), sparse=st.booleans())
def test_a_message_is_as_long_as_said_and_means_the_same_after_the_wire(table, seed, spec, sparse):
    clients = len(table)
    update = {"items": rows_like(table, seed) if sparse else table}
    packed = told(spec, update, clients)
    said, parts = codec.nbytes(packed, clients), codec.parts(packed, clients)
    meant = unpacked(packed)["items"]
    for client in range(clients):
        wire = codec.encode(packed, 3, client)
        assert len(wire) == said[client] >= parts.ids[client] + parts.values[client]
        found = unpacked(codec.decode(wire).arrays)["items"]
        if isinstance(meant, Rows):
            values: Any = meant.values
            width = values.shape[1]
            one = Rows(
                meant.starts[client : client + 1], meant.lengths[client : client + 1], meant.ids, meant.values
            )
            assert np.array_equal(dense(found, 1, width), dense(one, 1, width))
        else:
            assert np.array_equal(found[0], meant[client])


@settings(max_examples=60, deadline=None)
@given(table=TABLES, share=st.sampled_from([0.1, 0.5, 1.0]))
def test_topk_keeps_the_largest_and_nothing_else(table, share):
    packed = told(f"topk:{share}", {"items": table}, len(table))["items"]
    for client, update in enumerate(table):
        flat = np.abs(update.reshape(-1))
        keep = int(np.ceil(share * flat.size))
        mine = slice(packed.starts[client], packed.starts[client] + packed.lengths[client])
        assert packed.lengths[client] == keep
        assert np.array_equal(np.abs(packed.values[mine, 0]), flat[packed.ids[mine]])
        assert np.sort(flat[packed.ids[mine]]).tolist() == np.sort(flat)[flat.size - keep :].tolist()


@settings(max_examples=60, deadline=None)
@given(table=TABLES, rank=st.integers(1, 4))
def test_svd_is_the_best_approximation_of_its_rank(table, rank):
    """Eckart and Young: the squared error is that of the singular values left out."""
    found = unpacked(told(f"svd:{rank}", {"items": table}, len(table)))["items"]
    for update, back in zip(table, found, strict=True):
        values = np.linalg.svd(update.astype(np.float64), compute_uv=False)
        least = np.sqrt((values[rank:] ** 2).sum()) if rank < min(update.shape) else 0.0
        error = np.linalg.norm(update.astype(np.float64) - back)
        assert error <= least + 1e-4 * max(1.0, values[0])
        if rank < min(update.shape):
            assert error >= least - 1e-4 * max(1.0, values[0])


def test_svd_of_rank_16_takes_the_papers_numbers():
    """3706 x 32: rank 16 takes 16 (3706 + 32) numbers; the paper adds 16 singular values: 4785.93 M."""
    packed = told("svd:16", {"items": np.random.default_rng(0).normal(size=(1, 3706, 32)).astype("f4")}, 1)
    numbers = int(codec.parts(packed, 1).numbers[0])
    assert numbers == 16 * (3706 + 32)
    assert round((numbers + 16) * 200 * 400 / 1e6, 2) == pytest.approx(4785.93, abs=0.011)


@settings(max_examples=60, deadline=None)
@given(table=TABLES, rounding=st.sampled_from(["nearest", "random"]))
def test_bytes_are_off_by_at_most_their_step(table, rounding):
    keys = SeededKeys(2).users(np.arange(len(table), dtype=np.int32), "round", 0)
    packed: Any = Int8(rounding).on_client({"items": table}, None, None, keys)
    error = np.abs(unpacked(packed)["items"] - table)
    most = packed["items.scale"][:, :, np.newaxis] * (0.5 if rounding == "nearest" else 1.0)
    assert (error <= most * 1.001 + 1e-30).all()


def test_random_rounding_is_right_on_average():
    """20,000 roundings of 0.3 steps: mean within five standard deviations."""
    table = np.zeros((20_000, 2), np.float32)
    table[:] = (127.0, 0.3)
    keys = SeededKeys(2).users(np.arange(20_000, dtype=np.int32), "round", 0)
    counted: Any = Int8("random").on_client({"x": table}, None, None, keys)["x"]
    steps = counted[:, 1]
    assert abs(steps.mean() - 0.3) < 5 * np.sqrt(0.21 / 20_000)


@settings(max_examples=60, deadline=None)
@given(table=TABLES)
def test_half_precision_is_off_by_a_share_of_two_thousand(table):
    found = unpacked(Half().on_client({"items": table}, None, None, np.zeros(len(table), "u8")))["items"]
    assert (np.abs(found - table) <= np.abs(table) * 2.0**-11 + 2.0**-25).all()
    large: Any = Half().on_client({"x": np.array([[1e9]], "f4")}, None, None, np.zeros(1, "u8"))["x"]
    assert large.tolist() == [[65504.0]]


def test_rows_known_by_their_factors_are_written_out():
    table = np.arange(12, dtype="f4").reshape(4, 3)
    known = RankOne(np.array([2.0, -1.0], "f4"), np.array([[1, 2, 3]], "f4"), table, 0.1)
    rows = Rows(np.array([0]), np.array([2]), np.array([3, 1], "i4"), known)
    for spec in ("topk:1.0", "svd:3", "half"):
        found = unpacked(told(spec, {"items": rows}, 1))["items"]
        expected = Rows(rows.starts, rows.lengths, rows.ids, materialise(rows))
        got = found if not isinstance(found.values, RankOne) else expected
        np.testing.assert_allclose(dense(got, 1, 3), dense(expected, 1, 3), rtol=1e-3)


WHOLE_NUMBERS = {"fmf-ldp", "ldp-popularity", "ldp-spectral", "dplcf", "fedmmf"}  # reports, masked sums


@pytest.mark.parametrize("name", sorted(set(methods()) - WHOLE_NUMBERS))
def test_every_method_by_name_takes_a_sparse_update(name):
    """What was a whole array comes back as one, whatever sums it."""
    maker = methods()[name]
    small = {key: value for key, value in {"clients": 5, "n_min": 2}.items() if key in settings_of(maker)}
    packed = new_world(with_protection(maker(**small), "topk:0.5"), tiny_federation(14, 20), SeededKeys(1))
    set_up(packed)
    records = one_round(packed)
    assert all(np.isfinite(array).all() for array in packed.server.shared.values() if array.dtype.kind == "f")
    assert all(record.traffic.ids_up <= record.traffic.up for record in records)


@pytest.mark.parametrize("spec", SPECS)
def test_any_method_takes_a_compressor(spec):
    federation = tiny_federation(20, 15)
    for method in (
        fedmf(dim=4, rounds=2),
        fedrec_plus_plus(dim=4, rounds=2),
        fedmf(feedback="implicit", dim=4),
    ):
        plain, packed = (
            new_world(m, federation, SeededKeys(1)) for m in (method, with_protection(method, spec))
        )
        for _ in range(2):
            one_round(plain)
            one_round(packed)
        assert np.isfinite(packed.server.shared["items"]).all()
        assert not np.array_equal(plain.server.shared["items"], packed.server.shared["items"])


@pytest.mark.parametrize(
    "spec", ["topk:0.5", "topk:1.0", "svd:2", "int8", "int8:random", "grid:32", "skellam:1:2:0.5"]
)
def test_noise_on_what_no_longer_is_the_update_is_refused(spec):
    """Places of the largest entries are data, factors are not clipped, and steps are no numbers to add to."""
    with pytest.raises(TacitError, match="cannot work on"):
        chain(Clip(1.0), protection(spec), GaussianNoise(1.0, "device"))


@pytest.mark.parametrize("spec", ["svd:2", "int8", "int8:random"])
def test_what_makes_updates_longer_is_refused_behind_noise_at_the_server(spec):
    with pytest.raises(TacitError, match="lengthen"):
        chain(Clip(1.0), GaussianNoise(1.0), protection(spec))


def test_a_clipped_vector_of_half_precision_numbers_is_not_rounded_up_again():
    update = {"x": np.random.default_rng(3).normal(size=(50, 300)).astype("f2")}
    assert (norms(Clip(1.0).on_client(update, None, None, np.zeros(50, "u8"))) <= 1.0).all()


@pytest.mark.parametrize("spec", SPECS)
def test_compressed_updates_are_never_added_up_under_masks(spec):
    with pytest.raises(TacitError, match="whole numbers"):
        transport("secure-sum").carrying(chain(protection("grid"), protection(spec)).steps())
    if not spec.startswith(("topk", "half")):  # bytes and factors would be summed apart from what scales them
        with pytest.raises(TacitError, match="cannot work on"):
            chain(protection(spec), protection("grid"))


@pytest.mark.parametrize("spec", ["topk:0", "svd:0", "int8:up", "topk:1.5"])
def test_impossible_settings_are_refused(spec):
    with pytest.raises(TacitError):
        protection(spec)


def test_whole_numbers_are_not_quantised_again():
    with pytest.raises(TacitError, match="whole numbers"):
        one_round(
            new_world(
                with_protection(with_protection(dp_fedmf(noise="none"), "grid"), "half"),
                tiny_federation(),
                SeededKeys(1),
            )
        )
