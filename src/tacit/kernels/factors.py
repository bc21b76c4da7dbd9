"""A client's work in matrix factorisation: its vector moves, its items' gradients are told as coefficients.

The gradient of the squared error of a rating with respect to item ``i`` is ``e_ui U_u + reg V_i`` (Eq. 3 of
Liang et al., FedRec++, AAAI 2021). A client therefore emits one number ``e_ui`` per item, in one pass over
the rows it touches; :mod:`tacit.kernels.rows` turns them into rows. The same function serves thousands of
simulated clients and one device, and a client's numbers do not depend on who else is in the call.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import Number, Span, dim_of, kernel, span
from tacit.kernels.emitter import padded_width
from tacit.kernels.plain import LARGEST, plain_step
from tacit.kernels.squares import complete, gram, repeated, square_room, squaring_pays
from tacit.kernels.stores import copied
from tacit.kernels.vectors import block_errors, highest, padded, padded_zeros, weighted_sum
from tacit.types import Floats, Index, Long, Segment

_NEAR = 16384  # bytes of rows that stay in the nearest cache between their dot products and their sums
_SPARE = 16  # places after the last row that whole blocks may read and write
_AVERAGE, _PREDICTED, _ALL = 1, 2, 1


class Fill(IntEnum):
    """The virtual rating of a filler: none, the client's mean, or the prediction of its model (Eq. 1)."""

    NONE = 0
    AVERAGE = 1
    PREDICTED = 2


class UserStep(IntEnum):
    """What a client's own gradient is a mean over: rated items (Eq. 7), or these and fillers (FedRec)."""

    RATED = 0
    ALL = 1


class ClientStep(NamedTuple):
    """What a cohort computed: client ``c`` has its rated items, then its fillers, from ``starts[c]`` on."""

    starts: Long
    lengths: Long
    ids: Index
    coef: Floats
    rated_lengths: Long
    factors: Floats


def client_step(
    offsets: Long,
    items: Index,
    values: Floats,
    fillers: Segment | None,
    factors: Floats,
    table: Floats,
    dim: int,
    *,
    rate: float,
    reg: float,
    fill: int = Fill.NONE,
    local_steps: int = 0,
    user_step: int = UserStep.RATED,
) -> ClientStep:
    """Compute ``e_ui`` with the old vector for all items of each client, and the clients' new vectors.

    A filler's error is taken against its virtual rating (``fill``). ``PREDICTED`` first lets a copy of the
    client's vector take ``local_steps`` full-gradient steps on the rated items at the same rate. A client
    without ratings keeps its vector and has no rows. A ``table`` that is not ``padded`` is copied into one.

    Example:
        >>> offsets, items, values = np.array([0, 2]), np.array([0, 2], "i4"), np.array([4, 2], "f4")
        >>> factors, table = np.array([[1, 0]], "f4"), padded(np.array([[1, 0], [0, 1], [2, 2]], "f4"))
        >>> step = client_step(offsets, items, values, None, factors, table, 2, rate=0.5, reg=0.0)
        >>> step.coef.tolist(), step.factors.tolist()
        ([-3.0, 0.0], [[1.75, 0.0]])
    """
    fillers = fillers or _nothing(len(factors))
    _check(offsets, items, values, fillers, factors, table, dim, fill, local_steps)
    rated = np.diff(offsets).astype(np.int64)
    added = np.where(rated > 0, fillers.lengths, 0)
    lengths = rated + added
    starts = np.cumsum(lengths) - lengths
    rows = int(lengths.sum())
    ids = np.empty(rows + _SPARE, dtype=np.int32)
    coef = np.empty(rows + _SPARE, dtype=table.dtype)
    updated = np.ascontiguousarray(factors).copy()
    number = table.dtype.type
    held = slice(offsets[0], offsets[-1])
    told = values[held].astype(table.dtype, copy=False)
    given = (offsets - offsets[0], items[held], told, fillers.starts, added, fillers.ids)
    settings = (number(rate), number(reg), int(fill), int(local_steps), int(user_step))
    if dim > LARGEST:
        _check_items(items[held], fillers.ids, len(table))
        plain_step(*given, table, *settings, starts, ids, coef, updated)
    else:
        ready = table if table.shape[1] == padded_width(dim, table.itemsize) else padded(table[:, :dim])
        work, square = padded_zeros(5, dim, table.dtype), square_room(dim, table.dtype)
        if not _step(span(dim), *given, ready, *settings, starts, ids, coef, updated, work, square):
            raise _unknown_item(len(table))
    return ClientStep(starts, lengths, ids[:rows], coef[:rows], rated, updated)


