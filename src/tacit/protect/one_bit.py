"""One randomised bit about each of a few uniformly chosen entries: local differential privacy for vectors.

Nguyên et al. (2016), as FMF-LDP uses it. A report is the entry's number and a bit that is one with
probability ``(t (e^eps - 1) + e^eps + 1) / (2 e^eps + 2)`` for the value ``t`` projected on [-1, 1].
"""

from dataclasses import dataclass, replace
from typing import Any

from tacit.account.claim import Adjacency, Bound, Claim, Observer
from tacit.account.events import Nothing, PureLocal, Repeated, Shuffled
from tacit.errors import TacitError
from tacit.kernels.reports import draw_entries, one_bit_reports
from tacit.kernels.rotation import padded_shape
from tacit.protect.protection import Draws, Form, Protection
from tacit.rng import Keys
from tacit.types import Arrays, Cohort, RoundFacts

ONLY_THE_MODEL = "the server publishes nothing but the model, a sum that forgets who sent what"


def entry_count(catalogue: int, dim: int, *, rotated: bool) -> int:
    """How many entries a gradient has; a rotated one is padded to powers of two.

    Example:
        >>> entry_count(9781, 5, rotated=False), entry_count(9781, 5, rotated=True)
        (48905, 131072)
    """
    if not rotated:
        return catalogue * dim
    rows, columns = padded_shape(catalogue, dim)
    return rows * columns


def local_claim(claim: Claim, epsilon: float, reports: int, facts: RoundFacts, *, one_bit: bool) -> Claim:
    """What ``reports`` local reports per person are worth: to who sees them, and to who sees only their sum.

    Neighbours are two values of one person's whole history: "replace one", since silence is not randomised.
    """
    claim = replace(claim, adjacency=Adjacency.REPLACE_ONE)
    if facts.answered == 0:
        return claim.with_event(Observer.SERVER, Nothing()).with_event(Observer.RELEASE, Nothing())
    claim = claim.with_event(Observer.SERVER, Repeated(PureLocal(epsilon), reports))
    summed = Repeated(Shuffled(epsilon, facts.answered, one_bit), reports)
    return claim.with_event(Observer.RELEASE, summed, (ONLY_THE_MODEL,))


@dataclass(frozen=True)
class OneBit(Protection):
    """``reports`` entries drawn with replacement, each answered with one ``epsilon``-private bit.

    Asks the local work for the entries only (``entries`` in the cohort's extras) and expects their
    ``values``. ``scale`` multiplies a value before it is projected on [-1, 1]: a bit says most about values
    near the ends.

    Formal guarantees:
        Each report is ``epsilon``-locally private for a person's whole history (ratio of the probabilities of
        any output at most ``e^epsilon``, attained at the ends of the range); ``reports`` of them compose to
        ``reports * epsilon`` per round. The entry's number is drawn independently of the data.

    ============================  ========================================================
    edge case                     what happens
    ============================  ========================================================
    a value beyond [-1, 1]        projected: biased for that value, private all the same
    the same entry drawn twice    two independent bits about it
    a person without history      takes no part
    ============================  ========================================================
    """

    epsilon: float
    reports: int
    dim: int
    rotated: bool = False
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.scale <= 0 or self.reports < 1:
            raise TacitError(
                f"one-bit with epsilon={self.epsilon}, scale={self.scale}, reports={self.reports}",
                "give epsilon and scale above 0 and at least 1 report",
            )

    @property
    def leaves(self) -> Form:
        """Reports."""
        return Form.REPORTS

    def on_cohort(self, cohort: Cohort, keys: Keys, round: int) -> Cohort:
        """Draw each person's entries."""
        entries = entry_count(cohort.catalogue, self.dim, rotated=self.rotated)
        words = keys.words(cohort.users, "one-bit/entries", round, self.reports)
        drawn = draw_entries(words, entries)
        return replace(cohort, extras={**cohort.extras, "entries": drawn})

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """One bit about each value; the values themselves stay."""
        del bound, state
        entries: Any = update["entries"]
        values: Any = update["values"]
        words = draws.words(entries.shape[1])
        return {"reports": one_bit_reports(words, entries, values, epsilon=self.epsilon, scale=self.scale)}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """So many local reports; a uniformly chosen coordinate and one bit has the stronger clone bound."""
        del state
        return local_claim(claim, self.epsilon, self.reports, facts, one_bit=True)
