import numpy as np
import pytest

from tacit.data.load import load
from tacit.data.sources.frappe import contexts
from tacit.data.subset import narrowed
from tacit.errors import TacitError

HEADER = "user\titem\tcnt\tdaytime\tweekday\tisweekend\thomework\tcost\tweather\tcountry\tcity\n"
META = (
    "item\tpackage\tcategory\tdownloads\tdeveloper\ticon\tlanguage\tdescription\tname\tprice\trating"
    "\tshort desc\n"
)


def row(user, item, count, cost, city=0, country="United States"):
    return f"{user}\t{item}\t{count}\tmorning\tsunday\tweekend\tunknown\t{cost}\tsunny\t{country}\t{city}\n"


def made():
    log = row(1, 0, 5, "free") + row(0, 3, 2, "paid", 7) + row(1, 0, 10, "paid", 9) + row(0, 0, 1, "free")
    meta = (
        '0\tcom.a\tTools\t1\tA\ti\ten\t"long text\u2028 with "" quotes\tÄpp\tFree\t4.5\ts\n'
        "3\tcom.b\tunknown\t1\tB\ti\tde\tx\tBee\tunknown\tunknown\ts\n"
    )
    return {
        "frappe/frappe.csv": (HEADER + log, "utf-8"),
        "README.txt": ("x", "utf-8"),
        "frappe/meta.csv": (META + meta, "utf-8"),
    }


def test_pairs_are_distinct_and_counts_are_summed(packed):
    data = load("frappe:check=no", packed("frappe.zip", made()))
    log = data.interactions
    assert list(zip(log.users.tolist(), log.items.tolist(), log.values.tolist(), strict=True)) == [
        (0, 0, 1.0),
        (0, 1, 2.0),
        (1, 0, 15.0),
    ]
    assert data.scale is None


def test_what_is_public_about_an_app(packed):
    apps = load("frappe:check=no", packed("frappe.zip", made())).item_features
    assert set(apps.numbers) == {"rating"}
    assert [apps.labels["cost"][code] for code in apps.categories["cost"]] == ["free", "paid"]
    assert apps.categories["category"].tolist() == [0, -1]
    assert apps.labels["category"] == ("Tools",)
    assert apps.texts["title"].tolist() == ["Äpp", "Bee"]
    np.testing.assert_array_equal(apps.numbers["rating"], np.array([4.5, np.nan], "f4"))


def test_use_is_counted_in_the_log_that_is_kept_and_in_no_other(packed):
    whole = load("frappe:check=no", packed("frappe.zip", made()))
    first = whole.interactions.take(whole.interactions.users == 0)
    for log, uses in ((whole.interactions, [16, 2]), (first, [1, 2]), (first.take(first.items == 0), [1, 0])):
        kept = whole.keeping(log).item_features
        np.testing.assert_allclose(kept.numbers["count"], np.log1p(uses), rtol=1e-6)
        np.testing.assert_array_equal(kept.numbers["rating"], whole.item_features.numbers["rating"])
    again = whole.keeping(first).keeping(whole.interactions)
    np.testing.assert_allclose(again.item_features.numbers["count"], np.log1p([16, 2]), rtol=1e-6)
    people, things = np.array([True, False]), np.array([False, True])
    assert narrowed(whole, people, things, "part").item_features.from_log == ("count",)
    part = narrowed(whole.keeping(whole.interactions), people, things, "part")
    np.testing.assert_allclose(part.item_features.numbers["count"], np.log1p([2]), rtol=1e-6)


def test_situations_row_by_row(packed):
    folder = packed("frappe.zip", made())
    rows = contexts(load("frappe:check=no", folder), folder)
    assert rows.users.tolist() == [1, 0, 1, 0]
    assert rows.items.tolist() == [0, 1, 0, 0]
    assert rows.counts.tolist() == [5, 2, 10, 1]
    assert [rows.labels["city"][code] for code in rows.codes["city"]] == ["0", "7", "9", "0"]
    assert [rows.labels["cost"][code] for code in rows.codes["cost"]] == ["free", "paid", "paid", "free"]


def test_a_missing_column_is_refused(packed):
    files = {**made(), "frappe/frappe.csv": ("user\titem\n0\t1\n", "utf-8")}
    with pytest.raises(TacitError, match="line 1: expected the columns user item cnt"):
        load("frappe:check=no", packed("frappe.zip", files))
