"""FCF and FMF-LDP as loops over users, items and factors, from the papers' equations, in doubles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def user_vector(items: Matrix, rated: Sequence[int], alpha: float, reg: float) -> Matrix:
    """``(V^T C V + reg I)^-1 V^T C p``, with ``c = 1 + alpha p``."""
    left, right = reg * np.eye(items.shape[1]), np.zeros(items.shape[1])
    for i, v in enumerate(items):
        p = 1.0 if i in rated else 0.0
        c = 1.0 + alpha * p
        left += c * np.outer(v, v)
        right += c * p * v
    return np.linalg.solve(left, right).astype(np.float64)


def item_gradient(items: Matrix, user: Matrix, rated: Sequence[int], alpha: float) -> Matrix:
    """``-2 c_i (p_i - x . v_i) x`` for every item."""
    found = np.zeros_like(items)
    for i, v in enumerate(items):
        p = 1.0 if i in rated else 0.0
        found[i] = -2.0 * (1.0 + alpha * p) * (p - user @ v) * user
    return found


@dataclass
class AdamState:
    """Kingma and Ba's method, number by number."""

    rate: float
    decay: float
    reg: float
    moments: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    steps: int = 0

    def step(self, items: Matrix, gradient: Matrix) -> Matrix:
        """One step; the rate shrinks after it."""
        self.steps += 1
        rate, after = self.rate * self.decay ** (self.steps - 1), items.copy()
        for i, f in np.ndindex(*items.shape):
            g = float(gradient[i, f] + 2.0 * self.reg * items[i, f])
            first, second = self.moments.get((i, f), (0.0, 0.0))
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
            self.moments[i, f] = first, second
            unbiased = first / (1 - 0.9**self.steps), second / (1 - 0.999**self.steps)
            after[i, f] -= rate * unbiased[0] / (math.sqrt(unbiased[1]) + 1e-8)
        return after


def mean_gradient(items: Matrix, histories: Sequence[Sequence[int]], alpha: float, reg: float) -> Matrix:
    """FCF's Eq. 6 over everybody, divided by how many they are."""
    total = np.zeros_like(items)
    for rated in histories:
        total += item_gradient(items, user_vector(items, rated, alpha, reg), rated, alpha)
    return total / len(histories)


def chance_of_one(value: float, epsilon: float) -> float:
    """Algorithm 1: the projected value's probability of a one."""
    t = min(1.0, max(-1.0, value))
    return (t * (math.exp(epsilon) - 1) + math.exp(epsilon) + 1) / (2 * math.exp(epsilon) + 2)


@dataclass(frozen=True)
class Epoch:
    """One epoch's constants, and its coins: for each user and report, two uniform numbers."""

    epsilon: float
    alpha: float
    reg: float
    scale: float
    entries: Matrix
    coins: Matrix


def reported_gradient(items: Matrix, histories: Sequence[Sequence[int]], epoch: Epoch) -> Matrix:
    """Eq. 9: ``(1/N) sum of +-B`` at the reported entries: ``k`` times the projected mean gradient."""
    total = np.zeros_like(items)
    B = items.size * (math.exp(epoch.epsilon) + 1) / (math.exp(epoch.epsilon) - 1)
    for user, rated in enumerate(histories):
        x = user_vector(items, rated, epoch.alpha, epoch.reg)
        gradient = epoch.scale * item_gradient(items, x, rated, epoch.alpha)
        for where, coin in zip(epoch.entries[user], epoch.coins[user], strict=True):
            i, f = divmod(int(where * items.size), items.shape[1])
            one = coin < chance_of_one(gradient[i, f], epoch.epsilon)
            total[i, f] += B if one else -B
    return total / (len(histories) * epoch.scale)


def rotation(length: int, signs: Matrix) -> Matrix:
    """The orthogonal matrix of a side: random signs, then Sylvester's Hadamard matrix over its root."""
    matrix = np.ones((1, 1))
    while len(matrix) < length:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix @ np.diag(signs) / math.sqrt(length)


def rotated_gradient(
    items: Matrix, histories: Sequence[Sequence[int]], epoch: Epoch, clip: float, sides: tuple[Matrix, Matrix]
) -> Matrix:
    """The mean, not times ``k``, from gradients clipped, rotated and stretched; the sum is turned back."""
    left, right = sides
    wide = np.zeros((len(left), len(right)))
    size, total = wide.size, np.zeros_like(wide)
    for user, rated in enumerate(histories):
        x = user_vector(items, rated, epoch.alpha, epoch.reg)
        gradient = item_gradient(items, x, rated, epoch.alpha)
        gradient *= min(1.0, clip / np.linalg.norm(gradient)) if gradient.any() else 1.0
        wide[: len(items), : items.shape[1]] = gradient
        turned = left @ wide @ right.T * math.sqrt(size) / clip
        for where, coin in zip(epoch.entries[user], epoch.coins[user], strict=True):
            a, b = divmod(int(where * size), wide.shape[1])
            one = coin < chance_of_one(epoch.scale * turned[a, b], epoch.epsilon)
            total[a, b] += 1.0 if one else -1.0
    slope = (math.exp(epoch.epsilon) - 1) / (math.exp(epoch.epsilon) + 1)
    reports = len(histories) * epoch.entries.shape[1]
    estimate = total * math.sqrt(size) * clip / (slope * epoch.scale * reports)
    return (left.T @ estimate @ right)[: len(items), : items.shape[1]]
