"""What a client says about which items it has met: one bit each, as its protections left them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.kernels.responses import truth
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
            bits = truth(cohort.offsets, cohort.items, cohort.catalogue)
        return Work({"bits": bits}, {})
