"""One record per exchange: what was claimed, what crossed, who was asked and who answered (as counts)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import add
from typing import Any

from tacit.account.claim import Claim
from tacit.types import RoundFacts


@dataclass(frozen=True)
class Traffic:
    """Bytes (lengths of the encoded messages) and sparse rows, summed over the clients of an exchange.

    ``up`` and ``down`` are between clients and server; ``letters_out`` and ``letters_in`` between clients.
    Of the bytes up, ``ids_up`` say which rows are meant and ``values_up`` what they hold; the rest is
    headers.
    So it is with ``ids_down`` and ``values_down``. ``numbers_up`` and ``numbers_down`` count what crossed in
    numbers, as papers do.

    Example:
        >>> (Traffic(up=10) + Traffic(up=5, down=2)).total
        17
    """

    up: int = 0
    down: int = 0
    letters_out: int = 0
    letters_in: int = 0
    rows_up: int = 0
    rows_out: int = 0
    rows_in: int = 0
    ids_up: int = 0
    values_up: int = 0
    numbers_up: int = 0
    numbers_down: int = 0
    ids_down: int = 0
    values_down: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        """Sum of two."""
        return Traffic(*map(add, vars(self).values(), vars(other).values()))

    @property
    def total(self) -> int:
        """All bytes that crossed any wire; a letter crosses two (to the relay and from it)."""
        return self.up + self.down + self.letters_out + self.letters_in


@dataclass(frozen=True)
class ExchangeRecord:
    """What the ledger keeps of one exchange. It never holds anything about a single person."""

    facts: RoundFacts
    claim: Claim
    traffic: Traffic
    diagnostics: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """One line of ``ledger.jsonl``."""
        return {
            **{name: value for name, value in asdict(self.facts).items() if name != "received"},
            "claim": self.claim.to_json(),
            "traffic": asdict(self.traffic),
            "diagnostics": dict(self.diagnostics),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "ExchangeRecord":
        """The record that :meth:`to_json` wrote."""
        names = ("round", "exchange", "population", "invited", "answered")
        facts = RoundFacts(**{name: line[name] for name in names}, expected=line.get("expected", 0))
        return cls(facts, Claim.from_json(line["claim"]), Traffic(**line["traffic"]), line["diagnostics"])
