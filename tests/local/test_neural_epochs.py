"""Clients side by side compute what each would alone with torch's own modules and optimisers."""

from typing import Any

import numpy as np
import pytest
import torch

from tacit.kernels.logistic import draw_samples
from tacit.local import neural_steps
from tacit.local.neural_epochs import NeuralEpochs, alike
from tacit.local.work import Broadcast
from tacit.models.neural_cf import TABLES, NeuralCF, Preferences, layers
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation
from tacit.types import Rows

MODEL = NeuralCF(factors=3, widths=(8, 5, 4), spread=0.3)
SETTINGS = {"rate": 0.01, "epochs": 2, "batch": 6, "negatives_per_item": 2, "depth": 2}


def world(seed=1):
    federation = tiny_federation(seed=seed)
    keys = SeededKeys(seed)
    cohort = federation.cohort(federation.people)
    shared, private = MODEL.shared(federation.catalogue, keys), MODEL.private(cohort.users, keys)
    return cohort, keys, shared, private


def by_torch(shared, private, client, epochs, adam):
    """A module, a loader's batches and an optimiser for one client, gradients by autograd."""
    start = {name: torch.tensor(shared[name]) for name in (*TABLES, *layers(2))}
    start |= {name: torch.tensor(private[name][client]) for name in ("gmf_user", "mlp_user")}
    now = {name: array.clone().requires_grad_() for name, array in start.items()}
    dense = [now[name] for name in now if name not in TABLES]
    tables = [now[name] for name in TABLES]
    optimisers: list[torch.optim.Optimizer] = [torch.optim.Adam(dense, SETTINGS["rate"])]
    kind = torch.optim.SparseAdam if adam == "lazy" else torch.optim.Adam
    optimisers.append(kind(tables, SETTINGS["rate"]))
    for samples in epochs:
        for at in range(0, len(samples), SETTINGS["batch"]):
            rows = torch.tensor([row for row, _ in samples[at : at + SETTINGS["batch"]]])
            labels = torch.tensor([float(label) for _, label in samples[at : at + SETTINGS["batch"]]])
            look = {
                name: torch.nn.functional.embedding(rows, now[name], sparse=adam == "lazy") for name in TABLES
            }
            hidden = torch.cat([now["mlp_user"].expand(len(rows), -1), look["mlp"]], dim=1)
            for n in (1, 2):
                hidden = torch.relu(hidden @ now[f"layer{n}.weight"] + now[f"layer{n}.bias"])
            both = torch.cat([now["gmf_user"] * look["gmf"], hidden], dim=1)
            score = both @ now["out.weight"] + now["out.bias"]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(score, labels)
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
    return {name: (now[name] - start[name]).detach().numpy() for name in now}


def test_torch_is_asked_for_no_threads_of_its_own(monkeypatch):
    """Many small products: threads that wait for each other once made a round thirty times as long."""
    seen, step, before = [], neural_steps._step, torch.get_num_threads()

    def watched(*given, **named):
        seen.append(torch.get_num_threads())
        step(*given, **named)

    monkeypatch.setattr(neural_steps, "_step", watched)
    cohort, keys, shared, private = world()
    torch.set_num_threads(2)
    try:
        NeuralEpochs(**SETTINGS).run(Broadcast(0, shared), private, cohort, None, keys)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


@pytest.mark.parametrize("adam", ["lazy", "dense"])
@pytest.mark.parametrize("side_by_side", [1, 3, 20])
def test_every_client_gets_what_torch_gives_it_alone(adam, side_by_side):
    cohort, keys, shared, private = world()
    work = NeuralEpochs(**SETTINGS, adam=adam, side_by_side=side_by_side, sends="received")
    done: Any = work.run(Broadcast(0, shared), private, cohort, None, keys)
    samples = draw_samples(
        cohort.offsets, cohort.items, keys.users(cohort.users, "negatives", 0),
        negatives=2, epochs=2, catalogue=cohort.catalogue,
    )  # fmt: skip
    for client in range(len(cohort)):
        epochs = []
        for epoch in range(2):
            first = samples.starts[client] + epoch * samples.room[client]
            mine = slice(first, first + samples.counts[client, epoch])
            rows = samples.touched[samples.touched_starts[client] + samples.slots[mine]]
            epochs.append(list(zip(rows.tolist(), samples.labels[mine].tolist(), strict=True)))
        slow = by_torch(shared, private, client, epochs, adam)
        for name in (*TABLES, *layers(2)):
            np.testing.assert_allclose(done.update[name][client], slow[name], rtol=2e-3, atol=3e-6)
        for name in ("gmf_user", "mlp_user"):
            moved = done.private[name][client] - private[name][client]
            np.testing.assert_allclose(moved, slow[name], rtol=2e-3, atol=3e-6)


