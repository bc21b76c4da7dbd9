"""Fillers: items a person never rated, mixed in so that the rated set is harder to see.

They hide little. One upload gives ratings and rated set away (the values do), and fillers drawn anew in
each round intersect away (the ids do). The claim stays unbounded; the audit shows it.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.account.claim import Claim
from tacit.errors import TacitError
from tacit.kernels.sampling import draw_fillers
from tacit.protect.protection import Protection
from tacit.rng import Keys
from tacit.types import Cohort, RoundFacts


@dataclass(frozen=True)
class Fillers(Protection):
    """``rho`` times as many unrated items as rated ones, drawn without replacement.

    ``renew="round"`` draws anew in each round as published; ``"never"`` keeps each person's draw, so that
    comparing rounds tells nothing new.

    Formal guarantees:
        None. No observer's ε is bounded by it.

    ===========================  ====================================================
    edge case                    what happens
    ===========================  ====================================================
    rho x rated > unrated        all unrated items are fillers
    no ratings                   no fillers: an empty upload
    ===========================  ====================================================

    Example:
        >>> Fillers(2.0, renew="never")
        Fillers(rho=2.0, renew='never')
    """

    rho: float
    renew: Literal["round", "never"] = "round"

    def __post_init__(self) -> None:
        if self.rho <= 0:
            raise TacitError(
                f"fillers with rho={self.rho}", "give a number above 0, or leave the fillers out"
            )

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Draw each person's fillers."""
        drawn = keys.users(cohort.users, "fillers", round if self.renew == "round" else None)
        return replace(
            cohort, fillers=draw_fillers(cohort.offsets, cohort.items, drawn, self.rho, cohort.catalogue)
        )

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Fillers prove nothing, so the claim stays as it is."""
        del state, facts
        return claim
