"""PrivRec's Tables 1 and 2: one protocol for all, ceilings of what features can tell, twins that agree."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tacit.data import load
from tacit.reproduce import privrec_accuracy
from tacit.reproduce.privrec_accuracy import (
    FRAPPE,
    GOOD,
    HITS_10,
    ML_1M,
    TABLE_1,
    TABLE_2,
    bar,
    cells_of,
    mean_popularity,
    oracle,
)
from tacit.reproduce.privrec_protocol import PRINTED, Row, case, trained
from tacit.reproduce.table import Options, reproduced, tables
from tacit.split import split

DEMO = "demo:users=160,items=50,mean=14"
QUICK = Options(quick=True)
GOLDENS = tomllib.loads((Path(__file__).parent / "goldens" / "privrec.toml").read_text())


@pytest.fixture(scope="module")
def demo():
    return case(DEMO, 1, QUICK)


def test_every_table_is_there():
    wanted = {"table1", "table2", "table3", "table4", "dp", "literal"}
    assert {f"privrec/{name}" for name in wanted} <= set(tables())
    for rows, printed in ((ML_1M, TABLE_1), (FRAPPE, TABLE_2)):
        assert set(printed) <= {row.label for row in rows}


def test_the_printed_table_contradicts_its_own_definitions():
    """A hit at ranks 6 to 10 adds at most 1 / log2(7) to nDCG@10; every printed row claims more."""
    for row in TABLE_1.values():
        hits, gains = row[1] - row[0], row[5] - row[4]
        assert gains > hits / np.log2(7)
    assert TABLE_2["FCF"][1] < TABLE_2["FCF"][0]


def test_equal_seeds_give_every_row_the_same_people_and_others_give_others(demo):
    again, other = case(DEMO, 1, QUICK), case(DEMO, 2, QUICK)
    np.testing.assert_array_equal(demo.parts.test.items, again.parts.test.items)
    assert demo.parts.test_users.tolist() != other.parts.test_users.tolist()
    assert not set(demo.parts.train_users) & set(demo.parts.test_users)


def test_validation_people_are_training_people(demo):
    tuning = case(DEMO, 1, QUICK, validation=True)
    assert set(tuning.parts.test_users) <= set(demo.parts.train_users)
    assert not set(tuning.parts.test_users) & set(tuning.parts.train_users)


def test_only_ratings_above_three_are_hits(demo):
    pop = trained(Row("popularity", "pop"), demo, QUICK)
    ranks = demo.judged(pop, (HITS_10,)).ranks["positives-alone"]
    log = demo.parts.test
    assert len(ranks.items) == int((log.values > 3).sum()) < len(log)


@pytest.mark.parametrize("row", ML_1M, ids=lambda row: row.label)
def test_every_row_trains_and_is_judged_by_the_paper_s_metrics(demo, row):
    settings = {name: value for name, value in row.settings.items() if name != "preset"}
    found = demo.judged(trained(Row(row.label, row.method, settings), demo, QUICK))
    assert set(PRINTED) <= set(found.metrics)
    assert all(0 <= value <= 1 for value in found.metrics.values())


def test_in_one_place_privrec_learns_exactly_what_it_learns_on_devices(demo):
    ours, central = (
        demo.judged(trained(Row(twin, "privrec", {"ids": 0, "twin": twin}), demo, QUICK)).metrics
        for twin in ("none", "central")
    )
    assert ours == central


def test_the_oracle_of_groups_is_above_their_popularity(demo):
    groups, answers = (demo.judged(make(demo, "genres"), (HITS_10,)) for make in (mean_popularity, oracle))
    assert answers.metrics[HITS_10] > groups.metrics[HITS_10]
    assert groups.ranks["positives-alone"].tied.any()


def test_cells_say_the_spread_the_ties_and_the_paper_s_number(demo):
    found = [demo.judged(mean_popularity(case(DEMO, seed, QUICK), "genres")) for seed in (1, 2)]
    cells = {cell.column: cell for cell in cells_of("PrivRec", found, TABLE_1)}
    assert cells["Hits@10"].paper == 0.160
    assert cells["nDCG@30"].paper == 0.210
    assert "over 2 seeds" in cells["Hits@10"].note
    assert "by how ties fall" in cells["Hits@10"].note
    assert cells["recall@10, one list"].paper is None


def test_the_bar_is_a_difference_on_the_same_people(demo):
    pop, noise = (demo.judged(trained(Row(name, name), demo, QUICK)) for name in ("pop", "random"))
    gaps = {cell.column: cell.ours for cell in bar({GOOD: [pop], "FCF": [noise]})}
    assert gaps["Hits@10"] == pytest.approx(pop.metrics[HITS_10] - noise.metrics[HITS_10], abs=1e-4)


@pytest.mark.data
def test_frappe_s_use_count_knows_training_people_alone(real_data):
    at = case("frappe", 1, Options(real_data, quick=True))
    counts = np.expm1(at.dataset.item_features.numbers["count"])
    parts = split(load("frappe", real_data), "by-user", seed=1)
    wanted = np.bincount(parts.train.items, parts.train.values, at.dataset.items)
    np.testing.assert_allclose(counts, wanted, rtol=1e-4)
    assert at.liked is None


@pytest.mark.data
@pytest.mark.parametrize("name", ["ml-1m", "frappe"])
def test_ceilings_and_baselines_are_what_they_were(real_data, name):
    """Seed 1; none of these depends on training that takes long."""
    options = Options(real_data)
    at = case(name, 1, options)
    ceilings = getattr(privrec_accuracy, f"{name.replace('-', '_').upper()}_CEILINGS")
    found = {label: at.judged(make(at), (HITS_10,)) for label, make in ceilings.items()}
    found["popularity"] = at.judged(trained(Row("popularity", "pop"), at, options), (HITS_10,))
    for label, golden in GOLDENS[name]["fast"].items():
        assert found[label].metrics[HITS_10] == pytest.approx(golden, abs=GOLDENS["tolerance"]), label


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-1m", "frappe"])
def test_methods_are_what_they_were(real_data, name):
    """Seed 1, whole runs."""
    options = Options(real_data)
    at, rows = case(name, 1, options), {row.label: row for row in (ML_1M if name == "ml-1m" else FRAPPE)}
    for label, golden in GOLDENS[name]["slow"].items():
        found = at.judged(trained(rows[label], at, options), (HITS_10,)).metrics[HITS_10]
        assert found == pytest.approx(golden, abs=GOLDENS["tolerance"]), label


@pytest.mark.data
def test_the_quick_form_of_table_2_has_every_row(real_data):
    found = reproduced("privrec/table2", Options(real_data, quick=True))
    assert {row.label for row in FRAPPE} <= {cell.row for cell in found.cells}
    assert any("quick" in note for note in found.notes)
    assert all(cell.ours is not None for cell in found.cells)
