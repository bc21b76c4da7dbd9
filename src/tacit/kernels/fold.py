"""What a denoising client sends (Eq. 9 of FedRec++): the noise it was sent less its own gradients."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.compiled import kernel
from tacit.kernels.precision import widened
from tacit.kernels.scatter import (
    Sign,
    add_scaled,
    add_scaled_grid,
    add_table,
    add_written,
    check,
    people,
    rank_one,
    step_scale,
    tally,
    written,
)
from tacit.types import Index, Long, RankOne, Rows

BLOCK = 1 << 18


def fold(
    noise: Rows,
    own: Rows,
    group_offsets: Long,
    group_members: Long,
    *,
    catalogue: int,
    bits: int | None = None,
    precise: bool = False,
) -> Rows:
    """Sum for each denoiser the rows its senders sent and subtract its own; values are written out, ids rise.

    ``group_members[group_offsets[g] : group_offsets[g + 1]]`` are the clients of ``noise`` that sent to
    denoiser ``g``, which is client ``g`` of ``own``; nobody sends twice. ``counts`` are virtual raters less
    one where the denoiser rated the item itself: subtracted from those of the uploads they leave the number
    of true raters, the denoiser included. With ``bits`` the sums are whole steps of a grid (rows written out
    must be so already); ``precise`` sums in double precision, whatever the rows are in.
    The work is that of what a denoiser receives, and of sorting what it sends.

    Example:
        >>> sent = Rows(np.array([0]), np.array([2]), np.array([4, 1], "i4"), np.array([[1.0], [2.0]]))
        >>> own = Rows(np.array([0]), np.array([1]), np.array([4], "i4"), np.array([[5.0]]))
        >>> folded = fold(sent, own, np.array([0, 1]), np.array([0]), catalogue=5)
        >>> folded.ids.tolist(), folded.values.tolist(), folded.counts.tolist()
        ([1, 4], [[2.0], [-4.0]], [1, 0])
    """
    _check_groups(group_offsets, group_members, noise.clients, own.clients)
    noise = _chosen(noise, group_members)
    for rows in (noise, own):
        check(rows, catalogue, _dim(rows), _dim(rows))
    lengths, ids, noise_at, own_at = _places(noise, own, group_offsets, catalogue)
    dim = _dim(own)
    kind = np.dtype(np.int64) if bits is not None else np.dtype(np.float64) if precise else _kind(own)
    values, counts = np.zeros((len(ids), dim), dtype=kind), np.zeros(len(ids), dtype=np.int32)
    parts: tuple[tuple[Rows, Index, Sign], ...] = ((noise, noise_at, 1), (own, own_at, -1))
    known = _same_table(noise, own) if bits is None else None
    for rows, places, sign in parts:
        tally(counts, rows, places, people(rows), sign)
        for block, targets in _blocks(rows, places) if precise else [(rows, places)]:
            part = widened(block) if precise else block
            _add(values, part, targets, sign, bits, table=known is None)
    folded = Rows(np.cumsum(lengths) - lengths, lengths, ids, values, counts)
    if known is not None and known.reg != 0:
        every = np.arange(len(ids), dtype=np.int32)
        add_table(values, folded, every, counts.astype(np.int64), known.table, known.reg)
    return folded


def _same_table(noise: Rows, own: Rows) -> RankOne | None:
    """Where both parts hold ``reg * V_i`` of one table, it can be added once per item sent."""
    left, right = noise.values, own.values
    if not (isinstance(left, RankOne) and isinstance(right, RankOne)):
        return None
    same = left.table is right.table or np.array_equal(left.table, right.table)
    return left if same and left.reg == right.reg else None


def _blocks(rows: Rows, places: Index) -> Iterator[tuple[Rows, Index]]:
    """Some clients at a time, so that what is made of a block stays small; the order stays."""
    ends = rows.starts + rows.lengths
    if not (rows.clients and np.array_equal(ends[:-1], rows.starts[1:])):
        yield rows, places
        return
    cuts = np.searchsorted(ends - ends[0], np.arange(BLOCK, int(ends[-1] - ends[0]), BLOCK))
    bounds = [0, *np.unique(cuts[(cuts > 0) & (cuts < rows.clients)]).tolist(), rows.clients]
    for first, last in pairwise(bounds):
        span = slice(int(rows.starts[first]), int(ends[last - 1]))
        values = rows.values
        if isinstance(values, RankOne):
            factors = values.factors[first:last]
            part = RankOne(values.coef[span], factors, values.table, values.reg, values.grid)
        else:
            part = values[span]
        counts = None if rows.counts is None else rows.counts[span]
        starts = rows.starts[first:last] - span.start
        yield Rows(starts, rows.lengths[first:last], rows.ids[span], part, counts), places[span]


def _check_groups(offsets: Long, members: Long, senders: int, denoisers: int) -> None:
    fits = len(offsets) == denoisers + 1 and offsets[0] == 0 and offsets[-1] == len(members)
    fits = fits and not (np.diff(offsets) < 0).any() and not (len(members) and members.min() < 0)
    if not fits or np.bincount(members, minlength=senders + 1)[senders:].any():
        raise TacitError(
            "groups and denoisers do not belong together", "give one group of senders per denoiser"
        )
    if len(members) and np.bincount(members).max() > 1:
        raise TacitError("a client that sent its noise twice", "assign each client to one denoiser")


def _chosen(rows: Rows, clients: Long) -> Rows:
    """The rows of some clients, in the order given; nothing per row is copied."""
    values = rows.values
    if isinstance(values, RankOne):
        values = RankOne(values.coef, np.ascontiguousarray(values.factors[clients]), values.table, values.reg)
    return Rows(rows.starts[clients], rows.lengths[clients], rows.ids, values, rows.counts)


def _dim(rows: Rows) -> int:
    values = rows.values
    return values.factors.shape[1] if isinstance(values, RankOne) else values.shape[1]


def _kind(rows: Rows) -> np.dtype:
    values = rows.values
    return values.factors.dtype if isinstance(values, RankOne) else values.dtype


def _add(values: np.ndarray, rows: Rows, places: Index, sign: Sign, bits: int | None, *, table: bool) -> None:
    """Add one part, however its values are known, with the part of the table or without."""
    if not isinstance(rows.values, RankOne):
        add_written(values, rows, places, written(rows), sign)
    elif bits is not None:
        add_scaled_grid(values, rows, places, rank_one(rows), step_scale(bits) * sign)
    else:
        known = rank_one(rows)
        add_scaled(values, rows, places, known, sign)
        if table and known.reg != 0:
            add_table(values, rows, places, people(rows), known.table, sign * known.reg)


def _places(noise: Rows, own: Rows, group_offsets: Long, catalogue: int) -> tuple[Long, Index, Index, Index]:
    """What each denoiser will send, and where in it every received and every own row goes."""
    received = np.concatenate([[0], np.cumsum(noise.lengths)])[group_offsets]
    most = np.minimum(np.diff(received) + own.lengths, catalogue)
    ids = np.empty(int(most.sum()), dtype=np.int32)
    lengths = np.zeros(own.clients, dtype=np.int64)
    noise_at, own_at = np.zeros(len(noise.ids), dtype=np.int32), np.zeros(len(own.ids), dtype=np.int32)
    slots = np.full(catalogue, -1, dtype=np.int32)
    used = _place(
        group_offsets, noise.starts, noise.lengths, noise.ids, own.starts, own.lengths, own.ids,
        slots, lengths, ids, noise_at, own_at,
    )  # fmt: skip
    return lengths, ids[:used], noise_at, own_at


@kernel
def _place(
    group_offsets: Long,
    starts: Long,
    lengths: Long,
    ids: Index,
    own_starts: Long,
    own_lengths: Long,
    own_ids: Index,
    slots: Index,
    sent_lengths: Long,
    sent: Index,
    places: Index,
    own_places: Index,
) -> int:
    base = 0
    for group in range(len(sent_lengths)):
        own_from, own_to = own_starts[group], own_starts[group] + own_lengths[group]
        end = _mark(own_ids, own_from, own_to, slots, sent, base)
        for member in range(group_offsets[group], group_offsets[group + 1]):
            end = _mark(ids, starts[member], starts[member] + lengths[member], slots, sent, end)
        sent[base:end].sort()
        for place in range(base, end):
            slots[np.uint32(sent[place])] = place
        for place in range(own_from, own_to):
            own_places[place] = slots[np.uint32(own_ids[place])]
        for member in range(group_offsets[group], group_offsets[group + 1]):
            for place in range(starts[member], starts[member] + lengths[member]):
                places[place] = slots[np.uint32(ids[place])]
        for place in range(base, end):
            slots[np.uint32(sent[place])] = -1
        sent_lengths[group] = end - base
        base = end
    return base


@kernel
def _mark(ids: Index, start: int, stop: int, slots: Index, sent: Index, end: int) -> int:
    """Append the ids not seen yet."""
    for place in range(start, stop):
        item = np.uint32(ids[place])
        if slots[item] < 0:
            slots[item] = 0
            sent[end] = ids[place]
            end += 1
    return end
