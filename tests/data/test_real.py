"""The publishers' own archives, where the machine has them."""

import time

import numpy as np
import pytest

from tacit.data.describe import describe
from tacit.data.load import known, load
from tacit.data.sources import frappe, lastfm, netflix
from tacit.split import NAMES, split, validation_part

pytestmark = pytest.mark.data


def there(name):
    if not {entry.name: entry.available for entry in known()}[name]:
        pytest.skip(f"{name} is not in TACIT_DATA")


@pytest.mark.parametrize(
    ("spec", "users", "items", "rows"),
    [
        ("ml-100k", 943, 1682, 100_000),
        ("ml-1m", 6040, 3706, 1_000_209),
        ("ml-1m:catalogue=listed", 6040, 3883, 1_000_209),
        ("ml-1m:catalogue=ids", 6040, 3952, 1_000_209),
        ("ml-latest-small", 610, 9724, 100_836),
        ("ml-latest-small:catalogue=listed", 610, 9742, 100_836),
        ("lastfm-2k", 1892, 17_632, 92_834),
        ("frappe", 957, 4082, 18_842),
        ("netflix5k5k:copy=3", 4843, 3586, 155_872),
        ("ml-10m", 69_878, 10_677, 10_000_054),
        ("ml-20m", 138_493, 26_744, 20_000_263),
    ],
)
def test_published_counts(spec, users, items, rows):
    there(spec.partition(":")[0])
    data = load(spec)
    assert (data.users, data.items, len(data.interactions)) == (users, items, rows)


def test_figures_the_publishers_give():
    for name in ("ml-1m", "lastfm-2k", "frappe", "netflix5k5k"):
        there(name)
    films = load("ml-1m")
    told = describe(films)
    assert list(told["ratings"].values()) == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert (int(films.interactions.times.min()), int(films.interactions.times.max())) == (
        956703932,
        1046454590,
    )
    assert told["per_user"]["0%"] == 20
    assert len(films.item_features.labels["genres"]) == 18
    assert all((codes >= 0).all() for codes in films.user_features.categories.values())
    music = load("lastfm-2k")
    assert (music.interactions.values.min(), music.interactions.values.max()) == (1, 352_698)
    assert music.interactions.values.astype(np.float64).sum() == 69_183_975
    assert lastfm.tags(music).counts.shape == (17_632, 11_946)
    apps = load("frappe")
    rows = frappe.contexts(apps)
    assert rows.counts.sum() == 7_824_276
    assert len(rows.users) == 96_203
    assert [len(rows.labels[name]) for name in frappe.CONTEXTS] == [7, 7, 2, 3, 2, 9, 80, 233]
    parts = netflix.published_parts(load("netflix5k5k"), "2")
    assert [len(part) for part in parts] == [73_291, 4_645, 77_936]


def test_loading_and_splitting_ml_1m_is_quick():
    there("ml-1m")
    started = time.perf_counter()
    films = load("ml-1m")
    assert time.perf_counter() - started < 2.0
    for name in NAMES:
        started = time.perf_counter()
        parts = split(films, name, seed=1)
        assert time.perf_counter() - started < 0.5, name
        assert len(validation_part(parts, seed=1).test)
