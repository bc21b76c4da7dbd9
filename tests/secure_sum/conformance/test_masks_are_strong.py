"""Weak seeds and the linearity of masks: how other implementations' masks were undone."""

import numpy as np

from tacit.transport.secure_sum.masks import add_masks, stream


def expanded(seed, length=256):
    total = np.zeros(length, dtype="<u4")
    add_masks(total, [(seed, 1)])
    return total


def test_seeds_that_fold_to_the_same_32_bits_give_other_masks():
    """Folding a seed by XOR makes these equal; all 256 bits must count."""
    seed = bytes(range(32))
    twin = bytearray(seed)
    twin[0] ^= 0x40
    twin[4] ^= 0x40
    fold = [int(np.bitwise_xor.reduce(np.frombuffer(s, dtype="<u4"))) for s in (seed, bytes(twin))]
    assert fold[0] == fold[1]
    assert (expanded(seed) == expanded(bytes(twin))).mean() < 0.02


def test_every_bit_of_a_seed_matters():
    plain = expanded(bytes(32), 8)
    for bit in range(256):
        flipped = bytearray(32)
        flipped[bit // 8] ^= 1 << (bit % 8)
        assert not np.array_equal(expanded(bytes(flipped), 8), plain)


def linear_complexity(bits):
    """Berlekamp and Massey: the shortest linear recurrence that makes these bits."""
    current, previous, length, since = 1, 1, 0, 1
    reversed_bits = 0
    for place, bit in enumerate(bits):
        reversed_bits = (reversed_bits << 1) | int(bit)
        if (current & reversed_bits).bit_count() & 1:
            if 2 * length <= place:
                current, previous, length = current ^ (previous << since), current, place + 1 - length
                since = 0
            else:
                current ^= previous << since
        since += 1
    return length


def test_low_bits_of_summed_masks_obey_no_recurrence():
    """Sums of linear generators stay linear (Mersenne Twister: 19,937). Here all 6,000 bits look random."""
    total = np.zeros(6000, dtype="<u4")
    add_masks(total, [(bytes([n]) * 32, 1) for n in range(7)])
    assert abs(linear_complexity(total & 1) - 3000) <= 12


def test_the_recurrence_check_finds_one_where_there_is_one():
    state, bits = 0b1011_0110_0101_1101, []
    for _ in range(6000):
        bits.append(state & 1)
        new = (state ^ (state >> 2) ^ (state >> 3) ^ (state >> 5)) & 1
        state = (state >> 1) | (new << 15)
    assert linear_complexity(bits) <= 16


def test_streams_of_different_seeds_do_not_overlap():
    """Counter mode from the same start: equal blocks would show a shared key stream."""
    blocks = [stream(bytes([n]) * 32).update(bytes(16 * 64)) for n in range(40)]
    pieces = [block[at : at + 16] for block in blocks for at in range(0, len(block), 16)]
    assert len(set(pieces)) == len(pieces)
