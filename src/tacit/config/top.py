"""The top of a list, the same for a run folder and for a device: seen items out, raw ids and titles in."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.data.interactions import Scale
from tacit.errors import TacitError
from tacit.types import Array, Floats, Index


class Recommended(NamedTuple):
    """One item of a list."""

    item: int | str
    score: float
    title: str


def top(
    scores: Floats, seen: Index, k: int, raws: Sequence[int | str], titles: Sequence[str] | Array | None
) -> list[Recommended]:
    """The best ``k`` of one person's scores over the catalogue; of equal scores the first item wins.

    Example:
        >>> top(np.array([0.1, 0.9, 0.5]), np.array([1], "i4"), 2, ["a", "b", "c"], None)
        [Recommended(item='c', score=0.5, title=''), Recommended(item='a', score=0.1, title='')]
    """
    best = best_places(scores, seen, k)
    return [
        Recommended(raws[at], float(scores[at]), str(titles[at]) if titles is not None else "")
        for at in best.tolist()
    ]


def best_places(scores: Floats, seen: Index, k: int) -> Array:
    """The positions of the best ``k`` that are not among the seen.

    Example:
        >>> best_places(np.array([0.1, 0.9, 0.5]), np.array([1], "i4"), 5).tolist()
        [2, 0]
    """
    if k < 1:
        raise TacitError(f"a list of {k} items", "ask for one or more")
    open_to_all = np.array(scores, dtype=np.float64)
    open_to_all[seen] = -np.inf
    return np.argsort(-open_to_all, kind="stable")[: min(k, len(open_to_all) - len(seen))]


def refuse_off_scale(scale: Scale | None, values: Floats, called: str) -> None:
    """A history on another scale would be taken for another taste."""
    if scale and len(values) and not (values.min() >= scale.low and values.max() <= scale.high):
        raise TacitError(
            f"{called} holds ratings outside {scale.low:g} to {scale.high:g}", "use the data set's scale"
        )
