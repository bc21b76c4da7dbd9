"""What the whole run guarantees: the events of every exchange, composed per observer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.account.claim import Adjacency, Claim, Observer, Unit
from tacit.account.events import Event, NonPrivate, Nothing, Repeated
from tacit.account.local import of_one_interaction


@dataclass(frozen=True)
class Guarantee:
    """One line of the privacy report. ``epsilon=None``: nothing was proved for this observer."""

    observer: Observer
    unit: Unit
    adjacency: Adjacency
    epsilon: float | None
    delta: float
    mode: str
    assumes: tuple[str, ...]
    because: str = ""

    def to_json(self) -> dict[str, Any]:
        """One entry of ``privacy`` in a run's result."""
        return {
            "observer": self.observer.value,
            "unit": self.unit.value,
            "adjacency": self.adjacency.value,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mode": self.mode,
            "assumes": list(self.assumes),
            "because": self.because,
        }


@dataclass
class PrivacyLedger:
    """Collects claims in the order they were made; equal neighbours are kept once with a count."""

    delta: float = 1e-6
    mode: str = "accounted"
    claims: list[tuple[Claim, int]] = field(default_factory=list)

    def add(self, claim: Claim) -> None:
        """Count one exchange's claim."""
        if self.claims and self.claims[-1][0] == claim:
            self.claims[-1] = (claim, self.claims[-1][1] + 1)
        else:
            self.claims.append((claim, 1))

    def guarantees(self) -> tuple[Guarantee, ...]:
        """One line per observer who saw anything.

        Example:
            >>> ledger = PrivacyLedger()
            >>> ledger.add(Claim.unbounded("raw updates"))
            >>> [line.epsilon for line in ledger.guarantees() if line.observer is Observer.SERVER]
            [None]
        """
        whole = [self._guarantee(observer) for observer in Observer]
        finer = [
            self._of_one_interaction(observer, adjacency) for observer in Observer for adjacency in Adjacency
        ]
        return tuple(line for line in (*whole, *finer) if line is not None)

    def _told(self, observer: Observer) -> list[tuple[Claim, int]]:
        return [
            (claim, times) for claim, times in self.claims if not isinstance(claim.event(observer), Nothing)
        ]

    def _of_one_interaction(self, observer: Observer, adjacency: Adjacency) -> Guarantee | None:
        """The line for one interaction being there or not, or another one; only where answers go by item."""
        told, narrowed = self._told(observer), False
        found: list[tuple[Event, int]] = []
        for claim, times in told:
            own = of_one_interaction(claim.event(observer), adjacency)
            narrowed = narrowed or own is not None
            found.append((own or claim.event(observer), times))
        if not narrowed or any(isinstance(event, NonPrivate) for event, _ in found):
            return None
        # whatever else was seen is accounted as if the whole history were replaced
        line = self._composed(observer, told, _counted(found), Adjacency.REPLACE_ONE)
        return replace(line, unit=Unit.INTERACTION, adjacency=adjacency)

    def _guarantee(self, observer: Observer) -> Guarantee | None:
        told = self._told(observer)
        if not told:
            return None
        events = _counted([(claim.event(observer), times) for claim, times in told])
        replaced = any(claim.adjacency is Adjacency.REPLACE_ONE for claim, _ in told)
        return self._composed(
            observer, told, events, Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE
        )

    def _composed(
        self,
        observer: Observer,
        told: Sequence[tuple[Claim, int]],
        events: Sequence[tuple[Event, int]],
        adjacency: Adjacency,
    ) -> Guarantee:
        unit = told[-1][0].unit
        assumes = tuple(dict.fromkeys(line for claim, _ in told for line in claim.assumes.get(observer, ())))
        broken = list(dict.fromkeys(event.reason for event, _ in events if isinstance(event, NonPrivate)))
        if broken:
            because = "; ".join(broken)
            return Guarantee(observer, unit, adjacency, None, self.delta, self.mode, assumes, because)
        from tacit.account.accountant import epsilon  # scipy and dp_accounting load on first use

        repeated = [event if times == 1 else Repeated(event, times) for event, times in events]
        spent = epsilon(repeated, self.delta, adjacency)
        value = spent.value if spent.value < float("inf") else None
        assumes = tuple(dict.fromkeys((*assumes, *spent.assumes)))
        return Guarantee(observer, unit, adjacency, value, self.delta, self.mode, assumes)


def _counted(events: Sequence[tuple[Event, int]]) -> list[tuple[Event, int]]:
    """Equal events together: composition does not depend on order."""
    counts: dict[Event, int] = {}
    for event, times in events:
        counts[event] = counts.get(event, 0) + times
    return list(counts.items())
