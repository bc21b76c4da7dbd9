"""Other ways to run a cohort's local epochs, as research code runs them and as careful code would.

*Public* is what repositories do: a copy of the whole model, a data set, a loader and an optimiser per client,
negatives drawn in Python, state dictionaries summed. *Careful* is one loop over clients with vectorised
sampling, a module and an optimiser over the touched rows only, and batches sliced from tensors.
"""

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.types import Floats, Index, Long


@dataclass(frozen=True)
class Epochs:
    """A cohort's histories and the settings of its local training."""

    offsets: Long
    items: Index
    catalogue: int
    epochs: int
    batch: int
    negatives: int
    rate: float
    seed: int = 0

    def own(self, client: int) -> Index:
        """One client's items."""
        return self.items[self.offsets[client] : self.offsets[client + 1]]

    @property
    def clients(self) -> int:
        """How many clients."""
        return len(self.offsets) - 1


class Factors(nn.Module):
    """A vector for one person and a table of item vectors."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.person = nn.Parameter(0.1 * torch.ones(table.shape[1]))
        self.items = nn.Embedding.from_pretrained(table.clone(), freeze=False)

    def forward(self, rows: Tensor) -> Tensor:
        """A score per row."""
        return self.items(rows) @ self.person


class Neural(nn.Module):
    """NeuMF for one person: a product beside a tower of 256-128-64-32.

    ``network`` gives the layers by their names in ``models.neural_cf``; else they are drawn.
    """

    def __init__(self, product: Tensor, tower: Tensor, network: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.gmf_user = nn.Parameter(0.1 * torch.ones(product.shape[1]))
        self.mlp_user = nn.Parameter(0.1 * torch.ones(tower.shape[1]))
        self.gmf = nn.Embedding.from_pretrained(product.clone(), freeze=False)
        self.mlp = nn.Embedding.from_pretrained(tower.clone(), freeze=False)
        wide = 2 * tower.shape[1]
        self.layers = nn.Sequential(
            nn.Linear(wide, wide // 2), nn.ReLU(), nn.Linear(wide // 2, wide // 4), nn.ReLU(),
            nn.Linear(wide // 4, wide // 8), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Linear(product.shape[1] + wide // 8, 1)
        if network is not None:
            linear = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
            names = [f"layer{number}" for number in range(1, len(linear) + 1)]
            with torch.no_grad():
                for name, layer in zip([*names, "out"], [*linear, self.out], strict=True):
                    weight = torch.from_numpy(network[f"{name}.weight"])
                    layer.weight.copy_(weight.T if weight.ndim == 2 else weight[None])
                    layer.bias.copy_(torch.from_numpy(network[f"{name}.bias"]))

    def forward(self, rows: Tensor) -> Tensor:
        """A score per row."""
        pair = torch.cat([self.mlp_user.expand(len(rows), -1), self.mlp(rows)], dim=1)
        both = torch.cat([self.gmf_user * self.gmf(rows), self.layers(pair)], dim=1)
        return self.out(both)[:, 0]


Made = Callable[[Tensor | None], nn.Module]
Optimiser = Callable[[nn.Module], torch.optim.Optimizer]


def public(cohort: Epochs, made: Made, optimiser: Optimiser, reduction: str) -> dict[str, Tensor]:
    """The whole model copied for every client, Python negatives, a loader, summed state dictionaries."""
    server = made(None)
    total = {name: torch.zeros_like(array) for name, array in server.state_dict().items()}
    loss = nn.BCEWithLogitsLoss(reduction=reduction)
    draw = random.Random(cohort.seed)
    for client in range(cohort.clients):
        model = copy.deepcopy(server)
        steps = optimiser(model)
        own = cohort.own(client).tolist()
        met = set(own)
        for _ in range(cohort.epochs):
            rows, labels = [], []
            for item in own:
                rows.append(item)
                labels.append(1.0)
                for _ in range(cohort.negatives):
                    other = draw.randrange(cohort.catalogue)
                    while other in met:
                        other = draw.randrange(cohort.catalogue)
                    rows.append(other)
                    labels.append(0.0)
            loader = DataLoader(
                TensorDataset(torch.tensor(rows), torch.tensor(labels)), batch_size=cohort.batch, shuffle=True
            )
            for batch_rows, batch_labels in loader:
                steps.zero_grad()
                loss(model(batch_rows), batch_labels).backward()
                steps.step()
        for name, array in model.state_dict().items():
            total[name] += array
    return total


def sampled(cohort: Epochs, client: int, generator: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Every epoch's samples of a client: touched items, and per epoch places among them and labels."""
    own = cohort.own(client)
    met = np.zeros(cohort.catalogue, dtype=bool)
    met[own] = True
    size = len(own) * cohort.negatives
    rows, labels = [], []
    for _ in range(cohort.epochs):
        others = generator.integers(0, cohort.catalogue, size)
        while (bad := met[others]).any():
            others[bad] = generator.integers(0, cohort.catalogue, int(bad.sum()))
        order = generator.permutation(len(own) + size)
        rows.append(np.concatenate([own, others])[order])
        labels.append(np.repeat([1.0, 0.0], [len(own), size])[order])
    touched, places = np.unique(np.array(rows), return_inverse=True)
    return (
        torch.from_numpy(touched).long(),
        torch.from_numpy(places.reshape(cohort.epochs, -1)),
        torch.from_numpy(np.array(labels, dtype=np.float32)),
    )


