"""Letters between simulated clients: kept until their recipients read them, then gone."""

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.ragged import gathered
from tacit.ledger.record import Traffic
from tacit.local.work import Inbox, Letters
from tacit.types import Array, Index, Long, RankOne, Rows


class PostOffice:
    """Collects the letters of one round, chunk by chunk, and hands each recipient its own.

    Only the rows that are letters are kept, so a chunk's other rows can be freed.
    """

    def __init__(self) -> None:
        self._to: list[Index] = []
        self._rows: list[Rows] = []
        self._nbytes: list[Long] = []
        self._sorted: tuple[Index, Rows, Long] | None = None

    def add(self, letters: Letters, nbytes: Long) -> Traffic:
        """Take one chunk's letters, with each one's length; what crossed on the way in."""
        sending = np.flatnonzero(letters.to >= 0)
        if not len(sending):
            return Traffic()
        self._to.append(letters.to[sending])
        self._nbytes.append(nbytes[sending])
        self._rows.append(_compacted(letters.rows, sending))
        return Traffic(letters_out=int(nbytes[sending].sum()), rows_out=self._rows[-1].total)

    def read(self, recipients: Index) -> tuple[Inbox, Traffic]:
        """The letters of some recipients (rising order), and what crossed on the way out."""
        if self._sorted is None:
            raise TacitError(
                "letters are read before they are sorted", "call sort() once nobody writes any more"
            )
        to, rows, nbytes = self._sorted
        first = np.searchsorted(to, recipients, side="left")
        last = np.searchsorted(to, recipients, side="right")
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(last - first)])
        members = np.repeat(first - offsets[:-1], last - first) + np.arange(offsets[-1])
        traffic = Traffic(letters_in=int(nbytes[members].sum()), rows_in=int(rows.lengths[members].sum()))
        return Inbox(offsets, members, rows), traffic

    def sort(self) -> None:
        """Nobody writes any more: bring the letters of each recipient together."""
        if not self._to:
            raise TacitError(
                "nobody wrote a letter", "an exchange that reads letters needs one that sends them"
            )
        to = np.concatenate(self._to)
        order = np.argsort(to, kind="stable")
        nbytes = np.concatenate(self._nbytes)[order]
        self._sorted = to[order], _reordered(_joined(self._rows), order), nbytes


def _compacted(rows: Rows, chosen: Array) -> Rows:
    bounds = np.empty(2 * rows.clients + 1, dtype=np.int64)  # start and stop of every client, alternating
    bounds[0:-1:2], bounds[1::2], bounds[-1] = rows.starts, rows.starts + rows.lengths, 0
    lengths = rows.lengths[chosen]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    pick = (2 * chosen).astype(np.int64)
    ids = gathered(bounds, pick, offsets, rows.ids)
    if isinstance(rows.values, RankOne):
        coef = gathered(bounds, pick, offsets, rows.values.coef)
        values = RankOne(
            coef, rows.values.factors[chosen], rows.values.table, rows.values.reg, rows.values.grid
        )
    else:
        values = gathered(bounds, pick, offsets, rows.values)
    return Rows(offsets[:-1], lengths, ids, values)


def _joined(parts: list[Rows]) -> Rows:
    total = sum(part.total for part in parts)
    first = parts[0]
    ids = np.empty(total, dtype=np.int32)
    starts, lengths, factors = [], [], []
    like = first.values.coef if isinstance(first.values, RankOne) else first.values
    flat = np.empty((total, *like.shape[1:]), dtype=like.dtype)
    at = 0
    for place in range(len(parts)):
        part, parts[place] = parts[place], first  # let each part go as soon as it is copied
        count = part.total
        ids[at : at + count] = part.ids
        flat[at : at + count] = part.values.coef if isinstance(part.values, RankOne) else part.values
        if isinstance(part.values, RankOne):
            factors.append(part.values.factors)
        starts.append(part.starts + at)
        lengths.append(part.lengths)
        at += count
    parts.clear()
    values = flat
    if isinstance(first.values, RankOne):
        values = RankOne(
            flat, np.concatenate(factors), first.values.table, first.values.reg, first.values.grid
        )
    return Rows(np.concatenate(starts), np.concatenate(lengths), ids, values)


def _reordered(rows: Rows, order: Array) -> Rows:
    values = rows.values
    if isinstance(values, RankOne):
        values = RankOne(values.coef, values.factors[order], values.table, values.reg, values.grid)
    return Rows(rows.starts[order], rows.lengths[order], rows.ids, values)
