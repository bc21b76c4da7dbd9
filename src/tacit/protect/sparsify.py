"""Only the largest entries of an update travel."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.kernels.rows import materialise
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed
from tacit.settings import Share, checked
from tacit.types import Array, Arrays, RankOne, RoundFacts, Rows, Steps


def largest(values: Array, keep: int) -> Array:
    """The places of the ``keep`` largest numbers in size, in rising order; of equal ones the first.

    Example:
        >>> largest(np.array([0.5, -3.0, 1.0]), 2)
        array([1, 2])
    """
    if keep >= len(values):
        return np.arange(len(values))
    sizes = np.abs(values)
    limit = np.partition(sizes, len(sizes) - keep)[len(sizes) - keep]
    chosen = ~(sizes <= limit)  # what is not a number stays, so that the server can refuse it
    chosen[np.flatnonzero(sizes == limit)[: max(0, keep - np.count_nonzero(chosen))]] = True
    return np.flatnonzero(chosen)


def cells_of(array: Array, places: list[Array]) -> Rows:
    """Chosen entries of one dense array per client, as cells.

    Example:
        >>> cells_of(np.array([[[1.0, 2.0], [3.0, 4.0]]]), [np.array([3])]).ids
        array([3], dtype=int32)
    """
    lengths = np.array([len(mine) for mine in places], dtype=np.int64)
    chosen = [update.reshape(-1)[mine] for update, mine in zip(array, places, strict=True)]
    ids = np.concatenate(places).astype(np.int32) if places else np.zeros(0, dtype=np.int32)
    values = np.concatenate(chosen) if chosen else np.zeros(0, dtype=array.dtype)
    starts = np.cumsum(lengths) - lengths
    return Rows(starts, lengths, ids, values[:, np.newaxis], None, array.shape[-1], array.shape[1:])


@dataclass(frozen=True)
class TopK(Protection):
    """Of each array of an update the share ``share`` of entries that is largest in size; the others are zero.

    Formal guarantees:
        None of its own. After noise on every entry it looks at noisy numbers only, and takes nothing away
        from what the noise promises. Before noise on devices it is refused: which entries are large is told
        in the clear by their places, and no noise on their values changes that.

    ===========================  ==========================================================
    edge case                    what happens
    ===========================  ==========================================================
    rows with ids                the largest entries of the rows that are there
    equal sizes at the limit     the first of them are kept
    vectors, tables of one row   treated like any other array
    ===========================  ==========================================================
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise TacitError(
                f"topk of a share of {self.share}", "give a share above 0 and at most 1, as topk:0.1"
            )

    @property
    def leaves(self) -> Form:
        """What was chosen."""
        return Form.CHOSEN

    @property
    def reads(self) -> frozenset[Form]:
        """Whatever is larger where it says more."""
        return frozenset({Form.CHOSEN, Form.STEPS, Form.FACTORS})

    def steps(self, incoming: Steps | None) -> None:
        """Not whole numbers that could be added up under masks."""
        del incoming

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Keep the largest."""
        del bound, state, keys
        return {name: self._sparse(array) for name, array in update.items()}

    def _sparse(self, array: Array | Rows) -> Rows:
        if isinstance(array, np.ndarray):
            keep = math.ceil(self.share * math.prod(array.shape[1:]))
            return cells_of(array, [largest(one.reshape(-1), keep) for one in array])
        values = materialise(array) if isinstance(array.values, RankOne) else array.values
        width = array.cells or values.shape[1]
        ids, numbers, lengths = [], [], []
        for start, length in zip(array.starts, array.lengths, strict=True):
            mine = slice(int(start), int(start + length))
            flat = values[mine].reshape(-1)
            chosen = largest(flat, math.ceil(self.share * len(flat)))
            if array.cells:
                ids.append(array.ids[mine][chosen])
            else:
                ids.append(array.ids[mine].astype(np.int64)[chosen // width] * width + chosen % width)
            numbers.append(flat[chosen])
            lengths.append(len(chosen))
        sizes = np.array(lengths, dtype=np.int64)
        flat_ids = np.concatenate(ids).astype(np.int32) if ids else array.ids
        told = np.concatenate(numbers)[:, np.newaxis] if numbers else values
        return replace(
            array,
            starts=np.cumsum(sizes) - sizes,
            lengths=sizes,
            ids=flat_ids,
            values=told,
            counts=None,
            cells=width,
        )

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """What was private stays private; what was not is not."""
        del state, facts
        return claim


@dataclass(frozen=True)
class NonZero(Protection):
    """Entries of whole arrays that are zero do not travel; for local work that leaves some out itself.

    Formal guarantees:
        None: the places of the others are told in the clear.
    """

    @property
    def leaves(self) -> Form:
        """What is not zero."""
        return Form.CHOSEN

    def steps(self, incoming: Steps | None) -> None:
        """Not numbers at fixed places that could be added up under masks."""
        del incoming

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Leave the zeros out."""
        del bound, state, keys
        return {
            name: cells_of(array, [np.flatnonzero(one) for one in array])
            if isinstance(array, np.ndarray)
            else array
            for name, array in update.items()
        }

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """What was private stays private; what was not is not."""
        del state, facts
        return claim


@checked
def topk(*, share: Share = 0.1) -> TopK:
    """Send only this share of an update's entries, the largest in size.

    Example:
        >>> topk(share=0.5)
        TopK(share=0.5)
    """
    return TopK(share)


PROTECTIONS = {"topk": topk}
