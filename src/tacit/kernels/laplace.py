"""Laplace numbers from random words."""

from typing import TYPE_CHECKING

import numpy as np

from tacit.kernels.compiled import kernel
from tacit.types import Floats

if TYPE_CHECKING:
    from tacit.rng import Keyed


def add_laplace(target: Floats, words: "Keyed", scale: float) -> None:
    """Add Laplace noise of this scale to ``target`` in place, one 64-bit word per number.

    53 bits say how large, one bit which way. Floating-point noise has gaps that ideal noise has not; where
    the last bits matter use a discrete mechanism.

    Example:
        >>> quiet = np.zeros(2, "f4")
        >>> add_laplace(quiet, np.array([2**64 - 1, 2**64 - 2], "u8"), 1.0)
        >>> np.abs(quiet).max() < 1e-6
        np.True_
    """
    _add(target.reshape(-1), words.reshape(-1), scale)


@kernel
def _add(target: Floats, words: "Keyed", scale: float) -> None:
    for place in range(len(target)):
        word = words[place]
        size = -scale * np.log((float(word >> np.uint64(11)) + 1.0) * 2.0**-53)
        target[place] += target.dtype.type(size if word & np.uint64(1) else -size)