def careful(
    cohort: Epochs,
    made: Made,
    optimiser: Optimiser,
    reduction: str,
    tables: tuple[str, ...],
    drawn: Sequence[tuple[Tensor, Tensor, Tensor]] | None = None,
    device: str = "cpu",
) -> dict[str, Tensor]:
    """A module over the touched rows and an optimiser per client; batches are slices.

    ``drawn`` holds each client's samples where they are not to be drawn here.
    """
    generator = np.random.default_rng(cohort.seed)
    total: dict[str, Tensor] = {}
    loss = nn.BCEWithLogitsLoss(reduction=reduction)
    for client in range(cohort.clients):
        own = sampled(cohort, client, generator) if drawn is None else drawn[client]
        touched, places, labels = (part.to(device) for part in own)
        model = made(touched).to(device)
        before = {name: array.clone() for name, array in model.state_dict().items()}
        steps = optimiser(model)
        for epoch in range(cohort.epochs):
            for at in range(0, places.shape[1], cohort.batch):
                steps.zero_grad(set_to_none=True)
                loss(
                    model(places[epoch, at : at + cohort.batch]), labels[epoch, at : at + cohort.batch]
                ).backward()
                steps.step()
        for name, array in model.state_dict().items():
            change = array - before[name]
            if name in tables:
                room = torch.zeros(cohort.catalogue, change.shape[1], device=device)
                known = total.setdefault(name, room)
                known.index_add_(0, touched, change)
            else:
                total[name] = total.get(name, torch.zeros_like(change)) + change
    return total


def numpy_rows(cohort: Epochs, table: Floats) -> Floats:
    """Factorisation with NumPy on the touched rows, client after client."""
    generator = np.random.default_rng(cohort.seed)
    total = np.zeros_like(table)
    for client in range(cohort.clients):
        touched, places, labels = (part.numpy() for part in sampled(cohort, client, generator))
        rows, person = table[touched], np.full(table.shape[1], 0.1, table.dtype)
        for epoch in range(cohort.epochs):
            for at in range(0, places.shape[1], cohort.batch):
                mine = places[epoch, at : at + cohort.batch]
                held = rows[mine]
                error = 1 / (1 + np.exp(-(held @ person))) - labels[epoch, at : at + cohort.batch]
                towards = error @ held
                np.subtract.at(rows, mine, cohort.rate * error[:, np.newaxis] * person)
                person = person - cohort.rate * towards
        total[touched] += rows - table[touched]
    return total
