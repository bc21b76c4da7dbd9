"""Another client, who asks who took part: it has every released model and knows some people's histories.

What a person would have sent is worked out from their history and the released model. Where devices start
from private numbers of their own, the other client has none of them: the numbers it works with are drawn from
keys of its own, and kept as theirs would have become had they answered every time. A vector drawn that way
points elsewhere than theirs; but which items a person moves, and how strongly, hardly depends on it. So there
an item table's step is compared with that pattern alone, whatever way it points.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.federation.federation import put_back, taken
from tacit.kernels.rows import materialise
from tacit.round import ServerState, broadcast_of
from tacit.runtime.simulate import World, set_up
from tacit.types import Array, Arrays, Floats, Index, RankOne

RIDGE = 1e-2
TOGETHER = 64


class OtherClient:
    """Scores people by how much of each step of the released model their own updates explain.

    ``twin`` is a world of the same method and histories under other keys than the run's.

    Example:
        ``told = attacker.updates(server)`` before a round, ``attacker.explained(told, before, after)``
        after it; scores of several rounds add up.
    """

    def __init__(self, twin: World, people: Index, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._twin, self._people, self._shapes = twin, people, shapes
        set_up(twin)
        tables = [name for name, shape in shapes.items() if _table(shape, twin)]
        self._patterns = tables if twin.private and not twin.method.model.adapts else []
        self._sign = 0.0

    def updates(self, server: ServerState) -> Floats:
        """What each would send for the model as it stands, one row of numbers per person."""
        twin = self._twin
        exchange = twin.method.exchanges[0]
        received = exchange.local.prepared(broadcast_of(exchange, server))
        size = sum(int(np.prod(shape)) for shape in self._shapes.values())
        told = np.zeros((len(self._people), size), dtype=np.float32)
        order = np.argsort(self._people)
        for part in np.array_split(order, max(1, len(order) // TOGETHER)):
            users = self._people[part]
            mine, cohort = taken(twin.private, users), twin.federation.cohort(users)
            work = exchange.local.run(received, mine, cohort, None, twin.keys)
            put_back(twin.private, users, work.private)
            told[part] = flattened(work.update, self._shapes)
        return told

    def explained(self, told: Floats, before: Mapping[str, Array], after: Mapping[str, Array]) -> Floats:
        """How much of the model's step is each person's, in units of their spread."""
        steps = {name: (after[name] - before[name]).astype(np.float64) for name in self._shapes}
        if not all(np.isfinite(step).all() for step in steps.values()):
            return np.zeros(len(told))
        if not self._patterns:
            return self._along(told, steps)
        found = np.zeros(len(told))
        at = 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            if name in self._patterns:
                found += _any_way(told[:, at : at + size].reshape(-1, *shape), steps[name])
            at += size
        return found

    def _along(self, told: Floats, steps: Mapping[str, Floats]) -> Floats:
        """The weight of each update in the step: a ridge regression of the step on all of them."""
        step = np.concatenate([np.ravel(steps[name]) for name in self._shapes]).astype(np.float32)
        lengths = np.linalg.norm(told, axis=1)
        usable = lengths > 0
        found = np.zeros(len(told))
        if usable.sum() < 2:
            return found
        weights = _weights(told[usable] / lengths[usable, np.newaxis], step)
        # The server steps along updates or against them (gradients): which, the first step shows for all.
        self._sign = self._sign or float(np.sign(weights.sum()) or 1.0)
        spread = float(weights.std())
        found[usable] = self._sign * weights / spread if spread > 0 else 0.0
        return found


def _table(shape: tuple[int, ...], world: World) -> bool:
    return len(shape) == 2 and shape[0] == world.federation.catalogue


def _any_way(told: Floats, step: Floats) -> Floats:
    """The length of each person's part in a table's step, their rows pointing wherever they may.

    A person's pattern over items is the leading left direction of the table they would have sent.
    """
    found = np.zeros(len(told))
    usable = told.any(axis=(1, 2))
    if usable.sum() < 2 or not step.any():
        return found
    patterns = np.stack([np.linalg.svd(table, full_matrices=False)[0][:, 0] for table in told[usable]])
    lengths = np.linalg.norm(_weights(patterns, step), axis=1)
    sizes = np.log(np.maximum(lengths, 1e-12 * lengths.max()))
    spread = float(sizes.std())
    found[usable] = (sizes - sizes.mean()) / spread if spread > 0 else 0.0
    return found


def _weights(own: Floats, step: Floats) -> Floats:
    """How much of each of some rows of length one a step is made of, all at once (ridge regression)."""
    alike = (own @ own.T).astype(np.float64) + RIDGE * np.eye(len(own))
    return np.linalg.solve(alike, (own @ step).astype(np.float64))


def flattened(update: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> Floats:
    """Everybody's update as one row of numbers each; rows that were not sent are zero."""
    parts = []
    for name, shape in shapes.items():
        array = update[name]
        if isinstance(array, np.ndarray):
            parts.append(array.reshape(len(array), -1).astype(np.float32))
            continue
        values: Any = materialise(array) if isinstance(array.values, RankOne) else array.values
        whole = np.zeros((array.clients, *shape), dtype=np.float32)
        for client in range(array.clients):
            span = slice(int(array.starts[client]), int(array.starts[client] + array.lengths[client]))
            whole[client, array.ids[span]] = values[span]
        parts.append(whole.reshape(array.clients, -1))
    return np.concatenate(parts, axis=1)
