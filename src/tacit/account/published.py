"""Tables of papers, computed the way the papers computed them, beside what is true of the algorithm.

PrivRec's Tables 3 and 4 print epsilons of DP-PrivRec. Every cell is Theorem 9 of Wang, Balle and
Kasiviswanathan (2019), general bound, at the best integer order with Mironov's conversion, for noise of
one replace-one sensitivity, composed once per **sampled client** (1000 M times) where the text says once
per round, and cut off after four decimals. The bound errs on the safe side; the algorithm spends less.
"""

import math
from dataclasses import dataclass
from typing import Any

from tacit.account import losses, renyi
from tacit.account.claim import Adjacency
from tacit.account.events import Event, FixedSize, Gaussian, Poisson, Sampled
from tacit.errors import TacitError, nearest

ROUNDS = 1000
NOISE = 2.0
"""Deviation of the noise on the sum in clip norms: the paper's z = 1 counts in sensitivities of two."""


@dataclass(frozen=True)
class Cell:
    """One printed number, ours for the same bound, and tight epsilons of the algorithm as it runs.

    ``fixed_size`` is for replace-one with a cohort of fixed size, ``poisson`` for add-remove with a Poisson
    sample of the same mean size; both for 1000 rounds.
    """

    row: str
    column: str
    paper: float
    ours: float
    fixed_size: float
    poisson: float

    def to_json(self) -> dict[str, Any]:
        """The cell as ``tacit reproduce`` prints it."""
        note = (
            f"tight at {ROUNDS} rounds: {self.fixed_size:.3f} (fixed cohort, replace-one), "
            f"{self.poisson:.3f} (poisson, add-remove)"
        )
        return {"row": self.row, "column": self.column, "paper": self.paper, "ours": self.ours, "note": note}


_DELTAS = ("1e-8", "1e-6", "1e-4")
_PRINTED: dict[str, dict[str, tuple[float, float, float]]] = {
    "privrec/table3": {
        "5/4800": (1.7439, 1.3602, 0.9764),
        "10/4800": (3.2117, 2.7511, 2.2535),
        "15/4800": (5.9705, 5.2030, 4.3074),
        "20/4800": (9.4736, 8.3223, 6.9235),
        "25/4800": (13.7047, 12.1696, 10.2052),
        "30/4800": (18.9107, 16.6081, 14.3056),
    },
    "privrec/table4": {
        "2/760": (2.2994, 1.8388, 1.3783),
        "5/760": (7.4618, 6.5408, 5.3932),
        "8/760": (16.2853, 14.3169, 12.0143),
        "10/760": (23.7651, 21.4626, 18.6182),
        "12/760": (34.5025, 30.0690, 25.4638),
        "15/760": (50.1537, 45.5485, 40.9433),
    },
}


def privrec_epsilon(cohort: int, population: int, delta: float, times: int | None = None) -> float:
    """DP-PrivRec's epsilon by the paper's bound; ``times`` compositions, by default the paper's 1000 M.

    Example:
        >>> privrec_epsilon(30, 4800, 1e-6)  # Table 3 prints 16.6081
        16.6081
    """
    one = renyi.fixed_size_any(FixedSize(cohort, population).rate, renyi.gaussian(2 / NOISE))
    value = renyi.to_epsilon_classic((ROUNDS * cohort if times is None else times) * one, delta)
    return math.floor(value * 1e4) / 1e4


def tables() -> tuple[str, ...]:
    """The tables this module regenerates.

    Example:
        >>> tables()
        ('privrec/table3', 'privrec/table4')
    """
    return tuple(_PRINTED)


def cells(table: str) -> tuple[Cell, ...]:
    """All cells of a table; the tight epsilons take a few seconds.

    Example:
        >>> cells("privrec/table5")
        Traceback (most recent call last):
        tacit.errors.TacitError: no table 'privrec/table5' here; did you mean 'privrec/table4'?
    """
    if table not in _PRINTED:
        raise TacitError(f"no table {table!r} here", nearest(table, _PRINTED))
    return tuple(cell for row, printed in _PRINTED[table].items() for cell in _row(row, printed))


def _row(row: str, printed: tuple[float, float, float]) -> tuple[Cell, ...]:
    cohort, population = map(int, row.split("/"))
    event = Gaussian(NOISE, 1.0)
    fixed = _tight(Sampled(event, FixedSize(cohort, population)), Adjacency.REPLACE_ONE)
    poisson = _tight(Sampled(event, Poisson(cohort / population)), Adjacency.ADD_REMOVE)
    return tuple(
        Cell(row, column, paper, privrec_epsilon(cohort, population, float(column)), tight, loose)
        for column, paper, tight, loose in zip(_DELTAS, printed, fixed, poisson, strict=True)
    )


def _tight(event: Event, adjacency: Adjacency) -> list[float]:
    """One composition serves all three deltas."""
    whole = losses.composed({event: ROUNDS}, adjacency, 1e-4)
    return [float(whole.get_epsilon_for_delta(float(delta))) for delta in _DELTAS]
