"""Squares in blocks against NumPy in double precision."""

import numpy as np
import pytest

from tacit.kernels.compiled import kernel, span
from tacit.kernels.squares import blocks, complete, gram, repeated, square_matrix, square_room
from tacit.kernels.vectors import padded

# The last two are loops instead of unrolled code, and take several passes over the rows.
SHAPES = [(np.float32, 1), (np.float32, 6), (np.float32, 20), (np.float64, 5), (np.float64, 20)]
SHAPES += [(np.float32, 34), (np.float64, 33)]
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-12}


@kernel
def summed(shape, table, ids, square):
    gram(shape, table, ids, 1, len(ids) - 1, square)


@kernel
def completed(shape, square, scale, keep):
    complete(shape, square, scale, keep)


@kernel
def iterated(shape, square, push, steps, out):
    repeated(shape, square, push, steps, out)


def in_blocks(matrix):
    """The inverse of ``square_matrix`` in plain loops; what no block asks for is zero."""
    square = square_room(len(matrix), matrix.dtype)
    _, wide = blocks(len(matrix), matrix.itemsize)
    tall = square.shape[1] // 4
    for row in range(len(matrix)):
        for column in range(len(matrix)):
            block = (row // tall) * wide + column // 4
            square[block, (row % tall) * 4 + column % 4] = matrix[row, column]
    return square


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
def test_blocks_put_together_are_the_matrix(dtype, dim):
    matrix = np.random.default_rng(0).normal(size=(dim, dim)).astype(dtype)
    assert (square_matrix(in_blocks(matrix), dim) == matrix).all()


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
def test_sums_of_squares_are_added_on(dtype, dim):
    rng = np.random.default_rng(1)
    table = padded(rng.normal(size=(50, dim)).astype(dtype))
    ids = rng.permutation(50)[:38].astype(np.int32)
    square = square_room(dim, dtype)
    square += 1
    summed(span(dim), table, ids, square)
    rows = table[ids[1:], :dim].astype(np.float64)
    below, tolerance = np.tril_indices(dim), TOLERANCE[dtype]
    found, meant = square_matrix(square, dim)[below], (1 + rows.T @ rows)[below]
    np.testing.assert_allclose(found, meant, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
def test_the_upper_triangle_mirrors_the_lower_one(dtype, dim):
    matrix = np.random.default_rng(2).normal(size=(dim, dim)).astype(dtype)
    tall = 16 // np.dtype(dtype).itemsize
    # What lies above the diagonal may be anything where its block does not touch the lower triangle.
    columns, rows = np.meshgrid(np.arange(dim), np.arange(dim))
    square = in_blocks(
        np.where(columns // 4 * 4 < (rows // tall + 1) * tall, (matrix + matrix.T) / 2, np.nan)
    )
    completed(span(dim), square, dtype(-2), dtype(0.5))
    meant = -(matrix + matrix.T).astype(np.float64) + 0.5 * np.eye(dim)
    found = square_matrix(square, dim)
    np.testing.assert_allclose(found, meant, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    off = ~np.eye(dim, dtype=bool)
    assert (found[off] == found.T[off]).all()


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_repeated_steps_are_repeated_products(dtype, dim, steps):
    rng = np.random.default_rng(3)
    half = rng.normal(0, 0.4 / np.sqrt(dim), (dim, dim)).astype(dtype)
    matrix, push = half + half.T, padded(rng.normal(size=(1, dim)).astype(dtype))[0]
    out = np.full_like(push, np.nan)
    iterated(span(dim), in_blocks(matrix), push, steps, out)
    meant = push[:dim].astype(np.float64)
    for _ in range(steps):
        meant = matrix.astype(np.float64) @ meant + push[:dim]
    np.testing.assert_allclose(out[:dim], meant, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert (out[dim:] == 0).all()
