"""Own items and sampled others: what clients of implicit feedback train on, whatever their model."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.logistic import Samples, draw_samples
from tacit.local.work import Broadcast
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index, Long, Segment

Pool: TypeAlias = Literal["catalogue", "received"]


def places(arrays: Mapping[str, Array], catalogue: int) -> Index:
    """The row of each item among the rows received (``-1``: it was not).

    The server marks the items of a sub-model in ``selected``, one bit each; without it all rows are there.

    Example:
        >>> places({"selected": np.packbits(np.array([0, 1, 1], dtype=bool))}, 3)
        array([-1,  0,  1], dtype=int32)
    """
    if "selected" not in arrays:
        return np.arange(catalogue, dtype=np.int32)
    chosen = np.unpackbits(arrays["selected"], count=catalogue).astype(bool)
    return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)


def drawn(
    cohort: Cohort, keys: Keys, round: int, place: Index, *, epochs: int, negatives: int, pool: Pool
) -> Samples:
    """Each client's samples of a round: ``negatives`` fresh unseen items per own item and epoch.

    Own items that were not received are left out. With ``pool="catalogue"`` others are drawn among all unseen
    items and those not received are left out; with ``"received"`` they are drawn among the received.
    """
    return draw_samples(
        cohort.offsets,
        cohort.items,
        keys.users(cohort.users, "negatives", round),
        negatives=negatives,
        epochs=epochs,
        catalogue=cohort.catalogue,
        place=place,
        inside=place >= 0 if pool == "received" else None,
    )


def drawable(arrays: Mapping[str, Array], catalogue: int, pool: Pool) -> NDArray[np.bool_]:
    """Which items may be drawn as others: all, or those received.

    Example:
        >>> drawable({"selected": np.packbits(np.array([0, 1, 1], dtype=bool))}, 3, "received")
        array([False,  True,  True])
    """
    return places(arrays if pool == "received" else {}, catalogue) >= 0


def first_negatives(
    cohort: Cohort, keys: Keys, received: Broadcast, *, negatives: int, pool: Pool
) -> Segment:
    """The first epoch's negatives by item, those that were not received and then left out among them."""
    found = draw_samples(
        cohort.offsets,
        cohort.items,
        keys.users(cohort.users, "negatives", received.round),
        negatives=negatives,
        epochs=1,
        catalogue=cohort.catalogue,
        inside=drawable(received.arrays, cohort.catalogue, pool),
    )
    written = found.counts[:, 0]
    owner = np.repeat(np.arange(len(cohort)), written)
    at = np.arange(written.sum()) + np.repeat(found.starts - (np.cumsum(written) - written), written)
    lost = found.labels[at] == 0
    ids = found.touched[found.touched_starts[owner] + found.slots[at]][lost]
    lengths = np.bincount(owner[lost], minlength=len(cohort))
    return Segment(np.cumsum(lengths) - lengths, lengths, ids)


def whole_tables(lengths: Long, ids: Index, values: Floats, rows: int) -> Floats:
    """One table per client from the rows it has something to say of; the other rows are zero.

    Example:
        >>> one, two = np.array([1, 2]), np.array([1, 0, 1], "i4")
        >>> whole_tables(one, two, np.array([[5.0], [6.0], [7.0]]), 2)[:, :, 0].tolist()
        [[0.0, 5.0], [6.0, 7.0]]
    """
    whole = np.zeros((len(lengths), rows, *values.shape[1:]), dtype=values.dtype)
    whole[np.repeat(np.arange(len(lengths)), lengths), ids] = values
    return whole
