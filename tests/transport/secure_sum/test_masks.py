"""Masks are the published functions, tile by tile the same as in one piece, and cancel."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.transport.secure_sum import masks
from tacit.transport.secure_sum.masks import add_masks, agreed, keypair


def test_agreement_is_x25519_of_rfc_7748():
    known = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    shared = bytes.fromhex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    extracted = hmac.new(bytes(32), shared, hashlib.sha256).digest()
    expected = hmac.new(extracted, b"tacit secure sum 1 purpose\x01", hashlib.sha256).digest()
    assert agreed(known, point, b"purpose") == expected


def test_the_stream_is_aes_256_in_counter_mode():
    """The first block under the zero key is the published encryption of the zero block."""
    total = np.zeros(4, dtype="<u4")
    add_masks(total, [(bytes(32), 1)])
    assert total.tobytes().hex() == "dc95c078a2408989ad48a21492842087"


@given(
    st.integers(1, 400),
    st.sampled_from([16, 32, 64]),
    st.integers(1, 64),
    st.lists(st.sampled_from([1, -1]), max_size=6),
)
def test_tiles_never_change_a_mask(length, ring, tile, signs):
    dtype = masks.RINGS[ring]
    seeds = [(bytes([place]) * 32, sign) for place, sign in enumerate(signs)]
    whole = np.zeros(length, dtype=dtype)
    for seed, sign in seeds:
        stream = masks.stream(seed).update(bytes(length * dtype.itemsize))
        whole += np.frombuffer(stream, dtype=dtype) if sign > 0 else -np.frombuffer(stream, dtype=dtype)
    tiled = np.zeros(length, dtype=dtype)
    before, masks.TILE = masks.TILE, tile
    try:
        add_masks(tiled, seeds)
    finally:
        masks.TILE = before
    assert np.array_equal(tiled, whole)


def test_more_seeds_than_are_held_at_once():
    seeds = [(place.to_bytes(32, "big"), 1) for place in range(masks.TOGETHER + 3)]
    total = np.zeros(9, dtype="<u8")
    add_masks(total, seeds)
    add_masks(total, [(seed, -1) for seed, _ in reversed(seeds)])
    assert not total.any()


def test_both_ends_agree_and_the_purpose_matters():
    mine, yours = keypair(b"m" * 32), keypair(b"y" * 32)
    assert (
        agreed(mine[0], yours[1], b"a") == agreed(yours[0], mine[1], b"a") != agreed(mine[0], yours[1], b"b")
    )


@pytest.mark.parametrize(
    "vector", [np.zeros(3), np.zeros(3, dtype="<i4"), np.zeros((4, 4), dtype="<u4")[:, 0]]
)
def test_other_vectors_are_refused(vector):
    with pytest.raises(TacitError, match="unsigned"):
        add_masks(vector, [])
