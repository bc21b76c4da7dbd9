"""Bytes of a whole run, per client and round and in total."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tacit.ledger.record import ExchangeRecord, Traffic


@dataclass
class TrafficLedger:
    """Adds exchanges up; it only grows.

    Example:
        >>> TrafficLedger().summary()["total_bytes"]
        0
    """

    setup: Traffic = field(default_factory=Traffic)
    setup_clients: int = 0
    rounds: Traffic = field(default_factory=Traffic)
    client_rounds: int = 0
    by_exchange: dict[str, tuple[Traffic, int]] = field(default_factory=dict)

    def add(self, record: ExchangeRecord) -> None:
        """Count one exchange; round ``-1`` is set-up."""
        if record.facts.round < 0:
            self.setup += record.traffic
            self.setup_clients = max(self.setup_clients, record.facts.answered)
            return
        self.rounds += record.traffic
        self.client_rounds += record.facts.answered
        before, clients = self.by_exchange.get(record.facts.exchange, (Traffic(), 0))
        self.by_exchange[record.facts.exchange] = (before + record.traffic, clients + record.facts.answered)

    def add_all(self, records: Iterable[ExchangeRecord]) -> None:
        """Count several."""
        for record in records:
            self.add(record)

    def summary(self) -> dict[str, float]:
        """The ``traffic`` part of a run's result."""
        each, setup = max(1, self.client_rounds), max(1, self.setup_clients)
        up, down = self.rounds.up + self.rounds.letters_out, self.rounds.down + self.rounds.letters_in
        return {
            "up_bytes_per_client_round": round(up / each, 2),
            "down_bytes_per_client_round": round(down / each, 2),
            "letter_bytes_per_client_round": round(self.rounds.letters_out / each, 2),
            "id_bytes_up_per_client_round": round(self.rounds.ids_up / each, 2),
            "value_bytes_up_per_client_round": round(self.rounds.values_up / each, 2),
            "id_bytes_down_per_client_round": round(self.rounds.ids_down / each, 2),
            "value_bytes_down_per_client_round": round(self.rounds.values_down / each, 2),
            "numbers_up": self.rounds.numbers_up,
            "numbers_down": self.rounds.numbers_down,
            "total_bytes": self.rounds.total + self.setup.total,
            "setup_bytes_per_client": round(self.setup.total / setup, 2),
        }
