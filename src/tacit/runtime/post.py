"""Letters between simulated clients: kept until their recipients read them, then gone."""

from dataclasses import dataclass

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.ragged import copy_runs
from tacit.ledger.record import Traffic
from tacit.local.work import Inbox, Letters
from tacit.types import Array, Index, Long, RankOne, Rows


@dataclass(frozen=True)
class _Sorted:
    """All letters of a round, one recipient after the other."""

    to: Index
    nbytes: Long
    rows: Rows


class PostOffice:
    """Collects the letters of one round, chunk by chunk, and hands each recipient its own.

    Only the rows that are letters are kept, so a chunk's other rows can be freed; sorting moves each letter
    once and lets go of a chunk's as soon as they are moved.
    """

    def __init__(self) -> None:
        self._to: list[Index] = []
        self._nbytes: list[Long] = []
        self._rows: list[Rows] = []
        self._sorted: _Sorted | None = None

    def add(self, letters: Letters, nbytes: Long) -> Traffic:
        """Take one chunk's letters, with each one's length; what crossed on the way in."""
        sending = np.flatnonzero(letters.to >= 0)
        if not len(sending):
            return Traffic()
        self._to.append(letters.to[sending])
        self._nbytes.append(nbytes[sending])
        self._rows.append(_compacted(letters.rows, sending))
        return Traffic(letters_out=int(nbytes[sending].sum()), rows_out=self._rows[-1].total)

    def sort(self) -> None:
        """Nobody writes any more: bring the letters of each recipient together."""
        if not self._to:
            raise TacitError(
                "nobody wrote a letter", "an exchange that reads letters needs one that sends them"
            )
        to = np.concatenate(self._to)
        order = np.argsort(to, kind="stable")
        nbytes = np.concatenate(self._nbytes)
        self._sorted = _Sorted(to[order], nbytes[order], _in_order(self._rows, order))

    def read(self, recipients: Index) -> tuple[Inbox, Traffic]:
        """The letters of some recipients (rising order), and what crossed on the way out."""
        if self._sorted is None:
            raise TacitError(
                "letters are read before they are sorted", "call sort() once nobody writes any more"
            )
        to = self._sorted.to
        first = np.searchsorted(to, recipients, side="left")
        last = np.searchsorted(to, recipients, side="right")
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(last - first)])
        members = np.repeat(first - offsets[:-1], last - first) + np.arange(offsets[-1])
        letters = slice(int(first[0]), int(last[-1])) if len(members) else slice(0, 0)
        rows = _between(self._sorted.rows, letters)
        members -= letters.start
        nbytes = self._sorted.nbytes[letters][members]
        return Inbox(offsets, members, rows), Traffic(
            letters_in=int(nbytes.sum()), rows_in=int(rows.lengths[members].sum())
        )


def _numbers(rows: Rows) -> Array:
    """What is kept per row: its coefficient, or its values."""
    return rows.values.coef if isinstance(rows.values, RankOne) else rows.values


def _with_numbers(rows: Rows, numbers: Array, factors: Array | None) -> Array | RankOne:
    known = rows.values
    if not isinstance(known, RankOne) or factors is None:
        return numbers
    return RankOne(numbers, factors, known.table, known.reg, known.grid)


def _compacted(rows: Rows, chosen: Array) -> Rows:
    """The chosen clients' rows, back to back."""
    lengths = rows.lengths[chosen]
    targets = np.cumsum(lengths) - lengths
    total, numbers = int(lengths.sum()), _numbers(rows)
    ids = np.empty(total, dtype=np.int32)
    kept = np.empty((total, *numbers.shape[1:]), dtype=numbers.dtype)
    copy_runs(rows.starts[chosen], lengths, targets, rows.ids, ids)
    copy_runs(rows.starts[chosen], lengths, targets, numbers, kept)
    factors = rows.values.factors[chosen] if isinstance(rows.values, RankOne) else None
    return Rows(targets, lengths, ids, _with_numbers(rows, kept, factors))


def _in_order(parts: list[Rows], order: Array) -> Rows:
    """All parts as one, letter ``order[0]`` first; ``parts`` is empty afterwards."""
    lengths = np.concatenate([part.lengths for part in parts])[order]
    starts = np.cumsum(lengths) - lengths
    targets = np.empty_like(starts)
    targets[order] = starts
    total, like = int(lengths.sum()), parts[0]
    ids = np.empty(total, dtype=np.int32)
    numbers = np.empty((total, *_numbers(like).shape[1:]), dtype=_numbers(like).dtype)
    factors = _factors(parts, order)
    done = 0
    while parts:
        part = parts.pop(0)
        mine = targets[done : done + part.clients]
        copy_runs(part.starts, part.lengths, mine, part.ids, ids)
        copy_runs(part.starts, part.lengths, mine, _numbers(part), numbers)
        done += part.clients
    return Rows(starts, lengths, ids, _with_numbers(like, numbers, factors))


def _factors(parts: list[Rows], order: Array) -> Array | None:
    known = [part.values.factors for part in parts if isinstance(part.values, RankOne)]
    return np.concatenate(known)[order] if known else None


def _between(rows: Rows, letters: slice) -> Rows:
    """Some neighbouring letters; nothing per row is copied."""
    starts, lengths = rows.starts[letters], rows.lengths[letters]
    first = int(starts[0]) if len(starts) else 0
    span = slice(first, int(starts[-1] + lengths[-1]) if len(starts) else 0)
    factors = rows.values.factors[letters] if isinstance(rows.values, RankOne) else None
    return Rows(starts - first, lengths, rows.ids[span], _with_numbers(rows, _numbers(rows)[span], factors))
