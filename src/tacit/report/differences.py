"""Is one subject of a report better than another, or luckier? Paired over seeds, or else over people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.evaluate.significance import Comparison, compare_paired
from tacit.report.saved import Subject
from tacit.rng import SeededKeys

ENOUGH_SEEDS = 5


@dataclass(frozen=True)
class Differences:
    """Every subject against the first, on one metric; ``pairs`` says what the tests are over."""

    metric: str
    reference: str
    pairs: str
    many: int
    found: Mapping[str, Comparison]

    def told(self) -> str:
        """How the numbers came about, in words."""
        over = (
            f"{self.many} seeds: whether it would hold if all were trained again"
            if self.pairs == "seeds"
            else f"{self.many:,} people: whether it would hold for other people with these trained models; "
            f"methods need {ENOUGH_SEEDS} seeds"
        )
        return (
            f"Differences in {self.metric} from {self.reference}, with 95 % intervals, and p: Student’s "
            f"paired test over {over}. p is corrected after Holm for {len(self.found)} "
            f"comparison{'s' if len(self.found) > 1 else ''}, the intervals are not."
        )


def pairs(seeds: int) -> str:
    """What p-values are over: seeds where there are five (of methods), else people (of these models alone).

    Example:
        >>> pairs(4), pairs(5)
        ('people', 'seeds')
    """
    return "seeds" if seeds >= ENOUGH_SEEDS else "people"


def differences(told: Sequence[Subject], metric: str) -> Differences | None:
    """Paired differences from the first subject; none where the runs cannot be paired.

    Runs are paired if every subject has the same seeds: equal seeds split the data alike.
    """
    if len(told) < 2 or len({one.seeds for one in told}) > 1:
        return None
    over = pairs(len(told[0].runs))
    values = _by_seed(told, metric) if over == "seeds" else _by_person(told, metric)
    if not values:
        return None
    reference, many = told[0].label, len(values[told[0].label])
    found = compare_paired(values, reference, keys=SeededKeys(0))
    return Differences(metric, reference, over, many, {one.method: one for one in found})


def _by_seed(told: Sequence[Subject], metric: str) -> dict[str, list[float]]:
    values = {one.label: one.each(metric) for one in told}
    return values if all(values.values()) else {}


def _by_person(told: Sequence[Subject], metric: str) -> dict[str, list[float]]:
    """What each person adds to the metric, over the seeds that judged them; only people whom all judged."""
    tables = {one.label: one.per_person(metric) for one in told}
    known = [table.people for table in tables.values() if table is not None]
    if len(known) < len(told):
        return {}
    common = known[0]
    for people in known[1:]:
        common = np.intersect1d(common, people)
    if len(common) < 2:
        return {}
    return {label: table.of(common).tolist() for label, table in tables.items() if table is not None}
