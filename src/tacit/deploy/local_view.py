"""What a device can tell its owner with no network: the top of the list, what was learned, and from what."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tacit.config.top import Recommended, best_places, top
from tacit.deploy.about import RunAbout
from tacit.deploy.cohort import Owner, federation_held
from tacit.deploy.history import History
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError
from tacit.evaluate.scorer import Scorer
from tacit.models.model import Model
from tacit.rng import SystemKeys
from tacit.types import Array, Cohort, Floats

TOGETHER = 64  # histories folded in at once when influences are computed


class Learned(NamedTuple):
    """One private array: how large it is, and how long as a vector."""

    name: str
    shape: tuple[int, ...]
    norm: float


class Influence(NamedTuple):
    """What one entry does to the list: without it, ``changed`` of the top would be other items.

    ``lift`` is how much it moves the mean score of the present top.
    """

    item: str
    title: str
    value: float
    changed: int
    lift: float


@dataclass(frozen=True)
class LocalView:
    """One person, one run, as their device sees them.

    ``trained`` says whether the private state comes from taking part; else it was folded in here, from the
    history alone, as for a newcomer.
    """

    person: str
    about: RunAbout
    round: int
    model: Model
    shared: Mapping[str, Array]
    private: Mapping[str, Array]
    owner: Owner
    cohort: Cohort
    trained: bool

    @classmethod
    def of(cls, store: DeviceStore, person: str, run: str = "") -> "LocalView":
        """The person's view of a run (the newest with a model, by default)."""
        about, round, shared = _newest(store, run)
        owner = Owner(store.history(person), store.profile(person))
        held = federation_held(about, [owner])
        if not len(held.items):
            raise TacitError(
                f"none of {person!r}'s {len(owner.history)} entries is in the catalogue of run {about.run!r}",
                "import a history with the run's item ids",
            )
        cohort = held.cohort(np.zeros(1, dtype=np.int32))
        model = about.method().model
        kept = store.private(person, about.run)
        first = model.private(cohort.users, SystemKeys(store.secret()))
        trained = not model.adapts and bool(kept) and set(first) <= set(kept)
        private = kept if trained else model.folded_in(shared, cohort)
        return cls(person, about, round, model, shared, private, owner, cohort, trained)

    @cached_property
    def scores(self) -> Floats:
        """One number per item of the catalogue."""
        return _scores(self.model.scorer(self.shared, self.private), 0)

    def top(self, k: int) -> list[Recommended]:
        """The best items the person has not met."""
        return top(self.scores, self.cohort.items, k, self.about.items, self.about.titles())

    def learned(self) -> list[Learned]:
        """The private arrays, described: numbers that mean nothing one by one."""
        return [
            Learned(name, array.shape[1:], float(np.linalg.norm(array.astype(np.float64))))
            for name, array in sorted(self.private.items())
        ]

    def nearest(self, k: int) -> list[Recommended]:
        """The items whose vectors point most nearly where the person's does (cosine), met ones included.

        Empty where the model has no such pair of vectors.
        """
        mine, items = self.private.get("user"), self.shared.get("items")
        if mine is None or items is None or mine.ndim != 2 or mine.shape[1:] != items.shape[1:]:
            return []
        lengths = np.linalg.norm(items, axis=1) * np.linalg.norm(mine[0])
        cosine = (items @ mine[0]) / np.where(lengths > 0, lengths, 1.0)
        nobody = np.zeros(0, dtype=np.int32)
        return top(cosine, nobody, k, self.about.items, self.about.titles())

    def refolded(self) -> Floats:
        """Scores with a taste worked out anew from the whole history: one step of :meth:`influences`."""
        return self._folded([self.cohort.items.tolist()])[0]

    def influences(self, k: int) -> list[Influence]:
        """For every entry: what the top would be without it. Strongest first.

        Each history less one entry is folded in anew and compared with the whole history folded in the
        same way, so that both sides of the comparison are made alike; no network, nothing is kept.
        """
        everything = self.refolded()
        best = best_places(everything, self.cohort.items, k)
        entries = self.cohort.items.tolist()
        if len(entries) < 2:
            return []
        titles, found = self.about.titles(), []
        for start in range(0, len(entries), TOGETHER):
            part = entries[start : start + TOGETHER]
            without = self._folded([[item for item in entries if item != left] for left in part])
            for left, scores in zip(part, without, strict=True):
                others = best_places(scores, self.cohort.items, k)
                found.append(
                    Influence(
                        self.about.items[left],
                        titles[left],
                        float(self.cohort.values[entries.index(left)]),
                        len(set(best.tolist()) - set(others.tolist())),
                        float(everything[best].mean() - scores[best].mean()),
                    )
                )
        return sorted(found, key=lambda line: (-line.changed, -abs(line.lift), line.item))

    def _folded(self, kept: list[list[int]]) -> list[Floats]:
        """Scores of the person with only these entries, one list after the other."""
        values = dict(zip(self.cohort.items.tolist(), self.cohort.values.tolist(), strict=True))
        owners = [
            self.owner._replace(
                history=History(
                    tuple(self.about.items[item] for item in items),
                    np.array([values[item] for item in items], dtype=np.float32),
                )
            )
            for items in kept
        ]
        held = federation_held(self.about, owners)
        private = self.model.folded_in(self.shared, held.cohort(np.arange(len(kept), dtype=np.int32)))
        scorer = self.model.scorer(self.shared, private)
        return [_scores(scorer, row) for row in range(len(kept))]


def _scores(scorer: Scorer, row: int) -> Floats:
    return np.asarray(scorer.scores(np.array([row], dtype=np.int32))[0], dtype=np.float64)


def _newest(store: DeviceStore, run: str) -> tuple[RunAbout, int, dict[str, Array]]:
    """A run with its kept model: the one asked for, or the newest that has one."""
    for name in [run] if run else reversed(store.runs()):
        kept = store.model(name)
        if kept is not None:
            return store.run(name), *kept
    raise TacitError(
        "this device holds no model yet",
        "let it take part once (tacit device DIR --server URL), then ask again",
    )
