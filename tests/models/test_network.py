"""The batched network equals the paper's, computed one raw sample at a time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from tacit.models.counts import Reading
from tacit.models.encoding import encoded
from tacit.models.network import (
    Descent,
    Shape,
    Task,
    descended,
    logits,
    net_of,
    own_rows,
    started,
    task_losses,
    tastes,
)
from tacit.rng import SeededKeys
from tacit.testing.reference import privrec as slow
from tacit.testing.tiny import tiny_federation
from tacit.types import Segment


class World:
    """A tiny federation, its encoding, and slots for the slow loop."""

    def __init__(self, shape, bins=3, words=0, seed=2):
        self.shape = shape
        self.federation = tiny_federation(6, 11, seed=seed)
        about, items = self.federation.user_features, self.federation.item_features
        self.encoding = encoded(items, about, 11, bins=bins, words=words)
        net = net_of(shape, self.encoding)
        self.net = replace(net, designs=net.designs.double())
        shared = started(shape, self.encoding, 11, SeededKeys(seed))
        self.start = {name: torch.from_numpy(array).double() for name, array in shared.items()}
        self.cohort = self.federation.cohort(self.federation.people)
        self.profiles = self.encoding.profiles(self.cohort)
        self.items = {i: self._slots("items", self.encoding.items, self._design(i)) for i in range(11)}

    def _slots(self, side, fields, design):
        return list(slots(side, fields, design, folded=self.shape.embedding == 0))

    def _design(self, item):
        return self.encoding.designs[self.encoding.groups[item]]

    def person(self, client):
        return self._slots("people", self.encoding.people, self.profiles[client])

    def task(self, clients, counts):
        return Task(
            *(torch.from_numpy(part[clients]).double() for part in (counts.weights, counts.targets)),
            torch.from_numpy(self.profiles[clients]).double(),
        )

    def wide(self):
        return {name: tensor.unsqueeze(0) for name, tensor in self.start.items()}


def slots(side, fields, design, *, folded):
    """Read a design row back: which embedding rows a person or item looks up."""
    at = 0
    for field in fields:
        part = design[at : at + field.width].reshape(field.slots, field.rows)
        for slot, row in zip(*np.nonzero(part), strict=True):
            place = slot * field.rows + row if folded else row
            yield slow.Slot(f"{side}.{field.name}", int(slot), int(place), float(part[slot, row]))
        at += field.width


@pytest.fixture(params=[0, 3], ids=["folded", "embedded"])
def embedding(request):
    """Whether embeddings and first layer are one table."""
    return request.param


def drawn_samples(world, client, negatives=2):
    """Raw samples of one client: each positive, and some unseen items."""
    own = world.cohort.items[world.cohort.offsets[client] : world.cohort.offsets[client + 1]].tolist()
    unseen = [item for item in range(11) if item not in own]
    chosen = unseen[: negatives * len(own)]
    return [(item, 1.0) for item in own], [(item, 0.0) for item in chosen]


def counted(world, negatives=2):
    """The same samples as weights and targets per group."""
    drawn = [[item for item, _ in drawn_samples(world, c, negatives)[1]] for c in range(len(world.cohort))]
    lengths = np.array([len(mine) for mine in drawn])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    segment = Segment(starts, lengths, np.array([i for mine in drawn for i in mine], dtype=np.int32))
    return Reading(negatives=negatives).counts(world.cohort, world.encoding.groups, segment)


@pytest.mark.parametrize("units", ["relu", "sigmoid"])
def test_scores_are_the_papers_network_s(embedding, units):
    world = World(Shape(embedding, (5, 4, 3), units), words=2)
    everyone = torch.from_numpy(world.profiles).double()
    start = world.wide()
    found = logits(start, world.net, own_rows(start, world.encoding, everyone))
    for client in range(len(world.cohort)):
        for item in range(11):
            wanted = slow.score(world.start, [*world.person(client), *world.items[item]], 3, units)
            assert found[client, world.encoding.groups[item]].item() == pytest.approx(wanted.item(), rel=1e-6)


def test_counts_give_raw_samples_loss_and_gradient(embedding):
    world = World(Shape(embedding, (5, 4), "relu"))
    counts, way = counted(world), slow.Way(2, "relu", 1, 1.0, 0.0)
    for client in range(len(world.cohort)):
        at = {name: tensor.clone().requires_grad_() for name, tensor in world.wide().items()}
        ours = task_losses(at, world.net, world.task(slice(client, client + 1), counts)).sum()
        slopes = dict(zip(at, torch.autograd.grad(ours, list(at.values()), allow_unused=True), strict=True))
        positives, negatives = drawn_samples(world, client)
        person = world.person(client)
        theirs = {name: tensor.clone().requires_grad_() for name, tensor in world.start.items()}
        total = slow.loss(theirs, person, world.items, positives + negatives, way)
        assert ours.item() == pytest.approx(total.item(), rel=1e-6)
        total.backward()
        for name, tensor in theirs.items():
            wanted = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
            torch.testing.assert_close(slopes[name][0], wanted, rtol=1e-5, atol=1e-8)


def test_a_cohort_trains_as_the_paper_s_loop_does(embedding):
    world = World(Shape(embedding, (5, 4), "sigmoid"))
    counts, how = counted(world), Descent(steps=3, rate=0.4, reg=0.2)
    ended = descended(world.wide(), world.net, world.task(slice(None), counts), how)
    for client in range(len(world.cohort)):
        positives, negatives = drawn_samples(world, client)
        way = slow.Way(2, "sigmoid", 3, 0.4, 0.2)
        moved = slow.reptile(world.start, world.person(client), world.items, positives + negatives, way)
        for name, change in moved.items():
            found = ended[name][client] - world.start[name]
            torch.testing.assert_close(found, change, rtol=1e-4, atol=1e-8)


def test_a_meta_gradient_s_path_and_the_fast_path_take_the_same_steps():
    world = World(Shape(3, (5, 4), "relu"))
    task, how = world.task(slice(None), counted(world)), Descent(steps=2, rate=0.4, reg=0.1)
    fast = descended(world.wide(), world.net, task, how)
    start = {name: tensor.clone().requires_grad_() for name, tensor in world.wide().items()}
    for name, tensor in descended(start, world.net, task, how, graph=True).items():
        torch.testing.assert_close(tensor.detach(), fast[name], rtol=1e-9, atol=1e-12)


def test_items_apart_share_their_group_s_network_and_keep_their_own_rows():
    world = World(Shape(0, (4,), ids=3))
    start = world.wide()
    own = own_rows(start, world.encoding, torch.from_numpy(world.profiles).double())
    taste = torch.ones(len(world.cohort), 3, dtype=torch.float64)
    found = logits({**start, "own.taste": taste}, world.net, own)
    plain = World(Shape(0, (4,)))
    deep = logits({n: start[n] for n in plain.start}, plain.net, own)
    wanted = deep[:, world.net.cells] + start["ids.items"][0].sum(1) + start["ids.bias"]
    torch.testing.assert_close(found, wanted)


def test_a_person_s_vector_is_the_best_one_for_the_items_as_they_came():
    world = World(Shape(0, (), ids=3))
    counts = Reading(negatives=2.0).counts(world.cohort, world.encoding.cells(apart=True))
    task = Task(*(torch.from_numpy(a).double() for a in (counts.weights, counts.targets, world.profiles)))
    start = world.wide()

    def cost(found):
        scores = logits({**start, "own.taste": found}, world.net, None)
        each = torch.nn.functional.softplus(scores) - task.targets * scores
        return (task.weights * each).sum(1) + 0.5 * (found**2).sum(1)

    costs = [
        cost(tastes(start, world.net, task, Descent(1, 1.0, own_steps=steps, own_reg=1.0)))
        for steps in (0, 1, 5, 300)
    ]
    for earlier, later in pairwise(costs):
        assert torch.all(later <= earlier + 1e-12)
    best = tastes(start, world.net, task, Descent(1, 1.0, own_steps=300)).requires_grad_()
    (slope,) = torch.autograd.grad(cost(best).sum(), best)
    assert slope.abs().max() < 1e-6
