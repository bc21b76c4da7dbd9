"""How PrivRec's methods are judged here: strangers adapt to half of what they did and are asked for the rest.

80 % of the people train. A test person's history is halved at random; the device adapts the model to the
first half, and each positive of the second is ranked alone against all items that its owner never met in any
part (section 3.3 of the paper). With one positive at a time nDCG@k is 1 / log2(rank + 1). Hits are averaged
over a person's positives, then over people. Equal scores are settled at random; the best and the worst way
to settle them are told beside. A seed decides split, start and draws: equal seeds, equal people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.config.catalogue import baselines, built, resolved_settings
from tacit.data import Dataset, load
from tacit.evaluate.protocol import Evaluation, evaluate
from tacit.evaluate.ranking import hit_rate
from tacit.evaluate.scorer import Scorer
from tacit.models.baselines import Known
from tacit.reproduce.table import Options
from tacit.rng import SeededKeys
from tacit.runtime.run import Plan, federation_of, personalised
from tacit.runtime.simulate import Execution, World, new_world, one_round, set_up
from tacit.split import Split, split, validation_part

CUTS = (5, 10, 20, 30)
ALONE = "[positives-alone]"
PRINTED = tuple(f"{stem}@{k}{ALONE}" for stem in ("hr", "ndcg") for k in CUTS)
WHOLE = ("hr@10", "recall@10", "ndcg@10")
QUICK_ROUNDS = 5


@dataclass(frozen=True)
class Row:
    """One line of a table: a method or baseline, what is changed in its defaults, what the paper prints."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Case:
    """One data set cut by one seed; held-out items rated above ``liked`` count as positives."""

    dataset: Dataset
    parts: Split
    seed: int
    liked: float | None

    def judged(self, scorer: Scorer, metrics: Sequence[str] = (*PRINTED, *WHOLE)) -> Evaluation:
        """A model's metrics under the one protocol."""
        least = (
            None if self.liked is None else float(np.nextafter(np.float32(self.liked), np.float32(np.inf)))
        )
        return evaluate(
            scorer,
            self.parts,
            metrics=metrics,
            keys=SeededKeys(self.seed),
            catalogue=self.dataset.items,
            relevant_from=least,
        )


def case(name: str, seed: int, options: Options, *, validation: bool = False) -> Case:
    """A data set and its ``by-user`` split; with ``validation`` its training people are cut once more."""
    dataset = load(name, options.data_dir)
    parts = split(dataset, "by-user", seed=seed)
    if validation:
        parts = validation_part(parts, seed, share=0.2)
    return Case(dataset.keeping(parts.train), parts, seed, None if dataset.scale is None else 3.0)


def world_of(row: Row, at: Case, options: Options) -> World:
    """The row's federation before its first round."""
    settings = resolved_settings(row.method, row.settings, at.dataset.name)
    if options.quick:
        settings["rounds"] = min(settings["rounds"], QUICK_ROUNDS)
    method = built(row.method, settings)
    federation = federation_of(at.dataset, at.parts.train)
    return new_world(method, federation, SeededKeys(at.seed), Execution(options.threads))


def scorer_of(world: World, at: Case) -> Scorer:
    """The model as it stands, adapted on the devices of those who are asked."""
    plan = Plan(world.method.name, world.method, at.dataset, at.parts, at.seed)
    return world.method.model.scorer(world.server.shared, personalised(world, plan, at.parts.test_users))


def trained(row: Row, at: Case, options: Options) -> Scorer:
    """A row from start to end."""
    if row.method in baselines():
        known = Known(
            at.parts.train, at.dataset.users, at.dataset.items, SeededKeys(at.seed), at.parts.support
        )
        return baselines()[row.method].fit(
            known, **resolved_settings(row.method, row.settings, at.dataset.name)
        )
    world = world_of(row, at, options)
    set_up(world)
    for _ in range(world.method.rounds):
        one_round(world)
    return scorer_of(world, at)


def ties_told(found: Evaluation) -> str:
    """Hits@10 with ties settled in the worst and in the best way, where ties decide anything."""
    ranks = found.ranks["positives-alone"]
    share = float(ranks.tied.mean())
    if share < 0.01:
        return ""
    worst, best = (float(hit_rate(ranks.settled(way), 10).mean()) for way in ("worst", "best"))
    return f"{share:.0%} tie; {worst:.3f} to {best:.3f} by how ties fall"
