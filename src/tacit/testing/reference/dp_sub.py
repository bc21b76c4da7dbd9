"""Priv-FedMF-Sub as slow loops, from Algorithms 1 and 2 of the paper: one person, one sample at a time."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Sample = tuple[int, int]


@dataclass(frozen=True)
class Local:
    """What a client brings back: its vector and its copy of the rows."""

    vector: Numbers
    rows: Numbers


def sigmoid(value: float) -> float:
    """The logistic function.

    Example:
        >>> sigmoid(0.0)
        0.5
    """
    return 1 / (1 + math.exp(-value))


def local_epochs(
    vector: Numbers, rows: Numbers, epochs: list[list[Sample]], rate: float, batch: int
) -> Local:
    """Epochs over given samples ``(row, label)``: cross-entropy summed over each batch, both sides at once.

    Example:
        >>> local_epochs(np.ones(1), np.zeros((1, 1)), [[(0, 1)]], 1.0, 8).rows.tolist()
        [[0.5]]
    """
    vector, rows = vector.copy(), rows.copy()
    for samples in epochs:
        for start in range(0, len(samples), batch):
            towards, change = np.zeros_like(vector), np.zeros_like(rows)
            for row, label in samples[start : start + batch]:
                error = sigmoid(float(vector @ rows[row])) - label
                towards += error * rows[row]
                change[row] += error * vector
            vector -= rate * towards
            rows -= rate * change
    return Local(vector, rows)


def chosen_rows(bits: NDArray[np.int64], epsilon: float) -> list[int]:
    """Algorithm 1 at the server: Eq. 8 item by item, then everything above the mean.

    Example:
        >>> chosen_rows(np.array([[1, 0, 0], [1, 1, 0]]), 2.0)
        [0]
    """
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    estimates = []
    for item in range(bits.shape[1]):
        told = sum(int(one) for one in bits[:, item]) / len(bits)
        estimates.append((keep - 1) / (2 * keep - 1) + told / (2 * keep - 1))
    mean = sum(estimates) / len(estimates)
    return [item for item, estimate in enumerate(estimates) if estimate > mean]


def server_round(items: Numbers, sent: list[dict[int, Numbers]], rate: float) -> Numbers:
    """Algorithm 2, server lines 6-9: every client's gradient of every row it sent is subtracted.

    Example:
        >>> server_round(np.ones((1, 1)), [{0: np.ones(1)}, {0: np.ones(1)}], 0.25).tolist()
        [[0.5]]
    """
    items = items.copy()
    for update in sent:
        for row, gradient in update.items():
            items[row] -= rate * gradient
    return items
