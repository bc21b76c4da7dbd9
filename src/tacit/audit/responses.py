"""Which items a person has met, from randomised answers: exact odds, one answer or many."""

import numpy as np
from numpy.typing import NDArray

from tacit.types import Floats


def odds(answers: NDArray[np.integer], epsilon: float, prior: Floats) -> Floats:
    """The log-odds that each item was met, after ``R`` answers (rows) that are true with odds ``e^epsilon``.

    ``k`` times yes among ``R`` answers moves the prior's log-odds by ``(2 k - R) epsilon``.

    Example:
        >>> told = np.array([[1, 0], [1, 1]])
        >>> odds(told, epsilon=2.0, prior=np.array([0.5, 0.5])).tolist()
        [4.0, 0.0]
    """
    sure = np.clip(prior, 1e-9, 1.0 - 1e-9)
    yes = answers.sum(axis=0, dtype=np.int64)
    return (2.0 * yes - len(answers)) * min(epsilon, 50.0) + np.log(sure / (1.0 - sure))
