"""What PrivRec's clients send: alone or side by side, first or second order."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.local.meta import Maml, Reptile, halves
from tacit.local.work import Broadcast
from tacit.models.counts import Reading
from tacit.models.encoding import encoded
from tacit.models.features import FeatureNetwork
from tacit.models.network import Descent, Net, Shape, Task, descended, net_of, started, task_losses
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation

KEYS = SeededKeys(3)
FEDERATION = tiny_federation(7, 13, seed=5)
COHORT = FEDERATION.cohort(FEDERATION.people)
ENCODING = encoded(FEDERATION.item_features, FEDERATION.user_features, 13, bins=2)
TRAINING = Descent(steps=2, rate=0.5, reg=0.1)


def network(shape, adapt="all"):
    return FeatureNetwork(shape, Reading(negatives=2.0), Descent(3, 0.4), adapt, ENCODING)


def one_of(cohort, client):
    mine = slice(cohort.offsets[client], cohort.offsets[client + 1])
    return replace(
        cohort,
        users=cohort.users[client : client + 1],
        offsets=cohort.offsets[client : client + 2] - cohort.offsets[client],
        items=cohort.items[mine],
        values=cohort.values[mine],
        extras={name: array[client : client + 1] for name, array in cohort.extras.items()},
    )


@pytest.mark.parametrize("shape", [Shape(3, (5, 4)), Shape(0, (4,), ids=2), Shape(0, (), ids=3)])
@pytest.mark.parametrize("kind", ["sampled", "expected", "maml"])
def test_a_cohort_is_its_clients_one_by_one(shape, kind):
    model = network(shape)
    work = Maml(model, TRAINING) if kind == "maml" else Reptile(model, TRAINING, kind)
    received = Broadcast(4, started(shape, ENCODING, 13, KEYS))
    together = work.run(received, {}, COHORT, None, KEYS).update
    for client in range(len(COHORT)):
        alone = work.run(received, {}, one_of(COHORT, client), None, KEYS).update
        for name, array in together.items():
            np.testing.assert_allclose(array[client], alone[name][0], rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("adapt", ["all", "user", "none"])
@pytest.mark.parametrize("shape", [Shape(0, (5, 4)), Shape(0, (4,), ids=2)])
def test_devices_adapt_alone_as_side_by_side(shape, adapt):
    model = network(shape, adapt)
    shared = started(shape, ENCODING, 13, KEYS)
    together = model.folded_in(shared, COHORT)
    for client in range(len(COHORT)):
        alone = model.folded_in(shared, one_of(COHORT, client))
        for name, array in together.items():
            np.testing.assert_allclose(array[client], alone[name][0], rtol=2e-4, atol=2e-6)


def test_adapting_the_person_changes_nothing_about_items():
    model = network(Shape(0, (5, 4)), "user")
    shared = started(model.shape, ENCODING, 13, KEYS)
    kept = model.folded_in(shared, COHORT)
    assert set(kept) == {"row"}
    assert kept["row"].shape == (len(COHORT), 5)


def query_loss(start, net: Net, known: Task, asked: Task):
    """What MAML makes small: the query's loss after steps on the support."""
    ended = descended(start, net, known, TRAINING)
    return task_losses(ended, net, asked).sum().item()


@pytest.mark.parametrize("units", ["relu", "sigmoid"])
def test_maml_s_gradient_is_that_of_the_query_after_the_steps(units):
    """Central differences in doubles along random directions, one client at a time."""
    shape = Shape(3, (5, 4), units)
    model, generator = network(shape), np.random.default_rng(0)
    shared = {  # biases off zero, where a unit without input would sit on its kink
        name: (array + 0.1 * generator.standard_normal(array.shape)).astype("f4")
        for name, array in started(shape, ENCODING, 13, KEYS).items()
    }
    sent = Maml(model, TRAINING).run(Broadcast(0, shared), {}, COHORT, None, KEYS).update
    net = net_of(shape, ENCODING)
    net = replace(net, designs=net.designs.double())
    checked = 0
    for client in np.flatnonzero(np.diff(COHORT.offsets) >= 2):
        mine = one_of(COHORT, client)
        known, asked = (task_of(model, half) for half in halves(mine, KEYS))
        directions = {name: generator.standard_normal(array.shape) for name, array in shared.items()}
        near = []
        for step in (1e-5, -1e-5):
            start = {
                name: torch.from_numpy(array + step * directions[name]).unsqueeze(0)
                for name, array in shared.items()
            }
            near.append(query_loss(start, net, known, asked))
        slope = (near[0] - near[1]) / 2e-5
        found = -sum(float((sent[name][client] * directions[name]).sum()) for name in shared)
        assert found == pytest.approx(slope, rel=2e-3, abs=2e-5)
        checked += 1
    assert checked >= 4


def task_of(model, cohort):
    counts, profiles = model.reading.counts(cohort, model.cells), ENCODING.profiles(cohort)
    return Task(*(torch.from_numpy(part).double() for part in (counts.weights, counts.targets, profiles)))


def test_leaving_second_derivatives_out_gives_another_gradient():
    """The first-order shortcut (the query's slope where the steps ended) is not what MAML sends."""
    shape = Shape(0, (5, 4), "sigmoid")
    model, shared = network(shape), started(shape, ENCODING, 13, KEYS)
    strong = Descent(steps=3, rate=2.0)
    sent = Maml(model, strong).run(Broadcast(0, shared), {}, COHORT, None, KEYS).update
    support, query = halves(COHORT, KEYS)
    net = net_of(shape, ENCODING)
    known, asked = (task_of(model, half) for half in (support, query))
    known, asked = (Task(t.weights.float(), t.targets.float(), t.profiles.float()) for t in (known, asked))
    wide = {name: torch.from_numpy(array).unsqueeze(0) for name, array in shared.items()}
    ended = descended(wide, net, known, strong)
    at = {name: tensor.detach().requires_grad_() for name, tensor in ended.items()}
    total = task_losses(at, net, asked).sum()
    slopes = torch.autograd.grad(total, list(at.values()))
    first_order = {name: -slope.numpy() for name, slope in zip(at, slopes, strict=True)}
    name = "hidden.1.weight"
    gap = np.abs(first_order[name] - sent[name]).max() / np.abs(sent[name]).max()
    assert gap > 0.05


def test_halves_part_a_history_once_for_the_whole_run():
    support, query = halves(COHORT, KEYS)
    again, _ = halves(one_of(COHORT, 3), KEYS)
    for client in range(len(COHORT)):
        own, mine, asked = (one_of(part, client).items.tolist() for part in (COHORT, support, query))
        assert sorted(mine + asked) == own
        assert len(mine) - len(asked) in (0, 1)
    np.testing.assert_array_equal(one_of(support, 3).items, again.items)


def test_training_that_breaks_down_sends_zeros_and_says_so():
    model = network(Shape(0, (5, 4)))
    shared = started(model.shape, ENCODING, 13, KEYS)
    broken = {name: np.full_like(array, np.nan) for name, array in shared.items()}
    work = Reptile(model, TRAINING).run(Broadcast(0, broken), {}, COHORT, None, KEYS)
    assert work.diagnostics["diverged"] == len(COHORT)
    assert all(not array.any() for array in work.update.values())
