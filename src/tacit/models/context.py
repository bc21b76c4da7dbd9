"""One model for everybody on what is known of a person and an item: no ids, no vector of anyone's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.models.encoding import Encoding
from tacit.models.model import Model, Scorer
from tacit.models.private import Form, Parameters
from tacit.models.side_information import BLANK, ItemTable
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index

NOBODY = Encoding((), (), np.zeros(1, dtype=np.int32), np.zeros((1, 0), dtype=np.float32))
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Context:
    """``form`` on a person's profile beside an item's features, its parameters as one vector ``theta``.

    Example:
        >>> from tacit.models.private import Linear
        >>> context = Context(Linear(), ItemTable(np.array([[1.0], [0.0]], "f4"), ("loud",)))
        >>> theta = np.array([3.0, 0.5], dtype="f4")
        >>> profile = np.zeros((1, 2, 0), dtype="f4")
        >>> context.form.values(
        ...     context.parameters(theta), context.inputs(profile, np.array([[0, 1]]))
        ... ).tolist()
        [[3.5, 3.0]]
    """

    form: Form
    items: ItemTable = BLANK
    people: Encoding = NOBODY

    @property
    def width(self) -> int:
        """How many numbers describe a pair."""
        return sum(field.width for field in self.people.people) + self.items.width

    def started(self, keys: Keys) -> Floats:
        """The first parameters, one after the other."""
        own = keys.users(np.zeros(1, dtype=np.int32), "init/context")
        drawn = self.form.started(self.width, np.zeros(1, dtype=np.float32), own)
        return np.concatenate([drawn[name].reshape(-1) for name in sorted(drawn)]).astype(np.float32)

    def parameters(self, theta: Floats) -> Parameters:
        """The vector cut into the form's parameters, with a first axis of one."""
        shapes = self.form.started(self.width, np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.uint64))
        names = sorted(shapes)
        ends = np.cumsum([shapes[name].size for name in names])
        parts = np.split(theta, ends[:-1])
        return {name: part.reshape(shapes[name].shape) for name, part in zip(names, parts, strict=True)}

    def inputs(self, profiles: Floats, items: Index) -> Floats:
        """Each entry's profile beside its item's features."""
        return np.concatenate([profiles, self.items.of(items)], axis=-1, dtype=np.float32)

    def profiles(self, cohort: Cohort) -> Floats:
        """What each device knows of its owner."""
        return self.people.profiles(cohort)


@dataclass(frozen=True)
class ContextScorer:
    """Scores people by profiles that their devices keep."""

    context: Context
    theta: Floats
    profiles: Floats
    catalogue: int

    def scores(self, users: Index) -> Floats:
        """One row over the catalogue per user; items with equal features score alike."""
        people = np.repeat(users, self.catalogue)
        items = np.tile(np.arange(self.catalogue, dtype=np.int32), len(users))
        return self.predict(people, items).reshape(len(users), self.catalogue)

    def predict(self, users: Index, items: Index) -> Floats:
        """One rating per pair."""
        parameters = self.context.parameters(self.theta)
        step = max(1, _AT_ONCE // max(1, self.context.width))
        found = np.zeros(len(users), dtype=np.float32)
        for at in range(0, len(users), step):
            rows = slice(at, at + step)
            inputs = self.context.inputs(self.profiles[users[rows]], items[rows])
            found[rows] = self.context.form.values(parameters, inputs[np.newaxis])[0]
        return found


@dataclass(frozen=True)
class ContextModel(Model):
    """The context model of a whole federation; a device adds only its owner's profile to score."""

    adapts: ClassVar[bool] = True
    context: Context

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """All parameters."""
        return {"theta": self.context.started(keys), "catalogue": np.array([catalogue], dtype=np.int64)}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Nothing is learned about anyone alone."""
        del users, keys
        return {}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A device's own profile, as it is used for scoring there."""
        del shared
        return {"profile": self.context.profiles(cohort)}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Scores by the profiles kept."""
        return ContextScorer(self.context, shared["theta"], private["profile"], int(shared["catalogue"][0]))
