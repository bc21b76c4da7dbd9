"""Sampled ranking: each held-out item against N items the user had not seen in training.

What is drawn from: the catalogue minus the user's training and support items and minus the held-out item
itself, uniformly and without replacement. Other held-out items of the user stay in the pool: leaving them out
would tell candidates apart by what is being tested. A sampled metric estimates another quantity than the full
one and may order models differently (Krichene and Rendle, 2020), so it has a name of its own, ``hr@10[99]``.
"""

import numpy as np

from tacit.errors import TacitError
from tacit.evaluate.held_out import HeldOut
from tacit.evaluate.rank_loops import rank_block_sampled
from tacit.evaluate.ranks import Ranks
from tacit.evaluate.scorer import BLOCK_BYTES, Scorer, score_blocks
from tacit.rng import Keys


def sampled_ranks(
    scorer: Scorer, held: HeldOut, *, negatives: int, keys: Keys, block_bytes: int = BLOCK_BYTES
) -> Ranks:
    """Rank each held-out item alone against a sample of items the user had not seen in training.

    The sample depends on the keys, the user and the held-out item: models judged with the same keys face the
    same candidates, and another seed draws others.

    Args:
        scorer: The model.
        held: Who is judged on what.
        negatives: How many items to draw per held-out item; users with fewer candidates face all of them.
        keys: Draw the negatives and settle ties.
        block_bytes: Memory for one block of scores (speed only).

    Returns:
        Ranks, each within a list of its own.

    Example:
        >>> from tacit.evaluate.held_out import Lists
        >>> from tacit.rng import SeededKeys
        >>> class Rising:
        ...     def scores(self, users):
        ...         return np.tile(np.arange(50, dtype="f4"), (len(users), 1))
        >>> one, none = (
        ...     Lists(np.array([0, 1]), np.array([49], "i4")),
        ...     Lists(np.zeros(2, "i8"), np.empty(0, "i4")),
        ... )
        >>> held = HeldOut(np.array([0], "i4"), one, none, one, 50, 0)
        >>> ranks = sampled_ranks(Rising(), held, negatives=9, keys=SeededKeys(0))
        >>> ranks.ranks.tolist(), ranks.among.tolist()
        ([1], [10])
    """
    if negatives < 1:
        raise TacitError(f"{negatives} sampled negatives", "ask for at least one, as in hr@10[99]")
    ranks = np.empty((3, len(held.positives.items)), np.int32)
    among = np.empty(len(held.positives.items), np.int32)
    places, draws = keys.users(held.users, "evaluate/ties"), keys.users(held.users, "evaluate/negatives")
    lists = held.seen.offsets, held.seen.items, held.positives.offsets, held.positives.items
    for rows, scores in score_blocks(scorer, held.users, held.catalogue, block_bytes):
        rank_block_sampled(scores, rows.start, *lists, places, draws, negatives, ranks, among)
    return Ranks.of(held, ranks, among, np.empty((len(held.users), 0), np.int32), alone=True)
