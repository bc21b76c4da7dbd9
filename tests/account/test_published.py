import json
from pathlib import Path

import pytest

from tacit.account.published import cells, privrec_epsilon, tables
from tacit.errors import TacitError

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "dp_privrec.json").read_text())
ROWS = {row["row"]: row for row in GOLDEN["rows"]}


@pytest.fixture(scope="module")
def all_cells():
    return [cell for table in tables() for cell in cells(table)]


def test_all_36_cells_to_the_printed_digit(all_cells):
    assert len(all_cells) == 36
    for cell in all_cells:
        at = GOLDEN["deltas"].index(float(cell.column))
        assert cell.paper == ROWS[cell.row]["printed"][at]
        assert f"{cell.ours:.4f}" == f"{cell.paper:.4f}"


def test_tight_epsilons_stand_beside_each_cell(all_cells):
    for cell in all_cells:
        at = GOLDEN["deltas"].index(float(cell.column))
        assert cell.fixed_size == pytest.approx(ROWS[cell.row]["fixed_replace_one"][at], abs=6e-4)
        assert cell.poisson == pytest.approx(ROWS[cell.row]["poisson_add_remove"][at], abs=8e-4)
        assert cell.poisson < cell.fixed_size < cell.ours


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: row["row"])
def test_same_bound_composed_once_per_round(row):
    cohort, population = map(int, row["row"].split("/"))
    found = [privrec_epsilon(cohort, population, delta, times=1000) for delta in GOLDEN["deltas"]]
    assert found == pytest.approx(row["same_bound_1000_rounds"], abs=6e-4)


def test_cells_have_the_contract_s_fields(all_cells):
    cell = all_cells[0].to_json()
    assert list(cell) == ["row", "column", "paper", "ours", "note"]
    assert (cell["row"], cell["column"], cell["paper"], cell["ours"]) == ("5/4800", "1e-8", 1.7439, 1.7439)


def test_unknown_tables_are_refused():
    with pytest.raises(TacitError, match="privrec/table3"):
        cells("privrec/table33")
