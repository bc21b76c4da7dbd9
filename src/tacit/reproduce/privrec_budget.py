"""PrivRec's Tables 3 and 4: what DP-PrivRec spends, as printed and as it is.

All 36 printed numbers follow from one bound composed 1000 M times and cut off after four decimals
(:mod:`tacit.account.published`). Beside each stand tight epsilons of the same 1000 rounds.
"""

from collections.abc import Callable
from functools import partial

from tacit.account import published
from tacit.reproduce.table import Cell, Options, Reproduction

NOTES = (
    "columns are deltas; ours is Theorem 9 of Wang, Balle and Kasiviswanathan (2019) at the best whole "
    "order, composed 1000 M times, cut off after four decimals",
    "the algorithm has 1000 rounds: tight epsilons are 2.7 to 13 times smaller under the paper's adjacency",
    "the two tight columns state different things (who counts as a neighbour): compare down, never across",
)


def budget(table: str, title: str, options: Options) -> Reproduction:
    """All cells of one of the two tables."""
    del options
    cells = []
    for found in published.cells(table):
        told = found.to_json()
        cells.append(Cell(told["row"], told["column"], told["paper"], told["ours"], told["note"]))
    return Reproduction(table, title, tuple(cells), NOTES)


TABLES: dict[str, Callable[[Options], Reproduction]] = {
    "privrec/table3": partial(budget, "privrec/table3", "epsilon of DP-PrivRec, ML-1M (Table 3)"),
    "privrec/table4": partial(budget, "privrec/table4", "epsilon of DP-PrivRec, Frappe (Table 4)"),
}
