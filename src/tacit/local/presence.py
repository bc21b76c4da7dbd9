"""What a client says of items themselves: whether it met them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.types import Array, Cohort, Index


def met(cohort: Cohort, chosen: Index) -> np.ndarray:
    """One row of bits per client: which of the chosen items it met.

    Example:
        >>> two = Cohort(
        ...     np.arange(2, dtype="i4"), np.array([0, 1, 3]), np.array([2, 0, 2], "i4"), np.ones(3, "f4"), 4
        ... )
        >>> met(two, np.array([2, 3], "i4")).tolist()
        [[1, 0], [1, 0]]
    """
    place = np.full(cohort.catalogue, -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    columns = place[cohort.items]
    clients = np.repeat(np.arange(len(cohort)), np.diff(cohort.offsets))
    bits = np.zeros((len(cohort), len(chosen)), dtype=np.uint8)
    bits[clients[columns >= 0], columns[columns >= 0]] = 1
    return bits


@dataclass(frozen=True)
class MetOrNot(LocalWork):
    """Plus one for an item of ``extras["entries"]`` that the client met, minus one for another."""

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Look the asked items up."""
        del received, private, inbox, keys
        entries: Array = cohort.extras["entries"]
        clients = np.arange(len(cohort))
        # Sorted (client, item) pairs: a client's items rise, so one search serves all clients.
        own = np.repeat(clients, np.diff(cohort.offsets)) * cohort.catalogue + cohort.items
        asked = clients[:, np.newaxis] * cohort.catalogue + entries.astype(np.int64)
        found = np.minimum(np.searchsorted(own, asked), max(len(own) - 1, 0))
        hit = own[found] == asked if len(own) else np.zeros(asked.shape, dtype=np.bool_)
        return Work({"entries": entries, "values": np.where(hit, 1.0, -1.0).astype(np.float32)}, {})


@dataclass(frozen=True)
class MetBits(LocalWork):
    """A bit for each item of the broadcast ``chosen`` (all items without it)."""

    chosen: str = "chosen"

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One row of bits per client."""
        del private, inbox, keys
        chosen = received.arrays.get(self.chosen, np.arange(cohort.catalogue, dtype=np.int32))
        return Work({"bits": met(cohort, chosen)}, {})


@dataclass(frozen=True)
class MetVector(LocalWork):
    """A client's history as one vector of length about one, for a randomiser of vectors.

    At first the items met, over the length of a ``history`` of so many items. Once the server says which
    items are ``chosen`` and how popular they are, the difference between the two over its usual length.
    """

    history: int
    centred: bool = False

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One row per client."""
        del private, inbox, keys
        if not self.centred:
            bits = met(cohort, np.arange(cohort.catalogue, dtype=np.int32))
            return Work({"vector": bits.astype(np.float32) / np.float32(np.sqrt(self.history))}, {})
        chosen, popularity = received.arrays["chosen"], received.arrays["expected"]
        difference = met(cohort, chosen) - popularity
        return Work({"vector": difference / usual_length(popularity)}, {})


def usual_length(popularity: Array) -> np.float32:
    """The length of the difference between a history and popularity, if items were independent.

    Example:
        >>> usual_length(np.full(4, 0.5))
        np.float32(1.0)
    """
    shares = np.clip(popularity.astype(np.float64), 0.0, 1.0)
    return np.float32(np.sqrt(np.maximum((shares * (1 - shares)).sum(), 1.0)))
