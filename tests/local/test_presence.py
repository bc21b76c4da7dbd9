"""What a device says of its history: bits and vectors about the items that were asked for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.local.presence import MetBits, MetOrNot, MetVector, met, usual_length
from tacit.local.work import Broadcast
from tacit.rng import SeededKeys
from tacit.testing.tiny import tiny_federation

FEDERATION = tiny_federation(9, 12, seed=1, silent=2)
COHORT = FEDERATION.cohort(np.arange(9, dtype=np.int32))  # the silent ones too
HISTORIES = [
    set(FEDERATION.items[a:b].tolist())
    for a, b in zip(FEDERATION.offsets[:-1], FEDERATION.offsets[1:], strict=True)
]


def said(work, cohort=COHORT, **arrays) -> Any:
    return work.run(Broadcast(0, arrays), {}, cohort, None, SeededKeys(1)).update


def truth(chosen):
    return np.array([[item in history for item in chosen] for history in HISTORIES], dtype=np.float64)


@pytest.mark.parametrize("chosen", [[0, 3, 11], [7], list(range(12))])
def test_bits_are_the_history(chosen):
    asked = np.array(chosen, dtype=np.int32)
    assert np.array_equal(met(COHORT, asked), truth(chosen))
    assert np.array_equal(said(MetBits(), chosen=asked)["bits"], truth(chosen))
    assert np.array_equal(said(MetBits())["bits"], truth(range(12)))


def test_asked_items_are_answered_with_plus_or_minus_one():
    entries = np.random.default_rng(0).integers(0, 12, (9, 30)).astype(np.uint32)
    values = said(MetOrNot(), replace(COHORT, extras={"entries": entries}))["values"]
    for person, history in enumerate(HISTORIES):
        expected = [1.0 if int(item) in history else -1.0 for item in entries[person]]
        assert values[person].tolist() == expected


def test_vectors_are_the_history_then_what_popularity_leaves_unsaid():
    first = said(MetVector(history=5))["vector"]
    np.testing.assert_allclose(first, truth(range(12)) / np.sqrt(5), rtol=1e-6)
    chosen, expected = np.array([2, 5, 6], dtype=np.int32), np.array([0.5, 0.2, 0.9], dtype=np.float32)
    second = said(MetVector(5, centred=True), chosen=chosen, expected=expected)["vector"]
    length = max(1.0, np.sqrt(0.5 * 0.5 + 0.2 * 0.8 + 0.9 * 0.1))
    np.testing.assert_allclose(second, (truth([2, 5, 6]) - expected) / length, rtol=1e-6)
    assert usual_length(np.full(100, 0.5)) == pytest.approx(5.0)
