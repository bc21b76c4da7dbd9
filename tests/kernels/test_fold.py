"""Denoisers: the slow sum of Equation 9, and FedRec++ leaving exactly what FedRec without fillers sends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.kernels import reference
from tacit.kernels.factors import Fill, client_step
from tacit.kernels.fold import fold
from tacit.kernels.rows import (
    add_rows,
    add_rows_grid,
    add_values,
    add_values_grid,
    finish,
    materialise,
    materialise_grid,
)
from tacit.types import RankOne, Rows, Segment

CATALOGUE, DIM, REG = 70, 5, 0.3


def work(cohort, chosen, fillers):
    """The rows of some clients of a cohort, and how many of each client's rows are rated."""
    lengths = np.diff(cohort.offsets)[chosen]
    places = [np.arange(cohort.offsets[client], cohort.offsets[client + 1]) for client in chosen]
    held = np.concatenate([*places, []]).astype(np.int64)
    segment = None
    if fillers:
        segment = Segment(cohort.fillers.starts[chosen], cohort.fillers.lengths[chosen], cohort.fillers.ids)
    factors = cohort.factors[chosen]
    step = client_step(
        np.concatenate([[0], np.cumsum(lengths)]), cohort.items[held], cohort.values[held], segment, factors,
        cohort.table, DIM, rate=0.3, reg=REG, fill=Fill.PREDICTED if fillers else Fill.NONE, local_steps=3,
    )  # fmt: skip
    known = RankOne(step.coef, factors, cohort.table, REG)
    return Rows(step.starts, step.lengths, step.ids, known), step.rated_lengths


def exchange(cohort, denoisers, groups):
    """Uploads of the ordinary clients, their noise, the denoisers' own rows, and who sends to whom."""
    ordinary = np.setdiff1d(np.arange(len(cohort.factors)), denoisers)
    uploads, rated = work(cohort, ordinary, fillers=True)
    noise = Rows(uploads.starts + rated, uploads.lengths - rated, uploads.ids, uploads.values)
    own, _ = work(cohort, denoisers, fillers=False)
    to = np.array(groups)[: len(ordinary)] % len(denoisers)
    members = np.argsort(to, kind="stable")
    offsets = np.searchsorted(to[members], np.arange(len(denoisers) + 1))
    return uploads, noise, own, offsets, members


def as_dense(rows, bits=None):
    values = materialise(rows) if bits is None else materialise_grid(rows, bits)
    return Rows(rows.starts, rows.lengths, rows.ids, values)


scenario = {
    "seed": st.integers(0, 10_000),
    "rho": st.floats(0, 3),
    "denoisers": st.lists(st.integers(0, 8), min_size=1, max_size=8, unique=True).map(sorted),
    "groups": st.lists(st.integers(0, 7), min_size=8, max_size=8),
}


@settings(max_examples=60, deadline=None)
@given(**scenario, dense=st.booleans())
def test_fedrec_plus_plus_is_lossless_bit_for_bit_on_the_grid(tiny, seed, rho, denoisers, groups, dense):
    cohort = tiny(dtype=np.float32, rho=rho, seed=seed)
    uploads, noise, own, offsets, members = exchange(cohort, np.array(denoisers), groups)
    if dense:
        noise = as_dense(noise, 32)
    folded = fold(noise, own, offsets, members, catalogue=CATALOGUE, bits=32)
    total, counts = np.zeros((CATALOGUE, DIM), np.int64), np.zeros(CATALOGUE, np.int64)
    add_rows_grid(total, counts, uploads, bits=32)
    add_values_grid(total, counts, folded, sign=-1)

    plain, _ = work(cohort, np.arange(9), fillers=False)
    meant, people = np.zeros_like(total), np.zeros_like(counts)
    add_rows_grid(meant, people, plain, bits=32)
    assert total.tobytes() == meant.tobytes()
    assert counts.tolist() == people.tolist()


