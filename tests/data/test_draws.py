import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.draws import _bell, _word, alias_table
from tacit.rng import SeededKeys, mixed


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=40))
def test_the_alias_table_carries_exactly_the_weights(weights):
    """Summing each slot's own share and what others pass to it gives the distribution back."""
    wanted = np.array(weights) / np.sum(weights)
    keep, alias = alias_table(np.array(weights))
    given_back = keep.astype(float) / len(weights)
    np.add.at(given_back, alias, (1 - keep.astype(float)) / len(weights))
    np.testing.assert_allclose(given_back, wanted, atol=1e-6)


def test_the_compiled_generator_is_the_one_of_rng():
    words = SeededKeys(3).users(np.arange(50, dtype=np.int32), "any")
    assert [int(_word(word)) for word in words] == mixed(words).tolist()


def test_bells_are_centred_with_unit_spread():
    words = mixed(np.arange(1, 40_001, dtype=np.uint64))
    draws = np.array([_bell(word) for word in words])
    assert draws.mean() == pytest.approx(0, abs=4 / 200)
    assert draws.std() == pytest.approx(1, abs=0.02)
