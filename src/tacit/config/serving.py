"""Recommendations from a finished run, with the publisher's own ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacit.config.experiment import Experiment, resolved
from tacit.config.top import Recommended, refuse_off_scale, top
from tacit.data import Dataset, Ids, Interactions, load, ordered
from tacit.errors import TacitError
from tacit.evaluate.protocol import Evaluation
from tacit.evaluate.scorer import Scorer
from tacit.federation.federation import Federation
from tacit.models.model import Model
from tacit.round import Method
from tacit.runtime.folder import RunFolder
from tacit.runtime.run import Fitting, Plan, evaluate_plan, federation_of, fitted_baseline
from tacit.runtime.simulate import surroundings
from tacit.types import Array, Cohort, Index


@dataclass(frozen=True)
class Served:
    """A finished run that answers questions. A baseline keeps no model: it is fitted again when asked."""

    plan: Plan
    model: Model | None
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
        return self._top(self.scorer, user, seen, k)

    @cached_property
    def scorer(self) -> Any:
        """Scores everybody who trained."""
        if self.model is not None:
            return self.model.scorer(self.shared, self.private)
        assert isinstance(self.plan.method, Fitting)
        return fitted_baseline(self.plan, self.plan.method)

    def for_history(self, file: Path, k: int) -> list[Recommended]:
        """The top of the list for a newcomer, whose vector is computed here from the file alone."""
        return self.for_newcomer(load(f"{file}:duplicates=last,person=newcomer"), k, called=str(file))

    def for_newcomer(self, theirs: Dataset, k: int, called: str = "the history") -> list[Recommended]:
        """The top of the list for somebody who never took part, from their history alone."""
        if self.model is None:
            raise TacitError(
                f"{self.plan.name} is a baseline: it knows only whom it was fitted on",
                "recommend to a newcomer from a federated method's run",
            )
        if theirs.users > 1:
            raise TacitError(f"{called} holds {theirs.users} people's histories", "give one person's")
        cohort, unknown = self._newcomer(theirs, called)
        if not len(cohort.items):
            raise TacitError(
                f"{called}: none of its {unknown} items is in the catalogue", "use the data set's item ids"
            )
        private = self.model.folded_in(self.shared, cohort)
        return self._top(self.model.scorer(self.shared, private), 0, cohort.items, k)

    def judged(self, held_out: Dataset, metrics: Sequence[str]) -> Evaluation:
        """Metrics on interactions that the run has not seen; unknown people and items are left out."""
        log = held_out.interactions
        users = _located(held_out.user_ids, self.plan.dataset.user_ids)[log.users]
        items = _located(held_out.item_ids, self.plan.dataset.item_ids)[log.items]
        known = (users >= 0) & (items >= 0)
        if not known.any():
            raise TacitError(
                f"none of the {len(log)} interactions is of a person and an item in this run",
                "use the same ids as in training",
            )
        test = ordered(Interactions(users[known], items[known], log.values[known]))
        parts = replace(self.plan.split, train=_histories(self.plan), test=test, support=None)
        plan = replace(self.plan, split=parts)
        found = evaluate_plan(plan, self.scorer, tuple(metrics))
        left = int((~known).sum())
        told = f"{left} of {len(log)} interactions are of people or items this run does not know: left out"
        return replace(found, notes=(*found.notes, told)) if left else found

    def _newcomer(self, theirs: Dataset, called: str) -> tuple[Cohort, int]:
        ids = self.plan.dataset.item_ids
        found = _located(theirs.item_ids, ids)[theirs.interactions.items]
        order = np.argsort(found[found >= 0], kind="stable")
        items, values = found[found >= 0][order], theirs.interactions.values[found >= 0][order]
        refuse_off_scale(self.plan.dataset.scale, values, called)
        offsets = np.array([0, len(items)], dtype=np.int64)
        return Cohort(np.zeros(1, dtype=np.int32), offsets, items, values, len(ids)), int((found < 0).sum())

    def _top(self, scorer: Scorer, user: int, seen: Index, k: int) -> list[Recommended]:
        scores = scorer.scores(np.array([user], dtype=np.int32))[0]
        return top(scores, seen, k, self._raws, self.plan.dataset.item_features.texts.get("title"))

    @cached_property
    def _raws(self) -> list[int | str]:
        return self.plan.dataset.item_ids.values.tolist()


def opened(path: Path, data_dir: Path | None) -> Served:
    """Open a finished run.

    Example:
        ``opened(Path("runs/mine"), None).for_user("42", k=5)``
    """
    folder = RunFolder.opened(path)
    folder.result()  # a run without one is not finished
    _, plan = resolved(Experiment.from_mapping(folder.config()), data_dir)
    return served(plan, folder)


def served(plan: Plan, folder: RunFolder) -> Served:
    """A finished run whose plan is known already."""
    known = federation_of(plan.dataset, _histories(plan))
    if not isinstance(plan.method, Method):
        return Served(plan, None, {}, {}, known)
    shared, private = folder.model()
    around = surroundings(federation_of(plan.dataset, plan.split.train), plan.delta)
    model = plan.method.settled(around).model
    return Served(plan, model, shared, private, known)


def _located(ids: Ids, among: Ids) -> Index:
    """Where each raw id stands among others, compared as text; ``-1`` where it does not."""
    places = {str(raw): place for place, raw in enumerate(among.values.tolist())}
    return np.array([places.get(str(raw), -1) for raw in ids.values.tolist()], dtype=np.int32)


def _histories(plan: Plan) -> Interactions:
    """What people have seen: their training part, and for people new to the run what they showed."""
    parts = [plan.split.train, *([plan.split.support] if plan.split.support is not None else [])]
    users, items, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("users", "items", "values")
    )
    return ordered(Interactions(users, items, values))
