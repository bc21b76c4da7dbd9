"""Neural collaborative filtering (He et al. 2017): a product of vectors beside a small network on two others.

``score = out . [g_u * g_i ; tower([m_u ; m_i])] + bias``. Item vectors and the network are shared, a person's
two vectors never leave their device. The first layer is split into the person's part and the item's, so that
ranking a catalogue computes each item's part once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.models.model import Model, Scorer, kept_back
from tacit.models.sub_model import SelectedFirst, Unselected, nothing_chosen_yet
from tacit.rng import Keys, normals
from tacit.types import Array, Cohort, Floats, Index

TABLES = ("gmf", "mlp")
FOLD_STEPS, FOLD_RATE = 80, 0.02


def layers(depth: int) -> tuple[str, ...]:
    """The names of the network's arrays, from the first layer to the last.

    Example:
        >>> layers(1)
        ('layer1.weight', 'layer1.bias', 'out.weight', 'out.bias')
    """
    hidden = [f"layer{n}.{part}" for n in range(1, depth + 1) for part in ("weight", "bias")]
    return (*hidden, "out.weight", "out.bias")


@dataclass(frozen=True)
class Preferences:
    """Scores people by their two vectors, row by row."""

    shared: Mapping[str, Any]
    private: Mapping[str, Any]

    def _hidden(self, people: Floats, items: Floats) -> Floats:
        """The tower's last layer for every pair; ``people`` (users x 1 or pairs), ``items`` already split."""
        found: Any = np.maximum(people + items, 0)
        number = 2
        while f"layer{number}.weight" in self.shared:
            found = found @ self.shared[f"layer{number}.weight"] + self.shared[f"layer{number}.bias"]
            found = np.maximum(found, 0)
            number += 1
        return found

    def _halves(self) -> tuple[Floats, Floats]:
        first = self.shared["layer1.weight"]
        width = first.shape[0] // 2
        return first[:width], first[width:]

    def _outs(self) -> tuple[Floats, Floats, float]:
        out, width = self.shared["out.weight"], self.shared["gmf"].shape[1]
        return out[:width], out[width:], float(self.shared["out.bias"][0])

    def scores(self, users: Index) -> Floats:
        """One row of scores per user."""
        mine, theirs = self._halves()
        of_product, of_tower, bias = self._outs()
        items = self.shared["mlp"] @ theirs
        people = self.private["mlp_user"][users] @ mine + self.shared["layer1.bias"]
        found = (self.private["gmf_user"][users] * of_product) @ self.shared["gmf"].T + bias
        for row, person in enumerate(people):
            found[row] += self._hidden(person, items) @ of_tower
        return found

    def predict(self, users: Index, items: Index) -> Floats:
        """One score per pair."""
        mine, theirs = self._halves()
        of_product, of_tower, bias = self._outs()
        people = self.private["mlp_user"][users] @ mine + self.shared["layer1.bias"]
        tower = self._hidden(people, self.shared["mlp"][items] @ theirs) @ of_tower
        product = self.private["gmf_user"][users] * self.shared["gmf"][items]
        return product @ of_product + tower + np.float32(bias)


