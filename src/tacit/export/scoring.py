"""From a model to the graph that scores on a device: its owner's private arrays in, all items' scores out.

What the server holds becomes constants; what a device holds becomes inputs, named as in its store. Working
those out from a history (the fold-in) stays in Tacit.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.export.drawing import Drawing, column
from tacit.models.context import ContextModel
from tacit.models.features import FeatureNetwork
from tacit.models.implicit_factors import ImplicitFactors
from tacit.models.logistic_factorisation import LogisticFactorisation
from tacit.models.masked_factorisation import MaskedFactorisation
from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.models.model import Model
from tacit.models.neural_cf import NeuralCF
from tacit.models.popularity_and_tastes import PopularityModel
from tacit.types import Array

Shared = Mapping[str, Array]


def scoring_graph(model: Model, shared: Shared) -> tuple[Drawing, str]:
    """The graph and the name of its result.

    Example:
        >>> items = np.ones((3, 2), "f4")
        >>> drawing, _ = scoring_graph(MatrixFactorisation(dim=2), {"items": items})
        >>> drawing.inputs
        {'user': 2}
    """
    drawing = Drawing()
    return drawing, _scores(model, shared, drawing)


@singledispatch
def _scores(model: Model, shared: Shared, drawing: Drawing) -> str:
    del shared, drawing
    raise TacitError(
        f"{type(model).__name__} has no scoring graph: what a device keeps is not a fixed row of numbers",
        "recommend with tacit recommend, or export a factorisation, FedNCF or PrivRec with adapt=user",
    )


@_scores.register(MatrixFactorisation)
@_scores.register(ImplicitFactors)
def _dot_products(model: Any, shared: Shared, drawing: Drawing) -> str:
    return drawing.times(drawing.takes("user", model.dim), "items", shared["items"].T)


@_scores.register
def _logistic(model: LogisticFactorisation, shared: Shared, drawing: Drawing) -> str:
    return _selected_first(model, shared, drawing, _dot_products(model, shared, drawing))


def _selected_first(model: Any, shared: Shared, drawing: Drawing, scores: str) -> str:
    """Rows that were never sent go behind all others, by their frequency where that was asked for."""
    if "selected" not in shared or model.unselected == "untrained" or shared["selected"].all():
        return scores
    known = shared["selected"].astype(bool)
    sent = drawing.constant("sent", np.flatnonzero(known))
    lowest = drawing.does(
        "ReduceMin", drawing.does("Gather", scores, sent, axis=1), _axis(drawing), keepdims=1
    )
    rest = (
        np.asarray(shared["frequency"]) - 1 if model.unselected == "frequency" else np.zeros(len(known), "f4")
    )
    order = drawing.constant("order", (rest - 1)[np.newaxis])
    mask = drawing.constant("selected", known[np.newaxis])
    return drawing.does("Where", mask, scores, drawing.does("Add", lowest, order))


def _axis(drawing: Drawing) -> str:
    return drawing.constant("one", np.array([1], dtype=np.int64))


@_scores.register
def _neural(model: NeuralCF, shared: Any, drawing: Drawing) -> str:
    half, factors = model.widths[0] // 2, model.factors
    first, out = shared["layer1.weight"], shared["out.weight"]
    product = drawing.times(drawing.takes("gmf_user", factors), "gmf", (shared["gmf"] * out[:factors]).T)
    person = drawing.times(drawing.takes("mlp_user", half), "first", first[:half])
    of_items = shared["mlp"] @ first[half:] + shared["layer1.bias"]
    hidden = drawing.does(
        "Add", drawing.does("Unsqueeze", person, _axis(drawing)), drawing.constant("mlp", of_items)
    )
    hidden = drawing.does("Relu", hidden)
    for number in range(2, model.depth + 1):
        hidden = drawing.times(hidden, f"layer{number}.weight", shared[f"layer{number}.weight"])
        bias = drawing.constant(f"layer{number}.bias", shared[f"layer{number}.bias"])
        hidden = drawing.does("Relu", drawing.does("Add", hidden, bias))
    tower = _squeezed(drawing, drawing.times(hidden, "out", column(out[factors:])))
    total = drawing.does(
        "Add", drawing.does("Add", product, tower), drawing.constant("bias", shared["out.bias"])
    )
    return _selected_first(model, shared, drawing, total)


def _squeezed(drawing: Drawing, name: str) -> str:
    return drawing.does("Squeeze", name, drawing.constant("two", np.array([2], dtype=np.int64)))


@_scores.register
def _popularity(model: PopularityModel, shared: Shared, drawing: Drawing) -> str:
    if model.dim == 0:
        raise TacitError("plain popularity is one list for everybody", "read it from the run's model/ folder")
    tastes = drawing.times(drawing.takes("taste", model.dim), "directions", shared["directions"].T)
    return drawing.does("Add", tastes, drawing.constant("popularity", shared["popularity"]))


@_scores.register
def _masked(model: MaskedFactorisation, shared: Shared, drawing: Drawing) -> str:
    if model.factors is None:
        raise TacitError(
            "nothing of this model is shared: each device is alone", "there is nothing to export"
        )
    scores = _dot_products(model.factors, shared, drawing)
    if model.mask.common:
        return drawing.does("Add", scores, drawing.constant("mean", shared["mean"]))
    if model.mask.form is None:
        return scores
    return drawing.does("Add", scores, drawing.takes("mask", len(shared["items"])))


@_scores.register
def _network(model: FeatureNetwork, shared: Shared, drawing: Drawing) -> str:
    if model.adapt == "all":
        raise TacitError(
            "each device adapts the whole network to its owner: there is no one graph for all",
            "train with --set adapt=user or adapt=none",
        )
    from tacit.models.network import item_rows, net_of, on

    shape, total = model.shape, drawing.constant("output.bias", shared["output.bias"])
    if shape.hidden:
        rows = item_rows(on("cpu", shared), net_of(shape, model.encoding))[0].numpy()
        row = drawing.does("Unsqueeze", drawing.takes("row", shape.hidden[0]), _axis(drawing))
        bend = "Relu" if shape.units == "relu" else "Sigmoid"
        x = drawing.does(bend, drawing.does("Add", row, drawing.constant("rows", rows)))
        for layer in range(1, len(shape.hidden)):
            x = drawing.times(x, f"hidden.{layer}.weight", shared[f"hidden.{layer}.weight"])
            bias = drawing.constant(f"hidden.{layer}.bias", shared[f"hidden.{layer}.bias"])
            x = drawing.does(bend, drawing.does("Add", x, bias))
        deep = _squeezed(drawing, drawing.times(x, "output.weight", shared["output.weight"]))
        groups = drawing.constant("groups", model.encoding.groups.astype(np.int64))
        total = drawing.does("Add", drawing.does("Gather", deep, groups, axis=1), total)
    if shape.ids:
        tastes = drawing.times(drawing.takes("taste", shape.ids), "ids.items", shared["ids.items"].T)
        biased = drawing.does("Add", tastes, drawing.constant("ids.bias", shared["ids.bias"]))
        total = drawing.does("Add", total, biased)
    return total


@_scores.register
def _context(model: ContextModel, shared: Shared, drawing: Drawing) -> str:
    del model, shared, drawing
    raise TacitError(
        "a context model scores from the features of person, item and moment, not from a row per person",
        "use the parameters in the run's model/ folder",
    )
