"""Sums under a key that the server lacks: right for clients, closed to the server, refused in one line."""

import sys

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.transport.homomorphic import LARGEST, SLOTS, BlindTable, KeyHolder


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("tenseal", reason="the extra 'he' is not installed")


@pytest.fixture(scope="module")
def keys(library):
    return KeyHolder.made()


def vector(seed, length=SLOTS + 77):
    return np.random.default_rng(seed).normal(0, 2, length)


def test_what_clients_decrypt_is_the_sum(keys):
    table = BlindTable(keys.public, keys.encrypted(vector(0)))
    for seed in range(1, 20):
        table.add(KeyHolder(keys.letter).encrypted(vector(seed)))
    found = keys.decrypted(table.wire, SLOTS + 77)
    np.testing.assert_allclose(found, sum(vector(seed) for seed in range(20)), atol=1e-4)


def test_the_server_holds_nothing_that_decrypts(keys):
    with pytest.raises(TacitError, match="holds no secret key"):
        KeyHolder(keys.public)
    with pytest.raises(TacitError, match="given a secret key"):
        BlindTable(keys.letter, keys.encrypted(vector(0)))
    table = BlindTable(keys.public, keys.encrypted(vector(0)))
    with pytest.raises(ValueError, match="secret_key"):
        table._parts[0].decrypt()


def test_equal_vectors_do_not_look_alike(keys):
    assert keys.encrypted(vector(0)) != keys.encrypted(vector(0))


@pytest.mark.parametrize("wild", [np.inf, np.nan, 2 * LARGEST])
def test_numbers_that_do_not_fit_are_refused_on_the_device(keys, wild):
    with pytest.raises(TacitError, match="beyond"):
        keys.encrypted(np.array([1.0, wild]))


def test_bytes_that_are_none_of_ours_are_one_line(keys):
    wire = keys.encrypted(vector(0))
    table = BlindTable(keys.public, wire)
    for broken in (wire[:-1], wire[:2], b"\x02\x00\x00\x00xx"):
        with pytest.raises(TacitError):
            table.add(broken)
    with pytest.raises(TacitError, match="another length"):
        table.add(keys.encrypted(vector(0, 5)))
    with pytest.raises(TacitError, match="that do not hold"):
        keys.decrypted(wire, 5)


def test_federated_factorisation_trains_the_same(library):
    from tacit.bench.homomorphic import run

    found = run(people=6, items=60, dim=4, rounds=2)
    assert found["largest-difference"] < 1e-4
    assert set(found["ratios"]) == {"masks", "bytes-up", "training"}


def test_without_the_extra_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenseal", None)
    with pytest.raises(TacitError, match="pip install 'tacit\\[he\\]'"):
        KeyHolder.made()
