"""Every way to run local epochs computes the same thing, so their times can be compared."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from tacit.bench import local_epochs_gpu
from tacit.bench.local_epochs import run
from tacit.bench.local_epochs_gpu import Prepared, one_by_one, side_by_side
from tacit.bench.local_epochs_ways import Epochs, Factors, careful, numpy_rows, sampled
from tacit.models.neural_cf import NeuralCF
from tacit.rng import SeededKeys
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


@pytest.mark.parametrize("most", [1, 3, 6])
def test_networks_side_by_side_and_the_careful_loop_agree(most):
    """The summed change of every array, after exact Adam from the same start on the same samples."""
    federation = tiny_federation(6, 15)
    cohort = Epochs(federation.offsets, federation.items, 15, 2, 7, 3, local_epochs_gpu.LEARNING_RATE)
    generator = np.random.default_rng(0)
    drawn = [sampled(cohort, client, generator) for client in range(6)]
    model = NeuralCF(4, (16, 8, 4, 2), spread=0.5)
    shared = model.shared(15, SeededKeys(1))
    private = {name: np.full((6, width), 0.1, "f4") for name, width in (("gmf_user", 4), ("mlp_user", 8))}
    ours = side_by_side(Prepared.of(drawn), shared, private, 7, most=most, adam="dense", device="cpu")
    slow = one_by_one(cohort, drawn, shared, "cpu")
    for name in ("gmf", "mlp"):
        np.testing.assert_allclose(ours[name], slow[f"{name}.weight"].numpy(), rtol=2e-3, atol=2e-6)
    for number, layer in enumerate(("layers.0", "layers.2", "layers.4"), 1):
        weight = slow[f"{layer}.weight"].numpy().T
        np.testing.assert_allclose(ours[f"layer{number}.weight"], weight, rtol=2e-3, atol=2e-6)
    np.testing.assert_allclose(ours["out.weight"], slow["out.weight"].numpy()[0], rtol=2e-3, atol=2e-6)


def test_the_accelerator_benchmark_needs_no_compiled_kernels():
    """It runs where neither Numba nor the command line's packages are installed."""
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'numba', 'llvmlite', 'scipy', 'typer', 'rich'}:\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from tacit.bench.local_epochs_gpu import NeuralCF, run\n"
        "tiny = NeuralCF(4, (8, 4, 2, 1))\n"
        "found = run(clients=3, items=90, epochs=1, repeats=1, device='cpu', model=tiny)\n"
        "assert found['ratios']['careful'] > 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