@dataclass(frozen=True)
class NeuralCF(Model):
    """``factors`` numbers for the product; vectors of half the first width and a tower of ``widths``.

    ``widths`` are (2 x vector, first layer, ...): (256, 128, 64, 32) has vectors of 128 and three layers.
    With ``sub_model`` only chosen rows are ever sent. ``memory`` gives each device room for what it has not
    sent yet of the network (deep gradient compression).
    """

    factors: int = 32
    widths: tuple[int, ...] = (256, 128, 64, 32)
    spread: float = 0.01
    negatives: int = 4
    sub_model: bool = False
    unselected: Unselected = "last"
    memory: bool = False

    @property
    def depth(self) -> int:
        """How many hidden layers."""
        return len(self.widths) - 1

    def network_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of each of the network's arrays."""
        for number, (wide, narrow) in enumerate(pairwise(self.widths), 1):
            yield f"layer{number}.weight", (wide, narrow)
            yield f"layer{number}.bias", (narrow,)
        yield "out.weight", (self.factors + self.widths[-1],)
        yield "out.bias", (1,)

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """Item vectors, and a network with Glorot's start."""
        everything = np.arange(catalogue, dtype=np.int32)
        arrays: dict[str, Array] = {
            "gmf": _normal(keys, everything, "init/gmf", self.factors, self.spread),
            "mlp": _normal(keys, everything, "init/mlp", self.widths[0] // 2, self.spread),
        }
        for name, shape in self.network_shapes():
            if name.endswith("bias"):
                arrays[name] = np.zeros(shape, dtype=np.float32)
                continue
            limit = np.sqrt(6 / (shape[0] + (shape[1] if len(shape) > 1 else 1)))
            draw = keys.generator(f"init/{name}").uniform(-limit, limit, shape)
            arrays[name] = draw.astype(np.float32)
        return {**arrays, **nothing_chosen_yet(catalogue)} if self.sub_model else arrays

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Each person's two vectors, and what their device keeps back."""
        arrays: dict[str, Array] = {}
        if self.memory:
            remedy = "take fewer people or a smaller tower, or dp-fedncf, which keeps nothing back"
            arrays = kept_back(len(users), dict(self.network_shapes()), remedy)
        arrays["gmf_user"] = _normal(keys, users, "init/gmf user", self.factors, self.spread)
        arrays["mlp_user"] = _normal(keys, users, "init/mlp user", self.widths[0] // 2, self.spread)
        return arrays

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A newcomer's vectors, trained on their device against all items, with everything else as it is."""
        whole: Mapping[str, Any] = shared
        found = {"gmf_user": [], "mlp_user": []}
        for client in range(len(cohort)):
            own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
            known = np.flatnonzero(shared.get("selected", np.ones(cohort.catalogue))).astype(np.int32)
            met = np.isin(known, own)
            weights = np.where(met, 1.0, self.negatives * met.sum() / max(1, int((~met).sum())))
            product, tower = _fitted(whole, known, met, weights / max(1, met.sum()))
            found["gmf_user"].append(product)
            found["mlp_user"].append(tower)
        return {name: np.array(rows, dtype=np.float32) for name, rows in found.items()}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """The network; rows that were never sent behind all others."""
        inner = Preferences(shared, private)
        if "selected" not in shared:
            return inner
        return SelectedFirst(inner, shared["selected"].astype(bool), shared["frequency"], self.unselected)


def _normal(keys: Keys, rows: Index, purpose: str, width: int, spread: float) -> Floats:
    return (spread * normals(keys.users(rows, purpose), width)).astype(np.float32)


def _fitted(shared: Mapping[str, Any], known: Index, met: Array, weights: Array) -> tuple[Floats, Floats]:
    """Adam on a person's two vectors alone, on all known items at once."""
    gmf = shared["gmf"][known]
    first, width = shared["layer1.weight"], shared["mlp"].shape[1]
    items = shared["mlp"][known] @ first[width:] + shared["layer1.bias"]
    of_product, of_tower = np.split(shared["out.weight"], [gmf.shape[1]])
    vector = np.zeros(gmf.shape[1] + width)
    mean, square = np.zeros_like(vector), np.zeros_like(vector)
    for step in range(1, FOLD_STEPS + 1):
        acts = [np.maximum(items + vector[gmf.shape[1] :] @ first[:width], 0)]
        while f"layer{len(acts) + 1}.weight" in shared:
            weight, bias = (shared[f"layer{len(acts) + 1}.{part}"] for part in ("weight", "bias"))
            acts.append(np.maximum(acts[-1] @ weight + bias, 0))
        score = gmf @ (vector[: gmf.shape[1]] * of_product) + acts[-1] @ of_tower + shared["out.bias"][0]
        error = weights * (1 / (1 + np.exp(-np.clip(score, -30, 30))) - met)
        back = error[:, np.newaxis] * of_tower * (acts[-1] > 0)
        for number in range(len(acts), 1, -1):
            back = (back @ shared[f"layer{number}.weight"].T) * (acts[number - 2] > 0)
        slope = np.concatenate([(error @ gmf) * of_product, back.sum(axis=0) @ first[:width].T])
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        size = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        vector = vector - FOLD_RATE * mean / (1 - 0.9**step) / size
    return vector[: gmf.shape[1]], vector[gmf.shape[1] :]
