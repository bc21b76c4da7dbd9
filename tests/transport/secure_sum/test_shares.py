"""Enough shares give the secret, fewer fit every secret; letters open for their reader only."""

import random
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.transport.secure_sum.field import PRIME, at_zero
from tacit.transport.secure_sum.shares import SEALED_BYTES, SharePair, joined, opened, sealed, split


@given(st.binary(min_size=32, max_size=32), st.integers(1, 12), st.integers(0, 8), st.randoms())
def test_any_threshold_of_the_shares_gives_the_secret(secret, threshold, more, chance):
    points = chance.sample(range(1, 500), threshold + more)
    shares = dict(zip(points, split(secret, points, threshold, secrets.token_bytes), strict=True))
    chosen = chance.sample(points, threshold)
    assert joined(chosen, [shares[x] for x in chosen]) == secret


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.integers(2, 8))
def test_one_share_too_few_fits_every_secret(secret, other, threshold):
    """For any other secret there is a last share that would complete these to it."""
    points = list(range(1, threshold))
    shares = [
        int.from_bytes(s, "big") for s in split(secret, [*points, threshold], threshold, secrets.token_bytes)
    ]
    # at_zero is linear in the last value: solve for the one that gives the other secret.
    without = at_zero([*points, threshold], [*shares[:-1], 0])
    slope = (at_zero([*points, threshold], [*shares[:-1], 1]) - without) % PRIME
    last = (int.from_bytes(other, "big") - without) * pow(slope, -1, PRIME) % PRIME
    found = joined([*points, threshold], [s.to_bytes(33, "big") for s in (*shares[:-1], last)])
    assert found == other


def test_single_shares_look_uniform_whatever_the_secret():
    """The mean of a share's leading byte, 4,000 draws: outside 127.5 +- 6 once in ten million runs."""
    for secret in (bytes(32), b"\xff" * 32):
        generator = random.Random(7)
        drawn = [split(secret, [1, 2, 3], 2, generator.randbytes)[0][1] for _ in range(4000)]
        assert abs(sum(drawn) / 4000 - 127.5) < 6


def test_a_wrong_share_is_noticed_where_it_leaves_the_secrets():
    with pytest.raises(TacitError, match="no 32-byte secret"):
        joined([1], [(PRIME - 1).to_bytes(33, "big")])


@pytest.mark.parametrize(("secret", "threshold"), [(b"short", 1), (bytes(32), 0), (bytes(32), 3)])
def test_impossible_sharings_are_refused(secret, threshold):
    with pytest.raises(TacitError):
        split(secret, [1, 2], threshold, secrets.token_bytes)


def test_a_letter_opens_with_its_key_for_its_reader_and_unchanged():
    pair = SharePair(b"s" * 33, b"k" * 33)
    letter = sealed(b"k" * 32, pair, b"1 to 2")
    assert len(letter) == SEALED_BYTES
    assert opened(b"k" * 32, letter, b"1 to 2") == pair
    assert opened(b"l" * 32, letter, b"1 to 2") is None
    assert opened(b"k" * 32, letter, b"2 to 1") is None
    assert opened(b"k" * 32, letter[:-1] + bytes([letter[-1] ^ 1]), b"1 to 2") is None