@settings(max_examples=40, deadline=None)
@given(**scenario)
def test_fedrec_plus_plus_is_lossless_to_rounding_in_double_precision(tiny, seed, rho, denoisers, groups):
    cohort = tiny(rho=rho, seed=seed)
    uploads, noise, own, offsets, members = exchange(cohort, np.array(denoisers), groups)
    folded = fold(noise, own, offsets, members, catalogue=CATALOGUE)
    total, counts = np.zeros((CATALOGUE, DIM)), np.zeros(CATALOGUE, np.int64)
    add_rows(total, counts, uploads)
    add_values(total, counts, folded, sign=-1, table=cohort.table, reg=REG)
    finish(total, counts, cohort.table, REG)

    plain, _ = work(cohort, np.arange(9), fillers=False)
    meant, people = np.zeros_like(total), np.zeros_like(counts)
    add_rows(meant, people, plain)
    finish(meant, people, cohort.table, REG)
    assert counts.tolist() == people.tolist()
    np.testing.assert_allclose(total, meant, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dense_noise", [False, True])
@pytest.mark.parametrize("dense_own", [False, True])
def test_each_message_is_the_sum_of_equation_9(tiny, dense_noise, dense_own):
    cohort = tiny(seed=3, rho=2.0)
    denoisers = np.array([1, 4, 7])
    _, noise, own, offsets, members = exchange(cohort, denoisers, [0, 1, 1, 0, 1, 0, 0, 0])
    sent = fold(
        as_dense(noise) if dense_noise else noise, as_dense(own) if dense_own else own, offsets, members,
        catalogue=CATALOGUE,
    )  # fmt: skip
    noise_values, own_values = reference.materialise(noise).numpy(), reference.materialise(own).numpy()
    for group in range(3):
        sums, counts = {}, {}
        for client in members[offsets[group] : offsets[group + 1]]:
            for place in range(noise.starts[client], noise.starts[client] + noise.lengths[client]):
                item = int(noise.ids[place])
                sums[item] = sums.get(item, 0) + noise_values[place]
                counts[item] = counts.get(item, 0) + 1
        for place in range(own.starts[group], own.starts[group] + own.lengths[group]):
            item = int(own.ids[place])
            sums[item] = sums.get(item, 0) - own_values[place]
            counts[item] = counts.get(item, 0) - 1
        held = slice(sent.starts[group], sent.starts[group] + sent.lengths[group])
        assert sent.ids[held].tolist() == sorted(sums)
        assert sent.counts[held].tolist() == [counts[item] for item in sorted(sums)]
        for item, value in zip(sent.ids[held], sent.values[held], strict=True):
            np.testing.assert_allclose(value, sums[item], rtol=1e-12, atol=1e-12)


def test_clients_that_sent_to_nobody_are_not_counted(tiny):
    cohort = tiny(seed=5)
    _, noise, own, _, _ = exchange(cohort, np.array([0]), [0] * 8)
    sent = fold(noise, own, np.array([0, 2]), np.array([5, 2]), catalogue=CATALOGUE)
    assert int(sent.counts.sum()) == int(noise.lengths[[5, 2]].sum() - own.lengths.sum())


def test_groups_must_fit(tiny):
    cohort = tiny(seed=5)
    _, noise, own, offsets, members = exchange(cohort, np.array([0]), [0] * 8)
    with pytest.raises(TacitError, match="one group of senders per denoiser"):
        fold(noise, own, np.append(offsets, offsets[-1]), members, catalogue=CATALOGUE)
    with pytest.raises(TacitError, match="one group of senders per denoiser"):
        fold(noise, own, offsets, members + 1, catalogue=CATALOGUE)
    with pytest.raises(TacitError, match="sent its noise twice"):
        fold(noise, own, offsets, np.full_like(members, 2), catalogue=CATALOGUE)


def test_blocks_change_nothing(monkeypatch):
    """In double precision, rows are widened some clients at a time: the sums keep their bits."""
    from tacit.kernels import fold as room

    generator = np.random.default_rng(3)
    lengths = generator.integers(0, 6, 20)
    starts = np.cumsum(lengths) - lengths
    ids = np.concatenate([generator.permutation(9)[:n] for n in lengths]).astype(np.int32)
    table = generator.standard_normal((9, 3)).astype("f4")
    coef = generator.standard_normal(len(ids)).astype("f4")
    factors = generator.standard_normal((20, 3)).astype("f4")
    noise = Rows(starts, lengths, ids, RankOne(coef, factors, table, 0.1))
    own = Rows(np.zeros(2, "i8"), np.zeros(2, "i8"), ids[:0], RankOne(coef[:0], factors[:2], table, 0.1))
    groups = np.array([0, 11, 20]), np.arange(20)
    whole = room.fold(noise, own, *groups, catalogue=9, precise=True)
    monkeypatch.setattr(room, "BLOCK", 3)
    blocked = room.fold(noise, own, *groups, catalogue=9, precise=True)
    assert whole.values.dtype == np.float64
    assert np.array_equal(whole.values, blocked.values)
    assert np.array_equal(whole.counts, blocked.counts)
