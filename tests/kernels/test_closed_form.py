"""User vectors equal the normal equations; rated rows and x x^T add up to the whole gradient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.kernels.closed_form import closed_form, rated_coefficients, shared_gram
from tacit.testing.tiny import tiny_federation


def problem(seed, dim, users=9, items=14):
    federation = tiny_federation(users, items, seed, silent=1)
    table = np.random.default_rng(seed).normal(0, 0.5, (items, dim)).astype(np.float32)
    return federation, table


def dense(federation, table, alpha, reg):
    """Vectors and whole gradients by the formulas, one person after the other."""
    V, vectors, gradients = table.astype(np.float64), [], []
    for a, b in zip(federation.offsets, federation.offsets[1:], strict=False):
        p = np.zeros(len(V))
        p[federation.items[a:b]] = 1
        C = np.diag(1 + alpha * p)
        x = np.linalg.solve(V.T @ C @ V + reg * np.eye(V.shape[1]), V.T @ C @ p)
        vectors.append(x)
        gradients.append(-2 * np.outer(C @ (p - V @ x), x))
    return np.array(vectors), np.array(gradients)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    dim=st.integers(1, 7),
    alpha=st.sampled_from([0.0, 1.0, 10.0]),
    reg=st.sampled_from([1e-2, 1.0, 30.0]),
)
def test_vectors_norms_and_gradients_equal_the_formulas(seed, dim, alpha, reg):
    federation, table = problem(seed, dim)
    offsets, items = federation.offsets, federation.items
    solved = closed_form(offsets, items, table, shared_gram(table), alpha=alpha, reg=reg, norms=True)
    vectors, gradients = dense(federation, table, alpha, reg)
    np.testing.assert_allclose(solved.factors, vectors, rtol=2e-4, atol=2e-5)
    norms = 2 * np.sqrt(solved.squares) * np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(norms, np.linalg.norm(gradients, axis=(1, 2)), rtol=1e-3, atol=1e-4)
    coef = rated_coefficients(offsets, items, table, solved.factors, alpha=alpha)
    people = np.repeat(np.arange(len(vectors)), np.diff(offsets))
    found = 2 * np.einsum("if,uf,ug->uig", table, solved.factors, solved.factors)
    np.add.at(found, (people, items), coef[:, np.newaxis] * solved.factors[people])
    np.testing.assert_allclose(found, gradients, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(("alpha", "reg"), [(-1.0, 1.0), (0.0, 0.0)])
def test_weights_and_ridge_are_checked(alpha, reg):
    federation, table = problem(0, 2)
    with pytest.raises(TacitError, match="alpha"):
        closed_form(federation.offsets, federation.items, table, shared_gram(table), alpha=alpha, reg=reg)
