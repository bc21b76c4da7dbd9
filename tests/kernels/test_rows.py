"""Totals of rows: against the torch twin, on the grid bit for bit, and refusing what lies outside."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.kernels import reference
from tacit.kernels.rows import (
    add_rows,
    add_rows_grid,
    add_values,
    add_values_grid,
    finish,
    materialise,
    materialise_grid,
)
from tacit.kernels.vectors import padded
from tacit.types import RankOne, Rows

# Each shape is compiled anew: the rest of the product is left to the long suite.
SHAPES = [(np.float32, dim) for dim in (1, 16, 20, 33, 130)] + [(np.float64, 5), (np.float64, 20)]
LONG = [(np.float32, 5), (np.float32, 128)] + [(np.float64, dim) for dim in (1, 16, 33, 128, 130)]
SHAPES += [pytest.param(*shape, marks=pytest.mark.slow) for shape in LONG]
TOLERANCE = {np.float32: 3e-5, np.float64: 1e-12}
HEIGHT = 23


def rows_of(dim, dtype, seed=0, clients=6, reg=0.3):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 20, clients)
    ids = np.concatenate([*(rng.choice(HEIGHT, n, replace=False) for n in lengths), []]).astype(np.int32)
    table = rng.normal(size=(HEIGHT, dim)).astype(dtype)
    known = RankOne(
        rng.normal(size=len(ids)).astype(dtype), rng.normal(size=(clients, dim)).astype(dtype), table, reg
    )
    return Rows(np.cumsum(lengths) - lengths, lengths, ids, known)


def part(rows, chosen):
    known = rows.values
    values = RankOne(known.coef, known.factors[chosen], known.table, known.reg)
    return Rows(rows.starts[chosen], rows.lengths[chosen], rows.ids, values)


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
@pytest.mark.parametrize("pad", [padded, np.copy], ids=["padded", "bare"])
def test_sums_and_counts_are_those_of_equation_4(dtype, dim, pad):
    rows = rows_of(dim, dtype)
    total, counts = pad(np.zeros((HEIGHT, dim), dtype)), np.zeros(HEIGHT, np.int64)
    add_rows(total, counts, rows)
    finish(total, counts, rows.values.table, rows.values.reg)
    meant, people = reference.total(rows, reference.materialise(rows), HEIGHT)
    np.testing.assert_allclose(total[:, :dim], meant.numpy(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert counts.tolist() == people.tolist()
    assert (total[:, dim:] == 0).all()


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
def test_the_grid_is_rounded_before_the_sum(dtype, dim):
    rows = rows_of(dim, dtype, seed=1)
    meant = reference.on_grid(_double(rows), 24)
    assert materialise_grid(rows, 24).tolist() == meant.tolist()
    total, counts = np.zeros((HEIGHT, dim), np.int64), np.zeros(HEIGHT, np.int64)
    add_rows_grid(total, counts, rows, bits=24, sign=-1)
    sums, people = reference.total(rows, meant, HEIGHT, sign=-1)
    assert total.tolist() == sums.tolist()
    assert counts.tolist() == people.tolist()


def _double(rows):
    """The rows' numbers computed in double precision throughout, as the grid asks."""
    known = rows.values
    wide = RankOne(
        known.coef.astype(np.float64),
        known.factors.astype(np.float64),
        known.table.astype(np.float64),
        known.reg,
    )
    return reference.materialise(Rows(rows.starts, rows.lengths, rows.ids, wide))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 20, 130])
def test_materialised_rows_are_equation_3(dtype, dim):
    rows = rows_of(dim, dtype, seed=2)
    values = materialise(rows)
    assert values.dtype == dtype
    np.testing.assert_allclose(
        values, reference.materialise(rows).numpy(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), data=st.data())
def test_on_the_grid_neither_order_nor_form_matters(seed, data):
    rows = rows_of(5, np.float32, seed=seed)
    whole, counts = np.zeros((HEIGHT, 5), np.int64), np.zeros(HEIGHT, np.int64)
    add_rows_grid(whole, counts, rows, bits=32)
    order = data.draw(st.permutations(range(6)))
    cut = data.draw(st.integers(0, 6))
    total, seen = np.zeros_like(whole), np.zeros_like(counts)
    add_rows_grid(total, seen, part(rows, np.array(order[:cut], int)), bits=32)
    rest = part(rows, np.array(order[cut:], int))
    add_values_grid(total, seen, Rows(rest.starts, rest.lengths, rest.ids, materialise_grid(rest, 32)))
    assert total.tobytes() == whole.tobytes()
    assert seen.tolist() == counts.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chunks_in_order_change_no_bit_of_a_float_total(dtype):
    rows = rows_of(20, dtype, seed=4, clients=12)
    results = []
    for edges in ([0, 12], range(13), [0, 5, 6, 12]):
        total, counts = padded(np.zeros((HEIGHT, 20), dtype)), np.zeros(HEIGHT, np.int64)
        for low, high in pairwise(edges):
            add_rows(total, counts, part(rows, np.arange(low, high)))
        results.append(total.tobytes())
    assert results[0] == results[1] == results[2]


