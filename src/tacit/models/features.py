"""PrivRec's model: a network on public features, adapted on each device to its owner before it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.one_thread import one_thread
from tacit.models.counts import Counts, Reading
from tacit.models.encoding import Encoding
from tacit.models.model import Model, Scorer, require_memory
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index

Adapts = Literal["none", "user", "all"]
UNSETTLED = Encoding((), (), np.zeros(1, dtype=np.int32), np.zeros((1, 0), dtype=np.float32))
_AT_ONCE = {"cpu": 1 << 24, "cuda": 1 << 32}
"""Numbers held while clients are trained together; speed and memory only."""


def together(clients: int, numbers_each: int, device: str = "cpu") -> list[slice]:
    """Groups of clients that fit into memory side by side.

    Example:
        >>> together(5, 1 << 23)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _AT_ONCE[device] // max(1, numbers_each))
    return [slice(start, min(start + step, clients)) for start in range(0, clients, step)]


def part_of(counts: Counts, rows: slice) -> Counts:
    """The counts of some of the clients."""
    return Counts(counts.weights[rows], counts.targets[rows])


@dataclass(frozen=True)
class Profiled:
    """Scores people by their own part of the network, kept on their devices, or by scores made there."""

    shape: Any
    encoding: Encoding
    shared: Mapping[str, Array]
    private: Mapping[str, Array]

    @one_thread()
    def scores(self, users: Index) -> Floats:
        """One row over the catalogue per user; items with equal features score alike."""
        if "scores" in self.private:
            return self.private["scores"][users][:, self.cells]
        import torch

        from tacit.models.network import logits, net_of, on

        parts = []
        with torch.no_grad():
            shared, net = on("cpu", self.shared), net_of(self.shape, self.encoding)
            width = len(net.designs) * max([1, *self.shape.hidden])
            for rows in together(len(users), width):
                own = {
                    f"own.{name}": torch.from_numpy(array[users[rows]])
                    for name, array in self.private.items()
                }
                parts.append(logits({**shared, **own}, net, None).numpy())
        return np.concatenate(parts)[:, self.cells] if parts else np.zeros((0, len(self.cells)), "f4")

    @property
    def cells(self) -> Index:
        """Where each item's score is."""
        return self.encoding.cells(apart=bool(self.shape.ids))

    def predict(self, users: Index, items: Index) -> Floats:
        """One number per pair (a rating, where the head is linear)."""
        people, places = np.unique(users, return_inverse=True)
        found = np.zeros(len(users), dtype=np.float32)
        for rows in together(len(people), len(self.encoding.groups)):
            mine = (places >= rows.start) & (places < rows.stop)
            found[mine] = self.scores(people[rows])[places[mine] - rows.start, items[mine]]
        return found


@dataclass(frozen=True)
class FeatureNetwork(Model):
    """A network of ``shape`` on the features of ``encoding``.

    ``adapt`` says what a device fine-tunes for its owner before scoring, by ``tuning``, on its own history:
    the whole network (as published), the user's part alone (an own row added to the first layer and an own
    vector of the id part; nothing about items is changed), or nothing.
    """

    adapts: ClassVar[bool] = True
    shape: Any
    reading: Reading
    tuning: Any
    adapt: Adapts = "all"
    encoding: Encoding = UNSETTLED
    device: str = "cpu"

    @property
    def cells(self) -> Index:
        """What each item is to the network: see :meth:`Encoding.cells`."""
        return self.encoding.cells(apart=bool(self.shape.ids))

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """All parameters of the network; before it has learned anything it says what chance says."""
        from tacit.models.network import started

        if self.encoding is UNSETTLED:
            raise TacitError("a network without features", "settle the method in its surroundings first")
        found = started(self.shape, self.encoding, catalogue, keys)
        return {**found, "output.bias": found["output.bias"] + np.float32(self.reading.base(self.shape.head))}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Nothing: a device starts from what it is sent, as REPTILE does, and gets its scores by adapting."""
        del keys
        if self.adapt == "all":
            cells = int(self.cells.max(initial=-1)) + 1
            remedy = "give --set adapt=user: people then keep their own part of the network alone"
            require_memory("scores", len(users), cells, remedy)
        return {}

    @one_thread()
    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """What devices keep after adapting to their owners: the same steps as in training.

        A device whose own steps diverge keeps what it was sent.
        """
        import torch

        from tacit.models.network import Task, net_of, on, own_rows

        counts, profiles = self.reading.counts(cohort, self.cells), self.encoding.profiles(cohort)
        start, net = on(self.device, shared), net_of(self.shape, self.encoding, self.device)
        parts: list[dict[str, Array]] = []
        for rows in together(len(cohort), self.numbers_each(shared), self.device):
            mine = part_of(counts, rows)
            arrays = (mine.weights, mine.targets, profiles[rows])
            task = Task(*(torch.from_numpy(array).to(self.device) for array in arrays))
            with torch.no_grad():
                own = own_rows(start, self.encoding, task.profiles) if self.shape.hidden else None
            parts.append(self._adapted(start, net, task, own))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def numbers_each(self, shared: Mapping[str, Array]) -> int:
        """About how many numbers one client's training keeps at once."""
        layers = len(self.encoding.designs) * sum(self.shape.hidden)
        layers += len(self.encoding.groups) * (1 + self.shape.ids)
        return 4 * (layers + sum(array.size for array in shared.values()))

    def _adapted(self, start: Any, net: Any, task: Any, own: Any) -> dict[str, Array]:
        import torch

        from tacit.models.network import descended, logits, own_rows

        if self.adapt == "all":
            tuned = descended(start, net, task, self.tuning)
            with torch.no_grad():
                moved = own_rows(tuned, self.encoding, task.profiles) if self.shape.hidden else None
                scores = logits({**start, **tuned}, net, moved).expand(len(task.weights), -1)
                scores = torch.where(_sound([scores]), scores, logits(start, net, own))
            return {"scores": scores.cpu().numpy()}
        begun = {}
        if own is not None:
            begun["own.row"] = torch.zeros_like(own)
        if self.adapt == "user":
            begun = descended({**start, **begun}, net, task, self.tuning, only=list(begun))
            sound = _sound(list(begun.values()))
            begun = {name: torch.where(sound, part, torch.zeros(())) for name, part in begun.items()}
        elif self.shape.ids:
            begun["own.taste"] = torch.zeros(len(task.weights), self.shape.ids)
        found = {name.removeprefix("own."): part.cpu().numpy() for name, part in begun.items()}
        if own is not None:
            found["row"] = found["row"] + own.cpu().numpy()
        return found

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Scores people by what their devices keep."""
        return Profiled(self.shape, self.encoding, shared, private)


def _sound(parts: Sequence[Any]) -> Any:
    """Whose rows are finite in all of these, as a column."""
    import torch

    return torch.stack([torch.isfinite(part).all(1) for part in parts]).all(0)[:, None]


def layers_of(text: str) -> tuple[int, ...]:
    """Hidden sizes from a setting such as ``64-32-16-8``; ``none`` for no network.

    Example:
        >>> layers_of("64-32"), layers_of("none")
        ((64, 32), ())
    """
    parts: Sequence[str] = [] if text == "none" else text.split("-")
    if not all(part.isdigit() and 0 < int(part) <= 4096 for part in parts):
        raise TacitError(f"hidden layers {text!r} cannot be read", "write sizes such as 64-32-16-8, or none")
    return tuple(map(int, parts))
