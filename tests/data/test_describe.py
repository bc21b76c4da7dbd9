import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.describe import describe, gini
from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Features, Interactions, Scale


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_gini_is_half_the_relative_mean_difference(counts):
    total, number = sum(counts), len(counts)
    expected = sum(abs(a - b) for a in counts for b in counts) / (2 * number * total) if total else 0.0
    assert gini(np.array(counts)) == pytest.approx(expected, abs=1e-12)


def test_all_parts_of_a_small_log():
    log = Interactions(
        np.array([0, 0, 1], "i4"),
        np.array([0, 1, 0], "i4"),
        np.array([5, 0.5, 5], "f4"),
        np.array([0, 60, 30]),
    )
    features = Features(
        flags={"genres": np.array([[1, 0], [1, 1], [0, 0]], "u1")},
        numbers={"year": np.array([1999, np.nan, 2001], "f4")},
        labels={"genres": ("a", "b")},
    )
    told = describe(
        Dataset("toy", log, Ids(np.arange(2)), Ids(np.arange(3)), Scale(0.5, 5, 0.5), item_features=features)
    )
    assert (told["users"], told["items"], told["items_touched"], told["interactions"]) == (2, 3, 2, 3)
    assert told["density"] == pytest.approx(0.5)
    assert told["ratings"]["5"] == 2
    assert told["ratings"]["0.5"] == 1
    assert sum(told["ratings"].values()) == 3
    assert len(told["ratings"]) == 10
    assert told["time"] == {"first": "1970-01-01T00:00:00Z", "last": "1970-01-01T00:01:00Z"}
    assert told["per_user"]["100%"] == 2
    assert told["per_item"]["0%"] == 0
    assert told["most_popular_share"] == 1.0
    assert told["item_features"] == {"genres": "2 flags, 1.0 on average", "year": "numbers, 67% known"}
    json.dumps(told)


def test_implicit_logs_have_no_histogram_and_no_time():
    log = Interactions(np.array([0], "i4"), np.array([0], "i4"), np.array([7], "f4"))
    told = describe(Dataset("toy", log, Ids(np.arange(1)), Ids(np.arange(1)), None))
    assert (told["kind"], told["ratings"], told["time"]) == ("implicit", {}, None)
