"""What an evaluated model must offer, and its scores in blocks of users."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.types import Index

Scores = NDArray[np.float32]
BLOCK_BYTES = 64 * 2**20


class Scorer(Protocol):
    """A model that orders the catalogue for a user."""

    def scores(self, users: Index) -> Scores:
        """One row per user, one column per item of the catalogue; larger is better."""
        ...


@runtime_checkable
class Rater(Protocol):
    """A model that predicts ratings."""

    def predict(self, users: Index, items: Index) -> Scores:
        """One predicted rating per pair."""
        ...


def score_blocks(
    scorer: Scorer, users: Index, catalogue: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[slice, Scores]]:
    """The rows of ``users`` block after block, each with its checked scores.

    A block holds at most ``block_bytes`` of scores, so that nothing of size users x items ever exists.

    Args:
        scorer: The model.
        users: Whose scores are wanted.
        catalogue: How many items there are.
        block_bytes: The most memory one block may take; a block has at least one user.

    Yields:
        Which positions of ``users`` the block covers, and its scores (users x items).

    Example:
        >>> class Flat:
        ...     def scores(self, users):
        ...         return np.zeros((len(users), 3), "f4")
        >>> blocks = score_blocks(Flat(), np.arange(5, dtype="i4"), catalogue=3, block_bytes=24)
        >>> [(rows.start, scores.shape) for rows, scores in blocks]
        [(0, (2, 3)), (2, (2, 3)), (4, (1, 3))]
    """
    step = max(1, block_bytes // (4 * max(1, catalogue)))
    for start in range(0, len(users), step):
        rows = slice(start, min(start + step, len(users)))
        yield rows, _checked(scorer.scores(users[rows]), users[rows], catalogue)


def _checked(scores: Scores, users: Index, catalogue: int) -> Scores:
    if scores.shape != (len(users), catalogue):
        raise TacitError(
            f"scores of shape {scores.shape} for {len(users)} users and {catalogue} items",
            "return one row per user and one column per item of the catalogue",
        )
    with np.errstate(over="ignore"):
        block = np.ascontiguousarray(scores, dtype=np.float32)
    if not np.isfinite(block).all():
        user = int(users[int(np.argmin(np.isfinite(block).all(axis=1)))])
        raise TacitError(
            f"the scores of user {user} are not finite",
            "the model has diverged: lower its rate, clip its updates or add less noise",
        )
    return block
