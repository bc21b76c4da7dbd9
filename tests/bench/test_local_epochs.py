"""Every way to run local epochs computes the same thing, so their times can be compared."""

import numpy as np
import torch

from tacit.bench.local_epochs import run
from tacit.bench.local_epochs_ways import Epochs, Factors, careful, numpy_rows, sampled
from tacit.models.neural_cf import NeuralCF
from tacit.testing.tiny import tiny_federation


def epochs():
    federation = tiny_federation(6, 15)
    return Epochs(federation.offsets, federation.items, 15, 2, 7, 3, 0.05)


def test_the_careful_loop_and_numpy_agree():
    cohort = epochs()
    table = np.random.default_rng(1).normal(0, 0.1, (15, 4)).astype(np.float32)
    whole = torch.from_numpy(table)
    found = careful(
        cohort,
        lambda rows: Factors(whole if rows is None else whole[rows]),
        lambda model: torch.optim.SGD(model.parameters(), cohort.rate),
        "sum",
        ("items.weight",),
        15,
    )
    np.testing.assert_allclose(found["items.weight"].numpy(), numpy_rows(cohort, table), rtol=1e-4, atol=1e-6)


def test_samples_of_the_careful_loop_are_what_ours_are():
    cohort = epochs()
    generator = np.random.default_rng(0)
    for client in range(cohort.clients):
        touched, places, labels = sampled(cohort, client, generator)
        own = cohort.own(client).tolist()
        for epoch in range(2):
            items = touched[places[epoch]].numpy()
            assert sorted(items[labels[epoch].numpy() == 1].tolist()) == own
            assert not set(items[labels[epoch].numpy() == 0].tolist()) & set(own)
            assert len(items) == 4 * len(own)


def test_the_report_has_every_ratio():
    tiny = NeuralCF(4, (8, 4, 4, 2))
    found = run(clients=3, neural_clients=2, items=400, dim=4, epochs=1, repeats=1, model=tiny)
    assert {"mf-public", "mf-careful", "mf-numpy", "neural-careful", "neural-public"} <= set(found["ratios"])
    assert all(seconds > 0 for seconds in found["seconds"].values())
