"""One record per exchange: what was claimed, what crossed, who was asked and who answered (as counts)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tacit.account.claim import Claim
from tacit.types import RoundFacts


@dataclass(frozen=True)
class Traffic:
    """Bytes (lengths of the encoded messages) and sparse rows, summed over the clients of an exchange.

    ``up`` and ``down`` are between clients and server; ``letters_out`` and ``letters_in`` between clients.

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

    def __add__(self, other: "Traffic") -> "Traffic":
        """Sum of two."""
        return Traffic(
            self.up + other.up,
            self.down + other.down,
            self.letters_out + other.letters_out,
            self.letters_in + other.letters_in,
            self.rows_up + other.rows_up,
            self.rows_out + other.rows_out,
            self.rows_in + other.rows_in,
        )

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
            **asdict(self.facts),
            "claim": self.claim.to_json(),
            "traffic": asdict(self.traffic),
            "diagnostics": dict(self.diagnostics),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "ExchangeRecord":
        """The record that :meth:`to_json` wrote."""
        names = ("round", "exchange", "population", "invited", "answered")
        facts = RoundFacts(**{name: line[name] for name in names})
        return cls(facts, Claim.from_json(line["claim"]), Traffic(**line["traffic"]), line["diagnostics"])
