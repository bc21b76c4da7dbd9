"""Models of one person on item features: slopes by differences, fits by their optimum, features by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.data.interactions import Features
from tacit.data.tag_features import tag_features
from tacit.errors import TacitError
from tacit.models.private import (
    FactorisationMachine,
    Fitting,
    Linear,
    Lookup,
    Network,
    fitted,
    predicted,
    side_by_side,
)
from tacit.models.side_information import ItemTable, item_table

FORMS = [Linear(), FactorisationMachine(3), Network(5)]


def some(seed=0, clients=3, entries=7, width=4):
    draw = np.random.default_rng(seed)
    return draw.normal(0, 1, (clients, entries, width)), draw.uniform(1, 5, (clients, entries))


def parameters_of(form, clients=3, width=4, seed=1):
    started = form.started(width, np.full(clients, 3.0), np.arange(clients, dtype=np.uint64))
    draw = np.random.default_rng(seed)
    return {name: array + draw.normal(0, 0.3, array.shape) for name, array in started.items()}


@pytest.mark.parametrize("form", FORMS)
def test_slopes_are_those_of_half_the_squared_error(form):
    inputs, ratings = some()
    parameters = parameters_of(form)
    slopes = form.gradient(parameters, inputs, form.values(parameters, inputs) - ratings)

    def loss(changed):
        return 0.5 * np.square(form.values(changed, inputs) - ratings).sum(axis=1)

    step = 1e-6
    for name, array in parameters.items():
        places = np.ndindex(array.shape[1:])
        for place in list(places)[:: max(1, array[0].size // 5)]:
            up, down = ({**parameters, name: array.copy()} for _ in range(2))
            up[name][(slice(None), *place)] += step
            down[name][(slice(None), *place)] -= step
            found = (loss(up) - loss(down)) / (2 * step)
            np.testing.assert_allclose(slopes[name][(slice(None), *place)], found, rtol=1e-5, atol=1e-6)


def test_a_factorisation_machine_is_its_double_sum():
    inputs, _ = some(2)
    parameters = parameters_of(FactorisationMachine(3))
    for client in range(3):
        for entry in range(7):
            x, v = inputs[client, entry], parameters["pairs"][client]
            pairs = sum(v[f] @ v[g] * x[f] * x[g] for f in range(4) for g in range(f + 1, 4))
            expected = parameters["bias"][client] + parameters["linear"][client] @ x + pairs
            told = FactorisationMachine(3).values(parameters, inputs)[client, entry]
            assert told == pytest.approx(expected)


@pytest.mark.parametrize("form", [FactorisationMachine(3), Network(5)])
def test_fitting_lowers_the_penalised_error(form):
    inputs, ratings = some(3, entries=30)
    start = form.started(4, ratings.mean(axis=1), np.arange(3, dtype=np.uint64))
    found = form.fitted(start, inputs, ratings, np.ones((3, 30)), Fitting(0.5, 200))

    def cost(parameters):
        size = sum(np.square(a).sum() for name, a in parameters.items() if not name.endswith("bias"))
        return np.square(form.values(parameters, inputs) - ratings).sum() + 0.5 * size

    assert cost(found) < 0.95 * cost(start)


def test_a_heavy_penalty_leaves_the_mean():
    inputs, ratings = some(4)
    for form in FORMS:
        start = form.started(4, ratings.mean(axis=1), np.arange(3, dtype=np.uint64))
        found = form.fitted(start, inputs, ratings, np.ones((3, 7)), Fitting(1e6, 200))
        told = form.values(found, inputs)
        np.testing.assert_allclose(told, np.repeat(ratings.mean(axis=1)[:, None], 7, axis=1), atol=0.05)


def test_a_client_is_fitted_alike_alone_and_among_others():
    draw = np.random.default_rng(5)
    table = ItemTable(draw.normal(0, 1, (20, 4)).astype("f4"))
    lengths = [3, 0, 9, 1, 5]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items = draw.integers(0, 20, offsets[-1]).astype("i4")
    ratings = draw.integers(1, 6, offsets[-1]).astype("f4")
    keys = np.arange(5, dtype=np.uint64)
    for form in FORMS:
        together = fitted(form, Fitting(2.0, 30), offsets, Lookup(table, items), ratings, keys)
        told = predicted(form, together, offsets, Lookup(table, items))
        for client in range(5):
            mine = slice(offsets[client], offsets[client + 1])
            short = np.array([0, lengths[client]])
            own = Lookup(table, items[mine])
            alone = fitted(form, Fitting(2.0, 30), short, own, ratings[mine], keys[client : client + 1])
            np.testing.assert_allclose(predicted(form, alone, short, own), told[mine], atol=1e-4)


def test_groups_hold_everybody_once_and_little_padding():
    lengths = np.random.default_rng(6).integers(0, 200, 60)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    groups = list(side_by_side(offsets, 8))
    members = np.concatenate([group.clients for group in groups])
    assert sorted(members.tolist()) == np.flatnonzero(lengths).tolist()
    assert sum(group.at.size for group in groups) < 1.25 * lengths.sum()


def test_years_become_periods_and_blocks_share_a_scale():
    features = Features(
        flags={"genres": np.array([[1, 0], [0, 1], [1, 1], [0, 0]], "u1")},
        numbers={
            "year": np.array([1950, 1960, 1990, np.nan], "f4"),
            "tags/0": np.array([4, 0, 0, -4], "f4"),
            "tags/1": np.array([1, 0, 0, -1], "f4"),
        },
        labels={"genres": ("Drama", "War")},
    )
    table = item_table(features, periods=3)
    assert table.names[:2] == ("genres=Drama", "genres=War")
    periods = table.rows[:, 2:5]
    assert periods.sum(axis=1).tolist() == [1, 1, 1, 0]
    tags = table.rows[:, 5:]
    assert np.square(tags).mean() == pytest.approx(1.0, rel=1e-5)
    assert tags[0, 0] == pytest.approx(4 * tags[0, 1], rel=1e-5)


def test_tags_span_the_leading_directions_of_tf_idf():
    """Against the formula written out: ``ln((1 + n) / (1 + df)) + 1``, rows of length one, SVD."""
    draw = np.random.default_rng(7)
    counts = draw.poisson(0.7, (30, 12)).astype(float)
    idf = np.log((1 + 30) / (1 + (counts > 0).sum(axis=0))) + 1
    weighed = counts * idf
    lengths = np.linalg.norm(weighed, axis=1, keepdims=True)
    weighed = np.divide(weighed, lengths, out=np.zeros_like(weighed), where=lengths > 0)
    found = tag_features(sp.csr_array(counts), 4)
    left, sizes, _ = np.linalg.svd(weighed, full_matrices=False)
    expected = (left * sizes)[:, :4]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


@pytest.mark.parametrize("components", [0, 12, 99])
def test_components_there_are_not_are_refused(components):
    with pytest.raises(TacitError, match="components of 30 items and 12 tags"):
        tag_features(sp.csr_array(np.ones((30, 12))), components)