def _nothing(clients: int) -> Segment:
    return Segment(np.zeros(clients, np.int64), np.zeros(clients, np.int64), np.zeros(0, np.int32))


def _check(
    offsets: Long,
    items: Index,
    values: Floats,
    fillers: Segment,
    factors: Floats,
    table: Floats,
    dim: int,
    fill: int,
    local_steps: int,
) -> None:
    """Refuse what would make a kernel read outside its arrays."""
    clients = len(offsets) - 1
    if factors.shape != (clients, dim) or len(fillers.lengths) != clients:
        raise TacitError(
            f"vectors of shape {factors.shape}, fillers of {len(fillers.lengths)} clients, {clients} clients",
            f"give one vector of {dim} numbers and one list of fillers per client",
        )
    if table.dtype.name not in {"float32", "float64"} or factors.dtype != table.dtype:
        raise TacitError(
            f"vectors in {factors.dtype}, table in {table.dtype}", "use float32 or float64 for both"
        )
    if table.ndim != 2 or table.shape[1] < dim:
        raise TacitError(f"a table of shape {table.shape}", f"give rows of at least {dim} numbers")
    if (
        len(items) != len(values)
        or offsets[0] < 0
        or offsets[-1] > len(items)
        or (np.diff(offsets) < 0).any()
    ):
        raise TacitError(
            "offsets, items and values do not belong together", "give rising offsets into both columns"
        )
    ends = fillers.starts + fillers.lengths
    if clients and (ends.max() > len(fillers.ids) or min(fillers.starts.min(), fillers.lengths.min()) < 0):
        raise TacitError(
            "a list of fillers reaches outside its ids", "give starts and lengths inside the ids"
        )
    if fill not in (0, 1, 2) or (fill == Fill.NONE and len(fillers.ids)):
        raise TacitError(
            f"fillers with fill={fill}", "say fill=1 (average) or fill=2 (predicted), or give no fillers"
        )
    if local_steps < 0:
        raise TacitError(f"local_steps is {local_steps}", "give zero or more")


def _check_items(items: Index, fillers: Index, height: int) -> None:
    """Look before the plain kernel reads; the vector kernel looks while it copies."""
    for column in (items, fillers):
        if len(column) and column.view(np.uint32).max() >= height:
            raise _unknown_item(height)


def _unknown_item(height: int) -> TacitError:
    return TacitError(f"an item outside the table of {height} rows", "number items from 0")


