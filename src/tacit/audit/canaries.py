"""Canaries: people whose update is a direction of their own, and who looks for it in the protected totals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.kernels.rows import materialise
from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.protect.clip import norms
from tacit.rng import Keys
from tacit.server.step import ServerStep
from tacit.types import Array, Cohort, Floats, Index, RankOne, Rows

_LOUD = 1e3


@dataclass(frozen=True)
class Noted(ServerStep):
    """The same step, with the protected totals shown to somebody first."""

    inner: ServerStep
    show: Callable[[Mapping[str, Mapping[str, Array]]], None]

    def init(self, shared: Mapping[str, Array]) -> dict[str, Array]:
        """The step's own arrays."""
        return self.inner.init(shared)

    def step(
        self,
        shared: Mapping[str, Array],
        totals: Mapping[str, Mapping[str, Array]],
        state: dict[str, Array],
        round: int,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Show, then step."""
        self.show(totals)
        return self.inner.step(shared, totals, state, round)


@dataclass(frozen=True)
class Canaries(LocalWork):
    """The same work, with the update of some people replaced by a direction of their own.

    ``loud`` makes it longer than any clip norm; without a bound it is as long as the others' are. Where
    others name rows of a table, canaries name all of them: only where tables are sent whole is that unseen.
    """

    inner: LocalWork
    place: Index
    directions: Floats
    shapes: Mapping[str, tuple[int, ...]]
    loud: bool

    @property
    def dense(self) -> bool:
        """As the work itself."""
        return self.inner.dense

    def prepared(self, received: Broadcast) -> Broadcast:
        """As the work itself."""
        return self.inner.prepared(received)

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """Everybody's update; canaries' directions in place of their own."""
        work = self.inner.run(received, private, cohort, inbox, keys)
        place = self.place[cohort.users]
        canary = place >= 0
        if not canary.any():
            return work
        lengths = norms(work.update)
        usual = float(np.median(lengths[~canary])) if (~canary).any() else 1.0
        scale = _LOUD * max(usual, 1.0) if self.loud else usual
        told: dict[str, Array | Rows] = {}
        at = 0
        for name, shape in self.shapes.items():
            array, size = work.update[name], int(np.prod(shape))
            own = scale * self.directions[place[canary], at : at + size].reshape(-1, *shape)
            if isinstance(array, Rows):
                told[name] = _naming_all(array, np.flatnonzero(canary), own)
            else:
                told[name] = array.copy()
                told[name][canary] = own.astype(array.dtype)  # type: ignore[index]
            at += size
        return replace(work, update=told)


def _naming_all(rows: Rows, clients: Array, tables: Floats) -> Rows:
    """The same rows, with a whole table in place of those of some clients."""
    values: Array = materialise(rows) if isinstance(rows.values, RankOne) else rows.values
    spans = zip(rows.starts.tolist(), rows.lengths.tolist(), strict=True)
    kept = [slice(start, start + length) for start, length in spans]
    ids, sent = [rows.ids[span] for span in kept], [values[span] for span in kept]
    counts = None if rows.counts is None else [rows.counts[span] for span in kept]
    for client, table in zip(clients.tolist(), tables, strict=True):
        ids[client] = np.arange(len(table), dtype=np.int32)
        sent[client] = table.astype(values.dtype)
        if counts is not None:
            counts[client] = np.ones(len(table), dtype=np.int32)
    lengths = np.array([len(one) for one in ids], dtype=np.int64)
    behind = None if counts is None else np.concatenate(counts)
    return Rows(np.cumsum(lengths) - lengths, lengths, np.concatenate(ids), np.concatenate(sent), behind)
