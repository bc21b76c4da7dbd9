import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.evaluate.scorer import score_blocks


def test_blocks_cover_everybody_once_within_the_memory_given(table):
    scores = np.arange(70, dtype="f4").reshape(10, 7)
    users = np.array([4, 1, 9, 0, 3], "i4")
    blocks = list(score_blocks(table(scores), users, catalogue=7, block_bytes=2 * 7 * 4))
    assert max(block.nbytes for _, block in blocks) <= 2 * 7 * 4
    assert np.array_equal(np.concatenate([block for _, block in blocks]), scores[users])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_an_error_that_names_the_user(table, bad):
    scores = np.zeros((3, 4), "f4")
    scores[2, 1] = bad
    with pytest.raises(TacitError, match="user 2 are not finite"):
        list(score_blocks(table(scores), np.arange(3, dtype="i4"), catalogue=4))


def test_a_double_too_large_for_a_float_is_not_finite_either(table):
    with pytest.raises(TacitError, match="not finite"):
        list(score_blocks(table(np.full((1, 2), 1e300)), np.zeros(1, "i4"), catalogue=2))


def test_a_wrong_shape_is_refused(table):
    with pytest.raises(TacitError, match="shape"):
        list(score_blocks(table(np.zeros((3, 4), "f4")), np.arange(3, dtype="i4"), catalogue=5))
