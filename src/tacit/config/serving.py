"""Recommendations from a finished run, with the publisher's own ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.config.experiment import Experiment, resolved
from tacit.data import Interactions, load, ordered
from tacit.errors import TacitError
from tacit.evaluate.scorer import Scorer
from tacit.federation.federation import Federation
from tacit.models.model import Model
from tacit.round import Method
from tacit.runtime.folder import RunFolder
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import surroundings
from tacit.types import Array, Cohort, Index


class Recommended(NamedTuple):
    """One item of a list."""

    item: int | str
    score: float
    title: str


@dataclass(frozen=True)
class Served:
    """A finished run that answers questions."""

    plan: Plan
    model: Model
    shared: Mapping[str, Array]
    private: Mapping[str, Array]
    known: Federation

    def for_user(self, raw: str, k: int) -> list[Recommended]:
        """The top of the list for somebody in the data; what they have seen (in training) is left out."""
        user = self.plan.dataset.user_ids.position(raw)
        seen = self.known.cohort(np.array([user], dtype=np.int32)).items
        if not len(seen):
            raise TacitError(
                f"user {raw!r} has no history in this run's training part", "give --history FILE"
            )
        return self._top(self.model.scorer(self.shared, self.private), user, seen, k)

    def for_history(self, file: Path, k: int) -> list[Recommended]:
        """The top of the list for a newcomer, whose vector is computed here from the file alone."""
        cohort, unknown = self._newcomer(file)
        if not len(cohort.items):
            raise TacitError(
                f"{file}: none of its {unknown} items is in the catalogue", "use the data set's item ids"
            )
        private = self.model.folded_in(self.shared, cohort)
        return self._top(self.model.scorer(self.shared, private), 0, cohort.items, k)

    def _newcomer(self, file: Path) -> tuple[Cohort, int]:
        theirs = load(f"{file}:duplicates=last,person=newcomer")
        if theirs.users > 1:
            raise TacitError(f"{file} holds {theirs.users} people's histories", "give one person's")
        ids = self.plan.dataset.item_ids
        places = {str(raw): place for place, raw in enumerate(ids.values.tolist())}
        raws = [str(theirs.item_ids.raw(item)) for item in theirs.interactions.items.tolist()]
        found = np.array([places.get(raw, -1) for raw in raws], dtype=np.int32)
        order = np.argsort(found[found >= 0], kind="stable")
        items, values = found[found >= 0][order], theirs.interactions.values[found >= 0][order]
        self._refuse_off_scale(file, values)
        offsets = np.array([0, len(items)], dtype=np.int64)
        return Cohort(np.zeros(1, dtype=np.int32), offsets, items, values, len(ids)), int((found < 0).sum())

    def _refuse_off_scale(self, file: Path, values: Any) -> None:
        scale = self.plan.dataset.scale
        if scale and len(values) and not (values.min() >= scale.low and values.max() <= scale.high):
            raise TacitError(
                f"{file} holds ratings outside {scale.low:g} to {scale.high:g}", "use the data set's scale"
            )

    def _top(self, scorer: Scorer, user: int, seen: Index, k: int) -> list[Recommended]:
        scores = np.array(scorer.scores(np.array([user], dtype=np.int32))[0], dtype=np.float64)
        scores[seen] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(k, len(scores) - len(seen))]
        titles = self.plan.dataset.item_features.texts.get("title")
        names = [str(titles[item]) if titles is not None else "" for item in best]
        raws = [self.plan.dataset.item_ids.raw(int(item)) for item in best]
        return [
            Recommended(raw, float(scores[at]), name) for raw, at, name in zip(raws, best, names, strict=True)
        ]


def opened(path: Path, data_dir: Path | None) -> Served:
    """Open a finished run of a federated method."""
    folder = RunFolder.opened(path)
    _, plan = resolved(Experiment.from_mapping(folder.config()), data_dir)
    if not isinstance(plan.method, Method):
        raise TacitError(
            f"{plan.name} is a baseline: its run keeps no model", "recommend from a federated method's run"
        )
    shared, private = folder.model()
    around = surroundings(federation_of(plan.dataset, plan.split.train), plan.delta)
    model = plan.method.settled(around).model
    return Served(plan, model, shared, private, federation_of(plan.dataset, _histories(plan)))


def _histories(plan: Plan) -> Interactions:
    """What people have seen: their training part, and for people new to the run what they showed."""
    parts = [plan.split.train, *([plan.split.support] if plan.split.support is not None else [])]
    users, items, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("users", "items", "values")
    )
    return ordered(Interactions(users, items, values))
