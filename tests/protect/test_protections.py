"""Fillers come from what a person did not rate; the grid rounds and comes back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.protect.grid import Grid
from tacit.protect.protection import Chain, none
from tacit.protect.pseudo_items import Fillers
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation
from tacit.types import RoundFacts, Rows

FACTS = RoundFacts(0, "train", 10, 10, 10)


def drawn(fillers, round, seed=0):
    federation = tiny_federation(20, 12, seed)
    cohort = federation.cohort(federation.people)
    return cohort, fillers.on_cohort(cohort, SeededKeys(1), round).fillers


@given(st.sampled_from([0.5, 1.0, 2.0, 30.0]), st.integers(0, 40))
def test_fillers_are_unrated_distinct_and_as_many_as_asked(rho, seed):
    cohort, fillers = drawn(Fillers(rho), 0, seed)
    for client in range(len(cohort)):
        rated = set(cohort.items[cohort.offsets[client] : cohort.offsets[client + 1]].tolist())
        mine = fillers.ids[fillers.starts[client] : fillers.starts[client] + fillers.lengths[client]].tolist()
        assert len(set(mine)) == len(mine) == min(round(rho * len(rated)), 12 - len(rated))
        assert not rated & set(mine)


def test_kept_fillers_stay_and_fresh_ones_change():
    kept, fresh = Fillers(1.0, "never"), Fillers(1.0)
    assert np.array_equal(drawn(kept, 0)[1].ids, drawn(kept, 5)[1].ids)
    assert not np.array_equal(drawn(fresh, 0)[1].ids, drawn(fresh, 5)[1].ids)


@given(st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=8), st.integers(1, 40))
def test_the_grid_rounds_to_the_nearest_step_and_back(numbers, bits):
    one = np.zeros(1, "i8")
    values = np.array([numbers], dtype=np.float64)
    sent = Grid(bits).on_client(
        {"items": Rows(one, one + 1, np.zeros(1, "i4"), values)}, None, None, np.zeros(1, "u8")
    )
    steps = sent["items"].values
    assert steps.dtype == np.int64
    back, _ = Grid(bits).on_server({"items": steps, "items.count": one}, None, None, FACTS, SeededKeys(0))
    assert np.abs(back["items"] - values).max() <= 2.0 ** -(bits + 1)
    assert back["items.count"].dtype == np.int64


def test_refusals_name_the_remedy():
    with pytest.raises(TacitError, match="above 0"):
        Fillers(0)
    with pytest.raises(TacitError, match="1 to 48"):
        Grid(60)
    assert none() == Chain(())
