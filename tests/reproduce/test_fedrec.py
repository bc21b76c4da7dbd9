"""FedRec++'s tables from real runs: the paper's numbers, within tolerances written down beforehand."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tacit.data import load
from tacit.errors import TacitError
from tacit.reproduce.fedrec import CATALOGUE, TABLE_2, TABLE_3, _errors, _plan, table3
from tacit.reproduce.table import Options, reproduced, tables

GOLDENS = tomllib.loads((Path(__file__).parent / "goldens" / "fedrec.toml").read_text())


@pytest.mark.data
@pytest.mark.parametrize("case", ["fedrec-0", "fedrec-3", "fedrec++-1"])
@pytest.mark.parametrize("name", ["ml-100k", pytest.param("ml-1m", marks=pytest.mark.slow)])
def test_table_2(name, case, real_data):
    method, rho = case.rsplit("-", 1)
    dataset, golden = load(CATALOGUE[name], real_data), GOLDENS[name][case]
    found = [
        _errors(_plan(dataset, name, method, {"rho": float(rho)}, fold, Options(real_data)))
        for fold in range(1, 6)
    ]
    assert (
        np.abs(np.mean(found, axis=0) - [golden["mae"], golden["rmse"]]).max() <= GOLDENS[name]["tolerance"]
    )


@pytest.mark.data
def test_table_3_follows_the_papers_counting(real_data):
    """Within 1.5 %: the paper's folds and draws of denoisers are its own."""
    cells = table3(Options(real_data, quick=True)).cells
    compared = [(cell.paper, cell.ours) for cell in cells if cell.paper is not None]
    assert len(compared) == 11
    assert max(abs(ours - paper) / paper for paper, ours in compared) < 0.015


def test_every_printed_cell_is_asked_for():
    assert len(TABLE_2) == 14
    assert len(TABLE_3) == 8
    assert {"fedrec/table2", "fedrec/table3"} <= set(tables())
    with pytest.raises(TacitError, match="did you mean 'fedrec/table2'"):
        reproduced("fedrec/tabel2", Options())