def test_touched_rows_are_the_received_rows_that_moved():
    cohort, keys, shared, private = world()
    sparse: Any
    whole: Any
    sparse, whole = (
        NeuralEpochs(**SETTINGS, sends=sends).run(Broadcast(0, shared), private, cohort, None, keys)
        for sends in ("touched", "received")
    )
    for name in TABLES:
        rows = sparse.update[name]
        assert isinstance(rows, Rows)
        values: Any = rows.values
        dense = np.zeros_like(whole.update[name])
        for client in range(len(cohort)):
            mine = slice(rows.starts[client], rows.starts[client] + rows.lengths[client])
            dense[client, rows.ids[mine]] = values[mine]
        assert np.array_equal(dense, whole.update[name])


def test_who_else_is_there_does_not_matter():
    cohort, keys, shared, private = world()
    work = NeuralEpochs(**SETTINGS, sends="received", side_by_side=5)
    together: Any = work.run(Broadcast(0, shared), private, cohort, None, keys)
    federation = tiny_federation(seed=1)
    for client in (0, 3, 7):
        alone: Any = work.run(
            Broadcast(0, shared),
            {name: array[client : client + 1] for name, array in private.items()},
            federation.cohort(cohort.users[client : client + 1]),
            None,
            keys,
        )
        for name in together.update:
            np.testing.assert_allclose(
                alone.update[name][0], together.update[name][client], rtol=1e-4, atol=1e-6
            )


def test_groups_are_never_padded_with_whole_batches():
    cohort, keys, _, _ = world()
    samples = draw_samples(
        cohort.offsets, cohort.items, keys.users(cohort.users, "negatives", 0),
        negatives=2, epochs=2, catalogue=cohort.catalogue,
    )  # fmt: skip
    groups = list(alike(samples, 6, 4))
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(cohort)))
    for group in groups:
        assert len(group) <= 4
        assert len({tuple(-(-samples.counts[client] // 6)) for client in group}) == 1


def test_scores_are_the_network_pair_by_pair():
    cohort, _, shared, private = world()
    scorer = Preferences(shared, private)
    users = np.arange(len(cohort), dtype=np.int32)
    scores = scorer.scores(users)
    hidden = np.concatenate([private["mlp_user"][2], shared["mlp"][5]])
    for n in (1, 2):
        hidden = np.maximum(hidden @ shared[f"layer{n}.weight"] + shared[f"layer{n}.bias"], 0)
    both = np.concatenate([private["gmf_user"][2] * shared["gmf"][5], hidden])
    assert scores[2, 5] == pytest.approx(both @ shared["out.weight"] + shared["out.bias"][0], rel=1e-5)
    pairs = scorer.predict(np.array([2, 4], "i4"), np.array([5, 1], "i4"))
    np.testing.assert_allclose(pairs, scores[[2, 4], [5, 1]], rtol=1e-5)


def test_the_network_has_the_papers_size():
    """Perifanis' 256-128-64-32 tower on 32 factors: 43,297 numbers, 160 per item."""
    model = NeuralCF()
    shared = model.shared(10, SeededKeys(0))
    assert sum(shared[name].size for name in layers(3)) == 43_297
    assert sum(shared[name].shape[1] for name in TABLES) == 160


def test_a_newcomer_prefers_what_it_met():
    cohort, _, shared, _ = world()
    found = MODEL.folded_in(shared, cohort)
    scores = Preferences(shared, found).scores(np.arange(len(cohort), dtype=np.int32))
    for client in range(len(cohort)):
        own = cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]]
        others = np.setdiff1d(np.arange(cohort.catalogue), own)
        assert scores[client, own].mean() > scores[client, others].mean()
