"""Fillers: the complement, without replacement, uniform, from the client's own key."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.kernels.sampling import draw_fillers


def clients(sizes, catalogue, seed=0):
    rng = np.random.default_rng(seed)
    items = [np.sort(rng.choice(catalogue, size, replace=False)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return (
        offsets,
        np.concatenate(items).astype(np.int32),
        rng.integers(0, 2**63, len(sizes)).astype(np.uint64),
    )


def drawn(segment, client):
    return segment.ids[segment.starts[client] : segment.starts[client] + segment.lengths[client]]


@settings(max_examples=60, deadline=None)
@given(
    catalogue=st.integers(1, 60),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    rho=st.floats(0, 4),
    seed=st.integers(0, 2**20),
)
def test_draws_are_distinct_unrated_and_as_many_as_the_paper_says(catalogue, shares, rho, seed):
    sizes = [round(share * catalogue) for share in shares]
    offsets, items, keys = clients(sizes, catalogue, seed)
    segment = draw_fillers(offsets, items, keys, rho, catalogue)
    assert int(segment.lengths.sum()) == len(segment.ids)
    for client, size in enumerate(sizes):
        ids = drawn(segment, client)
        assert len(ids) == min(round(rho * size), catalogue - size)
        assert len(set(ids.tolist())) == len(ids)
        assert not set(ids.tolist()) & set(items[offsets[client] : offsets[client + 1]].tolist())
        assert all(0 <= item < catalogue for item in ids)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=2, max_size=10), seed=st.integers(0, 2**20), data=st.data()
)
def test_a_clients_draw_does_not_depend_on_its_company(sizes, seed, data):
    catalogue = 50
    offsets, items, keys = clients(sizes, catalogue, seed)
    together = draw_fillers(offsets, items, keys, 1.0, catalogue)
    cut = data.draw(st.integers(1, len(sizes) - 1))
    parts = [slice(0, cut), slice(cut, len(sizes))]
    for part in parts:
        low, high = offsets[part.start], offsets[part.stop]
        alone = draw_fillers(
            offsets[part.start : part.stop + 1] - low, items[low:high], keys[part], 1.0, catalogue
        )
        for client in range(part.start, part.stop):
            assert drawn(together, client).tolist() == drawn(alone, client - part.start).tolist()


@pytest.mark.parametrize(
    ("own", "rho"), [(3, 1.0), (3, 2.0), (6, 0.5), (2, 4.0)], ids=["sparse", "mid", "dense", "most"]
)
def test_every_set_is_equally_likely(own, rho):
    """Chi-square over all sets of fillers at a false-alarm rate of 1e-6 (a fixed seed: it cannot flicker)."""
    catalogue, runs = (20 if rho == 1.0 else 11), 40_000
    mine = np.arange(0, 2 * own, 2)[:own].astype(np.int32) % catalogue
    mine = np.sort(mine)
    offsets = np.arange(runs + 1, dtype=np.int64) * own
    keys = np.random.default_rng(5).integers(0, 2**63, runs).astype(np.uint64)
    segment = draw_fillers(offsets, np.tile(mine, runs), keys, rho, catalogue)
    sets = np.sort(segment.ids.reshape(runs, -1), axis=1)
    _, counts = np.unique(sets, axis=0, return_counts=True)
    possible = comb(catalogue - own, sets.shape[1])
    counts = np.concatenate([counts, np.zeros(possible - len(counts))])
    assert len(counts) == possible
    assert stats.chisquare(counts).pvalue > 1e-6


def stream(key):
    """Steele, Lea and Flood's splitmix64 (OOPSLA 2014), one whole number after the other."""
    while True:
        key = (key + 0x9E3779B97F4A7C15) % 2**64
        word = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        yield word ^ word >> 31


def below(bound, words):
    """Lemire's unbiased numbers (TOMACS 2019) out of the upper halves of the words."""
    while True:
        product = (next(words) >> 32) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


def slow_draw(own, wanted, key, catalogue):
    words, taken = stream(key), set(own)
    if 2 * (len(own) + wanted) <= catalogue:
        ids = []
        while len(ids) < wanted:
            item = below(catalogue, words)
            if item not in taken:
                ids.append(item)
            taken.add(item)
        return ids
    free, ids = [item for item in range(catalogue) if item not in taken], []
    for place, item in enumerate(free):
        if len(ids) < wanted and below(len(free) - place, words) < wanted - len(ids):
            ids.append(item)
    return ids


@pytest.mark.parametrize("rho", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("catalogue", [40, 1000])
def test_draws_are_those_of_the_slow_loop(rho, catalogue):
    """A run must be repeatable by a later version: the numbers drawn from a key are part of the method."""
    offsets, items, keys = clients([0, 1, 3, 10, 19, 30, 39, 40], catalogue, seed=3)
    segment = draw_fillers(offsets, items, keys, rho, catalogue)
    for client, key in enumerate(keys):
        own = items[offsets[client] : offsets[client + 1]].tolist()
        wanted = int(segment.lengths[client])
        assert drawn(segment, client).tolist() == slow_draw(own, wanted, int(key), catalogue)


def test_other_keys_give_other_draws():
    offsets, items, keys = clients([10], 1000)
    first = draw_fillers(offsets, items, keys, 2.0, 1000).ids
    second = draw_fillers(offsets, items, keys + np.uint64(1), 2.0, 1000).ids
    assert set(first.tolist()) != set(second.tolist())


def test_a_client_with_everything_gets_nothing():
    offsets, items, keys = clients([5], 5)
    assert len(draw_fillers(offsets, items, keys, 3.0, 5).ids) == 0


@pytest.mark.parametrize(
    ("rho", "catalogue", "keys", "says"),
    [(-1.0, 5, 1, "rho is -1"), (1.0, 2, 1, "outside the catalogue"), (1.0, 5, 2, "one key per client")],
)
def test_bad_input_is_refused_in_one_line(rho, catalogue, keys, says):
    with pytest.raises(TacitError, match=says):
        draw_fillers(np.array([0, 2]), np.array([1, 3], np.int32), np.ones(keys, np.uint64), rho, catalogue)
