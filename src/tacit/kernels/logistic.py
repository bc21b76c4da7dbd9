"""A client's epochs of logistic matrix factorisation with sampled negatives, without a copy of the catalogue.

Samples are drawn first, from the client's own key: every epoch each own item once, with fresh negatives, in a
fresh order. Then the client trains on copies of the rows its samples touch, and of no others. A client's
numbers do not depend on who else is in the call.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.kernels.compiled import Number, Span, dim_of, kernel, span
from tacit.kernels.emitter import padded_width
from tacit.kernels.factors import _errors
from tacit.kernels.plain import LARGEST
from tacit.kernels.sampling import _below
from tacit.kernels.stores import scatter
from tacit.kernels.vectors import padded, padded_zeros, weighted_sum
from tacit.types import Floats, Index, Long

if TYPE_CHECKING:
    from tacit.rng import Keyed


class Samples(NamedTuple):
    """Who trains on what, in order: client ``c`` in epoch ``e`` reads ``counts[c, e]`` samples.

    They start at ``starts[c] + e * room[c]``. A sample is a slot, the place of its item among the rows the
    client touches (``touched[touched_starts[c] + slot]``), and a label.
    """

    starts: Long
    room: Long
    counts: Long
    slots: Index
    labels: Floats
    touched_starts: Long
    touched_counts: Long
    touched: Index


def draw_samples(
    offsets: Long,
    items: Index,
    keys: "Keyed",
    *,
    negatives: int,
    epochs: int,
    catalogue: int,
    place: Index | None = None,
    inside: NDArray[np.bool_] | None = None,
    dtype: str = "float32",
) -> Samples:
    """Draw each client's samples: ``negatives`` items it has not got per own item, anew in each epoch.

    Negatives are uniform over the client's complement, with replacement. With ``place`` (the row of each item
    among the rows received, ``-1``: not received) samples of items that were not received are left out.
    ``inside`` restricts what negatives are drawn from to the items it marks.

    Example:
        >>> offsets, items = np.array([0, 2]), np.array([1, 3], "i4")
        >>> drawn = draw_samples(offsets, items, np.array([7], "u8"), negatives=2, epochs=3, catalogue=9)
        >>> drawn.counts.tolist(), drawn.labels.sum()
        ([[6, 6, 6]], np.float32(6.0))
    """
    own = np.diff(offsets).astype(np.int64)
    _check(offsets, items, keys, own, negatives, epochs, catalogue)
    room = own * (1 + negatives)
    starts = np.cumsum(room * epochs) - room * epochs
    counts = np.zeros((len(own), epochs), dtype=np.int64)
    slots = np.empty(int((room * epochs).sum()), dtype=np.int32)
    labels = np.empty(len(slots), dtype=dtype)
    most = np.minimum(own * (1 + negatives * epochs), catalogue)
    touched_starts = np.cumsum(most) - most
    touched_counts = np.zeros(len(own), dtype=np.int64)
    touched = np.empty(int(most.sum()), dtype=np.int32)
    where = np.arange(catalogue, dtype=np.int32) if place is None else place
    pool = np.ones(catalogue, dtype=np.bool_) if inside is None else inside
    _draw(
        offsets, items, keys, negatives, epochs, where, pool, int(np.count_nonzero(pool)), starts, room,
        counts, slots, labels, touched_starts, touched_counts, touched,
    )  # fmt: skip
    return Samples(starts, room, counts, slots, labels, touched_starts, touched_counts, touched)


def _check(
    offsets: Long, items: Index, keys: "Keyed", own: Long, negatives: int, epochs: int, catalogue: int
) -> None:
    if len(keys) != len(own):
        raise TacitError(f"{len(keys)} keys for {len(own)} clients", "give one key per client")
    if negatives < 0 or epochs < 1:
        raise TacitError(f"{negatives} negatives in {epochs} epochs", "give 0 or more, and at least 1 epoch")
    mine = items[offsets[0] : offsets[-1]]
    if len(mine) and (mine.min() < 0 or mine.max() >= catalogue):
        raise TacitError(f"an item outside the catalogue of {catalogue}", "number items from 0")


@kernel
def _draw(
    offsets: Long,
    items: Index,
    keys: "Keyed",
    negatives: int,
    epochs: int,
    place: Index,
    pool: NDArray[np.bool_],
    pool_size: int,
    starts: Long,
    room: Long,
    counts: Long,
    slots: Index,
    labels: Floats,
    touched_starts: Long,
    touched_counts: Long,
    touched: Index,
) -> None:
    catalogue = np.uint64(len(place))
    mine = np.zeros(len(place), np.int32)  # client + 1 where the item is the client's own
    known = np.zeros(len(place), np.int32)  # client + 1 where the item has a slot already
    slot_of = np.zeros(len(place), np.int32)
    for client in range(len(starts)):
        mark, counter = np.int32(client + 1), np.uint64(0)
        free = pool_size
        for at in range(offsets[client], offsets[client + 1]):
            mine[np.uint32(items[at])] = mark
            free -= np.int64(pool[np.uint32(items[at])])
        touches = 0
        for epoch in range(epochs):
            first = starts[client] + epoch * room[client]
            written = first
            for at in range(offsets[client], offsets[client + 1]):
                for turn in range(1 + negatives):
                    item = np.uint64(np.uint32(items[at]))
                    if turn > 0:
                        if free == 0:
                            continue
                        item, counter = _below(catalogue, keys[client], counter)
                        while mine[item] == mark or not pool[item]:
                            item, counter = _below(catalogue, keys[client], counter)
                    row = place[item]
                    if row < 0:
                        continue
                    if known[item] != mark:
                        known[item] = mark
                        slot_of[item] = touches
                        touched[touched_starts[client] + touches] = row
                        touches += 1
                    slots[written] = slot_of[item]
                    labels[written] = turn == 0
                    written += 1
            counts[client, epoch] = written - first
            counter = _shuffled(slots, labels, first, written - first, keys[client], counter)
        touched_counts[client] = touches


@kernel
def _shuffled(
    slots: Index, labels: Floats, first: int, count: int, key: np.uint64, counter: np.uint64
) -> np.uint64:
    """Put a stretch of samples into a random order (Fisher and Yates)."""
    for left in range(count - 1, 0, -1):
        chosen, counter = _below(np.uint64(left + 1), key, counter)
        one, other = first + left, first + np.int64(chosen)
        slots[one], slots[other] = slots[other], slots[one]
        labels[one], labels[other] = labels[other], labels[one]
    return counter


class Trained(NamedTuple):
    """What a cohort computed: new vectors, and per touched row the sum of its gradients over all steps."""

    factors: Floats
    starts: Long
    lengths: Long
    ids: Index
    gradients: Floats


def train_epochs(
    samples: Samples, factors: Floats, table: Floats, dim: int, *, rate: float, batch: int
) -> Trained:
    """Stochastic gradient descent on ``-log σ(±u·v)``, summed over a batch, both sides from old values.

    A row's gradient is ``(before - after) / rate``: what a server with the same rate must subtract.
    ``labels`` of the samples are used up.

    Example:
        >>> offsets, items = np.array([0, 1]), np.array([1], "i4")
        >>> drawn = draw_samples(offsets, items, np.array([7], "u8"), negatives=0, epochs=1, catalogue=2)
        >>> factors, table = np.ones((1, 2), "f4"), np.zeros((2, 2), "f4")
        >>> done = train_epochs(drawn, factors, table, 2, rate=0.5, batch=8)
        >>> done.ids.tolist(), done.gradients.tolist(), done.factors.tolist()
        ([1], [[-0.5, -0.5]], [[1.0, 1.0]])
    """
    if dim > LARGEST:
        raise TacitError(f"vectors of {dim} numbers", f"give a dimension of at most {LARGEST}")
    if factors.dtype != table.dtype or samples.labels.dtype != table.dtype:
        raise TacitError(f"vectors in {factors.dtype}, table in {table.dtype}", "use one type for all")
    if factors.shape != (len(samples.starts), dim) or table.shape[1] < dim:
        raise TacitError(f"vectors of shape {factors.shape}", f"give one of {dim} numbers per client")
    if not (rate > 0 and batch >= 1):
        raise TacitError(f"a step of {rate} on batches of {batch}", "give both above zero")
    lengths = samples.touched_counts
    starts = np.cumsum(lengths) - lengths
    ready = table if table.shape[1] == padded_width(dim, table.itemsize) else padded(table[:, :dim])
    ids = np.empty(int(lengths.sum()), dtype=np.int32)
    rows = padded_zeros(len(ids), dim, table.dtype)
    updated = np.ascontiguousarray(factors).copy()
    _train(
        span(dim), samples.starts, samples.room, samples.counts, samples.slots, samples.labels,
        samples.touched_starts, samples.touched, starts, lengths, ready, table.dtype.type(rate), int(batch),
        ids, rows, updated,
    )  # fmt: skip
    gradients = rows if rows.shape[1] == dim else np.ascontiguousarray(rows[:, :dim])
    return Trained(updated, starts, lengths, ids, gradients)


@kernel
def _train(
    shape: Span,
    sample_starts: Long,
    sample_room: Long,
    counts: Long,
    slots: Index,
    labels: Floats,
    touched_starts: Long,
    touched: Index,
    starts: Long,
    lengths: Long,
    table: Floats,
    rate: Number,
    batch: int,
    ids: Index,
    rows: Floats,
    factors: Floats,
) -> None:
    dim, width, one = dim_of(shape), table.shape[1], table.dtype.type(1)
    vector, gradient = np.zeros(width, table.dtype), np.zeros(width, table.dtype)
    block = 64 // table.itemsize
    spare_ids, spare = np.zeros(block, np.int32), np.zeros(block, table.dtype)
    nothing, dots = np.zeros(block, table.dtype), np.empty(batch + block, table.dtype)
    for client in range(len(starts)):
        held = rows[starts[client] : starts[client] + lengths[client]]
        for slot in range(lengths[client]):
            row = touched[touched_starts[client] + slot]
            ids[starts[client] + slot] = row
            for k in range(width):
                held[slot, k] = table[np.uint32(row), k]
        for k in range(dim):
            vector[k] = factors[client, k]
        for epoch in range(counts.shape[1]):
            first = sample_starts[client] + epoch * sample_room[client]
            for done in range(0, counts[client, epoch], batch):
                at, size = first + done, min(batch, counts[client, epoch] - done)
                _errors(shape, held, slots, at, size, vector, nothing, 0, 0, dots, 0, spare_ids, spare)
                for j in range(size):
                    labels[at + j] = one / (one + np.exp(-dots[j])) - labels[at + j]
                gradient[:] = 0
                weighted_sum(shape, held, slots, at, size, labels, at, gradient)
                for j in range(at, at + size):
                    labels[j] *= -rate
                scatter(shape, held, slots, at, size, labels, vector)
                for k in range(dim):
                    vector[k] -= rate * gradient[k]
        for k in range(dim):
            factors[client, k] = vector[k]
        for slot in range(lengths[client]):
            row = np.uint32(ids[starts[client] + slot])
            for k in range(dim):
                held[slot, k] = (table[row, k] - held[slot, k]) / rate
