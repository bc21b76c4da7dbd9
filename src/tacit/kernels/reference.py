"""What the kernels mean: plain torch, one client after the other, slow and close to the page.

Equation numbers are those of Liang, Pan and Ming, "FedRec++: Lossless federated recommendation with explicit
feedback", AAAI 2021. Nothing of the library calls this module; the tests do.
"""

import torch

from tacit.kernels.factors import ClientStep, Fill, UserStep
from tacit.types import Floats, Long, RankOne, Rows, Segment


def client_step(
    offsets: Long,
    items: Floats,
    values: Floats,
    fillers: Segment | None,
    factors: Floats,
    table: Floats,
    *,
    rate: float,
    reg: float,
    fill: int = Fill.NONE,
    local_steps: int = 0,
    user_step: int = UserStep.RATED,
) -> ClientStep:
    """The twin of :func:`tacit.kernels.factors.client_step` for an unpadded table.

    Example:
        >>> import numpy as np
        >>> offsets, items, values = np.array([0, 1]), np.array([1], "i4"), np.array([4.0])
        >>> one = client_step(
        ...     offsets, items, values, None, np.array([[1.0]]), np.array([[9.0], [2.0]]), rate=1, reg=0
        ... )
        >>> one.coef.tolist(), one.factors.tolist()
        ([-2.0], [[5.0]])
    """
    V, ids, coef, new, lengths = torch.from_numpy(table), [], [], [], []
    for client in range(len(factors)):
        rated = torch.from_numpy(items[offsets[client] : offsets[client + 1]]).long()
        r = torch.from_numpy(values[offsets[client] : offsets[client + 1]]).to(V.dtype)
        U = torch.from_numpy(factors[client])
        filled = _fillers(fillers, client) if len(rated) else rated
        e = V[rated] @ U - r
        virtual = _virtual_ratings(U, V, rated, filled, r, rate, reg, fill, local_steps)
        e_filled = V[filled] @ U - virtual
        lengths.append(len(rated) + len(filled))
        ids.append(torch.cat([rated, filled]))
        coef.append(torch.cat([e, e_filled]))
        new.append(U - rate * _user_gradient(U, V, rated, filled, e, e_filled, reg, user_step))
    sizes = torch.tensor(lengths)
    return ClientStep(
        (sizes.cumsum(0) - sizes).numpy(),
        sizes.numpy(),
        torch.cat(ids).int().numpy(),
        torch.cat(coef).numpy(),
        offsets[1:] - offsets[:-1],
        torch.stack(new).numpy(),
    )


def _fillers(fillers: Segment | None, client: int) -> torch.Tensor:
    if fillers is None:
        return torch.empty(0, dtype=torch.long)
    start = fillers.starts[client]
    return torch.from_numpy(fillers.ids[start : start + fillers.lengths[client]]).long()


def _user_gradient(
    U: torch.Tensor,
    V: torch.Tensor,
    rated: torch.Tensor,
    filled: torch.Tensor,
    e: torch.Tensor,
    e_filled: torch.Tensor,
    reg: float,
    user_step: int,
) -> torch.Tensor:
    """Eq. 7: the mean over the rated items; FedRec's: over the fillers too."""
    terms = e[:, None] * V[rated] + reg * U
    if user_step == UserStep.ALL:
        terms = torch.cat([terms, e_filled[:, None] * V[filled] + reg * U])
    return terms.mean(0) if len(terms) else torch.zeros_like(U)


def _virtual_ratings(
    U: torch.Tensor,
    V: torch.Tensor,
    rated: torch.Tensor,
    filled: torch.Tensor,
    r: torch.Tensor,
    rate: float,
    reg: float,
    fill: int,
    local_steps: int,
) -> torch.Tensor:
    """Eq. 1: the client's mean rating, or the prediction of a vector trained on (Algorithm 2, line 3)."""
    if not len(filled):
        return V.new_empty(0)
    if fill == Fill.AVERAGE:
        return r.mean().expand(len(filled))
    trained = U.clone()
    for _ in range(local_steps):
        e = V[rated] @ trained - r
        trained = trained - rate * _user_gradient(trained, V, rated, filled, e, e, reg, UserStep.RATED)
    return V[filled] @ trained


def materialise(rows: Rows) -> torch.Tensor:
    """Eq. 3, one row per stored position; zeros where no client's rows lie.

    Example:
        >>> import numpy as np
        >>> known = RankOne(np.array([2.0]), np.array([[1.0, 3.0]]), np.ones((2, 2)), 0.5)
        >>> materialise(Rows(np.array([0]), np.array([1]), np.array([1], "i4"), known)).tolist()
        [[2.5, 6.5]]
    """
    known = rows.values
    if not isinstance(known, RankOne):
        return torch.from_numpy(known)
    dim = known.factors.shape[1]
    table, factors = torch.from_numpy(known.table[:, :dim]), torch.from_numpy(known.factors)
    values = torch.zeros(len(rows.ids), dim, dtype=factors.dtype)
    for client, (start, length) in enumerate(zip(rows.starts, rows.lengths, strict=True)):
        for place in range(start, start + length):
            values[place] = float(known.coef[place]) * factors[client] + known.reg * table[rows.ids[place]]
    return values


def on_grid(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Whole steps of ``2^-bits``, halves to even.

    Example:
        >>> on_grid(torch.tensor([0.25, 0.75]), 1).tolist()
        [0, 2]
    """
    return torch.round(values.double() * 2**bits).long()


def total(rows: Rows, values: torch.Tensor, height: int, sign: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Eq. 4: the sum of the rows of each item, and how many people stand behind it.

    Example:
        >>> import numpy as np
        >>> rows = Rows(np.array([0]), np.array([2]), np.array([1, 1], "i4"), np.zeros((2, 1)))
        >>> [part.tolist() for part in total(rows, torch.tensor([[2.0], [3.0]]), 2)]
        [[[0.0], [5.0]], [0, 2]]
    """
    sums, counts = (
        torch.zeros(height, values.shape[1], dtype=values.dtype),
        torch.zeros(height, dtype=torch.long),
    )
    for start, length in zip(rows.starts, rows.lengths, strict=True):
        for place in range(start, start + length):
            sums[rows.ids[place]] += sign * values[place]
            counts[rows.ids[place]] += sign * (1 if rows.counts is None else int(rows.counts[place]))
    return sums, counts
