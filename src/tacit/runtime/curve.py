"""What a learning curve is drawn from: few metrics, of few people, the same in every round.

The curve is shown and never selected on. Ranking the whole catalogue for everybody after every few rounds
would take longer than training does, so a fixed draw of people stands for all; the last, full evaluation
is of everybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.evaluate.protocol import parse_metric
from tacit.rng import Keys
from tacit.split import Split
from tacit.types import Index

PEOPLE = 500
METRICS = 2


@dataclass(frozen=True)
class Watched:
    """The metrics of a curve, the people it follows, and the part of the split that holds them.

    ``people`` is ``None`` where the curve follows everybody: errors of ratings cost next to nothing.
    """

    metrics: tuple[str, ...]
    people: Index | None
    split: Split

    @classmethod
    def of(cls, split: Split, asked: Sequence[str], keys: Keys) -> "Watched":
        """The first metrics asked for: those of ratings over everybody, else those of rankings over some."""
        if not len(split.test):
            return cls((), None, split)
        parsed = [parse_metric(name) for name in asked]
        ratings = tuple(name.text for name in parsed if name.of_ratings)
        if ratings:
            return cls(ratings, None, split)
        ranked = tuple(name.text for name in parsed if name.stem != "coverage")[:METRICS]
        held = np.unique(split.test.users)
        if len(held) <= PEOPLE:
            return cls(ranked, None, split)
        drawn = keys.generator("curve").permutation(held)[:PEOPLE]
        people = np.sort(drawn).astype(np.int32)
        return cls(ranked, people, replace(split, test=split.test.take(np.isin(split.test.users, people))))
