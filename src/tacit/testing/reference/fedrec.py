"""FedRec and FedRec++ as loops over users and items, from the papers' equations, in double precision."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
History = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Recipe:
    """What both papers call gamma, lambda, T_predict and T_local; the step shrinks by ``decay`` a round."""

    rate: float
    reg: float
    decay: float = 1.0
    hybrid: bool = True
    t_predict: int = 10
    t_local: int = 10
    user_step: str = "rated"


def item_gradient(user: Matrix, item: Matrix, rating: float, reg: float) -> Matrix:
    """Eq. 3: ``(U V^T - r) U + reg V``."""
    return (user @ item - rating) * user + reg * item


def user_gradient(user: Matrix, items: Matrix, rated: History, reg: float) -> Matrix:
    """Eq. 7: the mean over the given items of ``(U V^T - r) V + reg U``."""
    rows = [(user @ items[i] - rating) * items[i] + reg * user for i, rating in rated]
    return np.mean(rows, axis=0)


def virtual_ratings(
    user: Matrix, items: Matrix, rated: History, drawn: Sequence[int], round: int, recipe: Recipe
) -> History:
    """Eq. 1: the mean rating, and after ``t_predict`` rounds the prediction of a locally trained copy."""
    if not (recipe.hybrid and round > recipe.t_predict):
        mean = float(np.mean([rating for _, rating in rated]))
        return [(i, mean) for i in drawn]
    own, rate = user.copy(), recipe.rate * recipe.decay**round
    for _ in range(recipe.t_local):
        own = own - rate * user_gradient(own, items, rated, recipe.reg)
    return [(i, float(own @ items[i])) for i in drawn]


def fedrec_round(
    users: Matrix,
    items: Matrix,
    rated: Sequence[History],
    drawn: Sequence[Sequence[int]],
    round: int,
    recipe: Recipe,
) -> tuple[Matrix, Matrix]:
    """One round with everybody; returns the new user and item vectors."""
    rate = recipe.rate * recipe.decay**round
    new_users, rows = users.copy(), {i: [] for i in range(len(items))}
    for u, history in enumerate(rated):
        if not history:
            continue
        virtual = virtual_ratings(users[u], items, history, drawn[u], round, recipe)
        moved_by = [*history, *virtual] if recipe.user_step == "all" else history
        new_users[u] = users[u] - rate * user_gradient(users[u], items, moved_by, recipe.reg)
        for i, rating in [*history, *virtual]:
            rows[i].append(item_gradient(users[u], items[i], rating, recipe.reg))
    return new_users, _stepped(items, rows, rate)


def fedrec_plus_plus_round(
    users: Matrix,
    items: Matrix,
    rated: Sequence[History],
    drawn: Sequence[Sequence[int]],
    peer: Sequence[int],
    round: int,
    recipe: Recipe,
) -> tuple[Matrix, Matrix]:
    """One round with denoisers (``peer[u] == -1``): all noise is really added and taken out again."""
    rate = recipe.rate * recipe.decay**round
    new_users, total = users.copy(), np.zeros_like(items)
    counts = np.zeros(len(items), dtype=int)
    noise = {
        d: (np.zeros_like(items), np.zeros(len(items), dtype=int)) for d, to in enumerate(peer) if to == -1
    }
    for u, history in enumerate(rated):
        if history:
            new_users[u] = users[u] - rate * user_gradient(users[u], items, history, recipe.reg)
        if peer[u] == -1 or not history:
            continue
        virtual = virtual_ratings(users[u], items, history, drawn[u], round, recipe)
        for i, rating in [*history, *virtual]:
            total[i] += item_gradient(users[u], items[i], rating, recipe.reg)  # Eq. 4
            counts[i] += 1
        for i, rating in virtual:
            noise[peer[u]][0][i] += item_gradient(users[u], items[i], rating, recipe.reg)
            noise[peer[u]][1][i] += 1
    for d, (gradient, people) in noise.items():  # Eqs. 5 and 9
        for i, rating in rated[d]:
            gradient[i] -= item_gradient(users[d], items[i], rating, recipe.reg)
            people[i] -= 1
        total -= gradient
        counts -= people
    stepped = items.copy()
    for i in np.flatnonzero(counts > 0):
        stepped[i] = items[i] - rate * total[i] / counts[i]  # Eq. 6
    return new_users, stepped


def _stepped(items: Matrix, rows: dict[int, list[Matrix]], rate: float) -> Matrix:
    stepped = items.copy()
    for i, gradients in rows.items():
        if gradients:
            stepped[i] = items[i] - rate * np.mean(gradients, axis=0)
    return stepped