@kernel
def _whole_blocks(
    shape: Span,
    table: Floats,
    ids: Index,
    at: int,
    count: int,
    vector: Floats,
    told: Floats,
    by: int,
    move: int,
    out: Floats,
    to: int,
) -> None:
    """``out[to + j]`` = row ``ids[at + j]`` · ``vector`` - ``told[by + move * j]``, in whole blocks.

    Names, numbers told and places to write must go on up to the end of the last block. With ``move`` 0 one
    number is meant, which ``told`` then holds once for every lane.
    """
    for done in range(0, count, 64 // table.itemsize):
        block_errors(shape, table, ids, at + done, vector, told, by + done * move, out, to + done)


@kernel
def _errors(
    shape: Span,
    table: Floats,
    ids: Index,
    at: int,
    count: int,
    vector: Floats,
    told: Floats,
    by: int,
    move: int,
    out: Floats,
    to: int,
    spare_ids: Index,
    spare: Floats,
) -> None:
    """``out[to + j]`` = row ``ids[at + j]`` · ``vector`` - ``told[by + move * j]``.

    With ``move`` 0 one number is meant, which ``told`` then holds once for every lane. For arrays that end
    with their last row: nothing behind it is read or written, which costs time where clients have few rows.
    """
    block = 64 // table.itemsize
    whole = count - count % block
    for done in range(0, whole, block):
        block_errors(shape, table, ids, at + done, vector, told, by + done * move, out, to + done)
    if whole < count and whole > 0:
        # A full block that ends with the last row: some rows twice, with the same bits.
        last = count - block
        block_errors(shape, table, ids, at + last, vector, told, by + last * move, out, to + last)
    elif whole < count:
        for j in range(block):
            place = min(whole + j, count - 1)
            spare_ids[j] = ids[at + place]
            spare[j] = told[by + place * move]
        block_errors(shape, table, spare_ids, 0, vector, spare, 0, spare, 0)
        for j in range(count - whole):
            out[to + whole + j] = spare[j]


@kernel
def _mean(values: Floats, at: int, count: int) -> float:
    """The mean in double precision; four sums, so that additions need not wait for each other."""
    a = b = c = d = 0.0
    whole = count - count % 4
    for j in range(at, at + whole, 4):
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
    for j in range(at + whole, at + count):
        a += values[j]
    return ((a + b) + (c + d)) / count


@kernel
def _told(
    shape: Span,
    items: Index,
    values: Floats,
    at: int,
    count: int,
    fillers: Index,
    source: int,
    extra: int,
    ids: Index,
    coef: Floats,
    to: int,
) -> int:
    """Put a client's rated items, fillers and ratings where they go; the largest name."""
    more = to + count
    copied(items, at, count, ids, to)
    copied(fillers, source, extra, ids, more)
    copied(values, at, count, coef, to)
    for j in range(_SPARE):
        ids[more + extra + j] = 0
    return highest(shape, ids, to, count + extra)


@kernel
def _row_by_row(
    shape: Span,
    table: Floats,
    ids: Index,
    at: int,
    count: int,
    push: Floats,
    pull: Floats,
    room: Floats,
    same: Floats,
    shrink: Number,
    keep: Number,
    steps: int,
    out: Floats,
) -> None:
    """``out = x``, where ``x`` starts as ``push`` and becomes ``keep x - shrink Σ V_i V_iᵀ x + push``."""
    same[:] = 0
    out[:] = push
    for _ in range(steps):
        pull[:] = 0
        for done in range(0, count, len(room)):
            size = min(len(room), count - done)
            _whole_blocks(shape, table, ids, at + done, size, out, same, 0, 0, room, 0)
            weighted_sum(shape, table, ids, at + done, size, room, 0, pull)
        for k in range(len(out)):
            out[k] = keep * out[k] - shrink * pull[k] + push[k]


@kernel
def _step(
    shape: Span,
    offsets: Long,
    items: Index,
    values: Floats,
    filler_starts: Long,
    filler_lengths: Long,
    filler_ids: Index,
    table: Floats,
    rate: Number,
    reg: Number,
    fill: int,
    steps: int,
    user_step: int,
    starts: Long,
    ids: Index,
    coef: Floats,
    factors: Floats,
    work: Floats,
    square: Floats,
) -> bool:
    """Fill ``ids`` and ``coef`` and move ``factors``; false where an item has no row in the table.

    ``ids`` and ``coef`` go on for a block after the last client: whole blocks are computed, and what is
    written after a client's rows is overwritten by the next one's.
    """
    dim, block = dim_of(shape), 64 // table.itemsize
    vector, gradient, push, away, pull = work[0], work[1], work[2], work[3], work[4]
    strip = _NEAR // (table.shape[1] * table.itemsize) // block * block
    room, same = np.empty(strip, table.dtype), np.zeros(block, table.dtype)
    for client in range(len(starts)):
        at, count, to = offsets[client], offsets[client + 1] - offsets[client], starts[client]
        extra, source, more = filler_lengths[client], filler_starts[client], to + count
        if count == 0:
            continue
        if _told(shape, items, values, at, count, filler_ids, source, extra, ids, coef, to) >= len(table):
            return False
        for k in range(dim):
            vector[k] = factors[client, k]
        training = fill == _PREDICTED and extra > 0 and steps > 0
        squared = training and squaring_pays(dim, block, count, steps - 1)
        gradient[:] = 0
        if squared:
            square[:] = 0
        for done in range(to, more, strip):
            size = min(strip, more - done)
            _whole_blocks(shape, table, ids, done, size, vector, coef, done, 1, coef, done)
            weighted_sum(shape, table, ids, done, size, coef, done, gradient)
            if squared:
                gram(shape, table, ids, done, size, square)
        towards = vector
        same[:] = _mean(values, at, count) if fill == _AVERAGE else 0.0
        if fill == _PREDICTED:
            # U · V_i against the virtual rating U' · V_i: the error is (U - U') · V_i. From zero, U - U'
            # becomes ((1 - rate reg) I - rate A) (U - U') + push in a step, A the mean of V_i V_iᵀ.
            share, keep, towards = table.dtype.type(1 / count), 1 - rate * reg, away
            away[:] = 0
            for k in range(dim):
                push[k] = rate * (gradient[k] * share + reg * vector[k])
            if squared:
                complete(shape, square, -rate * share, keep)
                repeated(shape, square, push, steps - 1, away)
            elif training:
                _row_by_row(
                    shape, table, ids, to, count, push, pull, room, same, rate * share, keep, steps - 1, away
                )
        _whole_blocks(shape, table, ids, more, extra, towards, same, 0, 0, coef, more)
        over = count
        if user_step == _ALL:
            over += extra
            weighted_sum(shape, table, ids, more, extra, coef, more, gradient)
        share = table.dtype.type(1 / over)
        for k in range(dim):
            factors[client, k] = vector[k] - rate * (gradient[k] * share + reg * vector[k])
    return True
