"""What a PrivRec client computes: its own training from the shared model (REPTILE), or MAML's meta-gradient.

All clients of a cohort train together, each on its own copy of the parameters; a client's result does not
depend on who else is there. A history enters as counts per group of equal items, so one step costs the same
for ten interactions and for two thousand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tacit.kernels.one_thread import one_thread
from tacit.kernels.sampling import draw_fillers
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.counts import Counts
from tacit.models.features import FeatureNetwork, part_of, together
from tacit.rng import Keys, uniforms
from tacit.types import Array, Cohort, Segment


@dataclass(frozen=True)
class Reptile(LocalWork):
    """Sends ``theta_u - theta`` after ``descent.steps`` steps from the shared ``theta`` (Algorithm 1, 10-19).

    ``draws="sampled"`` draws fresh negatives in each round, ``"expected"`` weighs all unseen items as the
    draw would on average. A client whose training is not finite sends zeros and says so in the simulation.
    """

    model: FeatureNetwork
    descent: Any
    draws: Literal["sampled", "expected"] = "sampled"

    def negatives(self, received: Broadcast, cohort: Cohort, keys: Keys) -> Segment | None:
        """The round's negatives, from each client's own key."""
        reading = self.model.reading
        if self.draws == "expected" or reading.kind == "ratings" or reading.negatives == 0:
            return None
        drawn = keys.users(cohort.users, "negatives", received.round)
        return draw_fillers(cohort.offsets, cohort.items, drawn, reading.negatives, cohort.catalogue)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Train every client of the cohort."""
        del private, inbox
        drawn = self.negatives(received, cohort, keys)
        counts = self.model.reading.counts(cohort, self.model.cells, drawn)
        profiles = self.model.encoding.profiles(cohort)
        parts = [
            self._trained(received.arrays, part_of(counts, rows), profiles[rows])
            for rows in together(len(cohort), self.model.numbers_each(received.arrays), self.model.device)
        ]
        return _work(parts)

    @one_thread()
    def _trained(self, shared: Mapping[str, Array], counts: Counts, profiles: Array) -> dict[str, Array]:
        from tacit.models.network import descended, net_of, on

        start, model = on(self.model.device, shared), self.model
        task = _task(counts, profiles, model.device)
        ended = descended(start, net_of(model.shape, model.encoding, model.device), task, self.descent)
        return {name: (ended[name] - start[name]).cpu().numpy() for name in shared}


@dataclass(frozen=True)
class Maml(LocalWork):
    """Sends minus the gradient of the query loss after steps on the support (MAML, second order; Eqs. 4-5).

    Each device halves its own history at random, once for the whole run.
    """

    model: FeatureNetwork
    descent: Any

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """The meta-gradients of the cohort."""
        del private, inbox
        support, query = halves(cohort, keys)
        cells, reading = self.model.cells, self.model.reading
        known, asked = reading.counts(support, cells), reading.counts(query, cells)
        profiles = self.model.encoding.profiles(cohort)
        parts = [
            self._gradient(received.arrays, part_of(known, rows), part_of(asked, rows), profiles[rows])
            for rows in together(
                len(cohort),
                (1 + self.descent.steps) * self.model.numbers_each(received.arrays),
                self.model.device,
            )
        ]
        return _work(parts)

    @one_thread()
    def _gradient(
        self, shared: Mapping[str, Array], support: Counts, query: Counts, profiles: Array
    ) -> dict[str, Array]:
        import torch

        from tacit.models.network import descended, net_of, on, task_losses

        model = self.model
        net = net_of(model.shape, model.encoding, model.device)
        clients = len(support.weights)
        start = {
            name: tensor.expand(clients, *tensor.shape[1:]).clone().requires_grad_()
            for name, tensor in on(self.model.device, shared).items()
        }
        known, asked = _task(support, profiles, self.model.device), _task(query, profiles, self.model.device)
        ended = descended(start, net, known, self.descent, graph=True)
        total = task_losses(ended, net, asked).sum()
        slopes = torch.autograd.grad(total, list(start.values()), allow_unused=True)
        return {
            name: np.zeros((clients, *shared[name].shape), "f4")
            if slope is None  # pyright: ignore[reportUnnecessaryComparison] - None where unused
            else -slope.cpu().numpy()
            for name, slope in zip(start, slopes, strict=True)
        }


def halves(cohort: Cohort, keys: Keys) -> tuple[Cohort, Cohort]:
    """Each client's history in two halves (the first gets the odd one), by the client's own lasting key.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> one = Cohort(np.zeros(1, "i4"), np.array([0, 3]), np.arange(3, dtype="i4"), np.ones(3, "f4"), 9)
        >>> [len(half.items) for half in halves(one, SeededKeys(1))]
        [2, 1]
    """
    lengths = np.diff(cohort.offsets)
    clients = np.repeat(np.arange(len(cohort)), lengths)
    longest = int(lengths.max(initial=0))
    own = uniforms(keys.users(cohort.users, "support"), max(1, longest))
    places = np.arange(len(clients)) - np.repeat(cohort.offsets[:-1], lengths)
    order = np.lexsort((own[clients, places], clients))
    rank = np.empty(len(clients), dtype=np.int64)
    rank[order] = places
    first = rank < ((lengths + 1) // 2)[clients]
    return _kept(cohort, clients, first), _kept(cohort, clients, ~first)


def _kept(cohort: Cohort, clients: Array, chosen: Any) -> Cohort:
    counts = np.bincount(clients[chosen], minlength=len(cohort))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return replace(cohort, offsets=offsets, items=cohort.items[chosen], values=cohort.values[chosen])


def _task(counts: Counts, profiles: Array, device: str) -> Any:
    import torch

    from tacit.models.network import Task

    return Task(*(torch.from_numpy(array).to(device) for array in (counts.weights, counts.targets, profiles)))


def _work(parts: list[dict[str, Array]]) -> Work:
    """One update of the whole cohort; what is not finite becomes zeros, and is counted."""
    update: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    clients = len(next(iter(update.values())))
    sound = np.ones(clients, dtype=np.bool_)
    for array in update.values():
        sound &= np.isfinite(array.reshape(clients, -1)).all(axis=1)
    if not sound.all():
        for array in update.values():
            array[~sound] = 0
    return Work(update, {}, diagnostics={"diverged": float(clients - sound.sum())})
