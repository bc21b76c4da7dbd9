"""What a client says about which items it has met: one bit each, as its protections left them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.kernels.responses import respond
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.rng import Keys
from tacit.types import Array, Cohort


@dataclass(frozen=True)
class OwnBits(LocalWork):
    """The bits of the cohort's ``extras``; without a protection that made them, the truth."""

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Send the bits."""
        del received, private, inbox, keys
        bits = cohort.extras.get("bits")
        if bits is None:
            silent = np.zeros(len(cohort), dtype=np.uint64)
            bits = respond(cohort.offsets, cohort.items, silent, cohort.catalogue, 0.0)
        return Work({"bits": bits}, {})