def test_written_values_may_join_a_total_that_is_finished_later():
    rows = rows_of(5, np.float64, seed=5)
    known = rows.values
    written = Rows(rows.starts, rows.lengths, rows.ids, materialise(rows))
    total, counts = np.zeros((HEIGHT, 5)), np.zeros(HEIGHT, np.int64)
    add_rows(total, counts, rows)
    add_values(total, counts, written, sign=-1, table=known.table, reg=known.reg)
    finish(total, counts, known.table, known.reg)
    assert counts.tolist() == [0] * HEIGHT
    np.testing.assert_allclose(total, 0, atol=1e-13)


def test_counts_stand_for_people():
    rows = Rows(
        np.array([0]), np.array([2]), np.array([4, 1], np.int32), np.ones((2, 3)), np.array([7, -2], np.int32)
    )
    total, counts = np.zeros((HEIGHT, 3)), np.zeros(HEIGHT, np.int64)
    add_values(total, counts, rows, sign=-1)
    assert (counts[4], counts[1], counts.sum()) == (-7, 2, -5)
    assert (total[4] == -1).all()


@pytest.mark.parametrize("dim", [5, 130])
def test_what_a_grid_cannot_hold_stays_at_its_bound(dim):
    factors = np.full((1, dim), 1e30)
    factors[0, 0], factors[0, 1], factors[0, 2] = -1e30, np.nan, 0.5
    rows = Rows(
        np.array([0]),
        np.array([1]),
        np.array([0], np.int32),
        RankOne(np.ones(1), factors, np.zeros((1, dim)), 0.0),
    )
    values = materialise_grid(rows, 4)[0]
    assert values[[0, 1, 2, 3]].tolist() == [-(2**62), 2**62, 8, 2**62]


@pytest.mark.parametrize("bad", [-1, HEIGHT])
def test_ids_outside_the_table_are_refused(bad):
    rows = rows_of(5, np.float64)
    rows.ids[3] = bad
    counts = np.zeros(HEIGHT, np.int64)
    for add in (
        lambda: add_rows(np.zeros((HEIGHT, 5)), counts, rows),
        lambda: add_rows_grid(np.zeros((HEIGHT, 5), np.int64), counts, rows, bits=8),
        lambda: materialise(rows),
        lambda: add_values(
            np.zeros((HEIGHT, 5)),
            counts,
            Rows(rows.starts, rows.lengths, rows.ids, np.zeros((len(rows.ids), 5))),
        ),
    ):
        with pytest.raises(TacitError, match=f"a row outside the table of {HEIGHT}"):
            add()
    assert not counts.any()


def test_mismatched_rows_are_refused():
    rows = rows_of(5, np.float64)
    counts = np.zeros(HEIGHT, np.int64)
    with pytest.raises(TacitError, match="one type"):
        add_rows(np.zeros((HEIGHT, 5), np.float32), counts, rows)
    with pytest.raises(TacitError, match="reach outside"):
        add_rows(np.zeros((HEIGHT, 5)), counts, Rows(rows.starts, rows.lengths + 99, rows.ids, rows.values))
    with pytest.raises(TacitError, match="one of each per item"):
        add_rows(np.zeros((HEIGHT, 5)), counts[:-1], rows)
    with pytest.raises(TacitError, match="one person each"):
        add_rows(
            np.zeros((HEIGHT, 5)),
            counts,
            Rows(rows.starts, rows.lengths, rows.ids, rows.values, np.ones(3, np.int32)),
        )
    with pytest.raises(TacitError, match="int64"):
        add_rows_grid(np.zeros((HEIGHT, 5)), counts, rows, bits=8)
    with pytest.raises(TacitError, match="0 to 52"):
        add_rows_grid(np.zeros((HEIGHT, 5), np.int64), counts, rows, bits=60)


def test_the_twin_rounds_halves_to_even():
    assert reference.on_grid(torch.tensor([0.5, 1.5, -0.5, -1.5]), 0).tolist() == [0, 2, 0, -2]
