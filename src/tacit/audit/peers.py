"""What a denoising client learns from the letters it gets: alone, and together with the server.

A letter holds gradient rows of made-up items, all with the sender's mean rating, and no sender. Its rows lie
on a straight line, ``s_i = c^2 x_i - c mean``: slope and intercept are the sender's vector and mean rating.
The server holds the same rows under the sender's name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.audit.reconstruction import Gradient, Upload, line_of
from tacit.types import Floats, Index


@dataclass(frozen=True)
class Sender:
    """What one letter says about whoever wrote it; ``misfit`` is how far its rows lie off the line."""

    vector: Floats
    mean: float
    misfit: float


def sender_of(letter: Upload, gradient: Gradient) -> Sender:
    """The sender's vector and mean rating from the line that a letter's rows form.

    Example:
        >>> draw = np.random.default_rng(3)
        >>> table, person = draw.normal(size=(6, 2)), np.array([0.5, -1.0])
        >>> rows = (table @ person - 3.5)[:, np.newaxis] * person
        >>> found = sender_of(Upload(np.arange(6, dtype="i4"), rows, table), Gradient())
        >>> found.vector.round(6).tolist(), round(found.mean, 6)
        ([0.5, -1.0], 3.5)
    """
    line = line_of(letter, gradient)
    x, s = line.products, line.lengths
    if len(x) < 2:
        return Sender(line.direction * 0, 0.0, 1.0)
    spread = x - x.mean()
    slope = float(spread @ s) / max(float(spread @ spread), 1e-300)
    crossing = float(s.mean() - slope * x.mean())
    misfit = float(np.linalg.norm(s - slope * x - crossing) / max(float(np.linalg.norm(s)), 1e-300))
    if slope <= 0:
        return Sender(line.direction * 0, 0.0, 1.0)
    c = float(np.sqrt(slope)) * (-1.0 if crossing > 0 else 1.0)
    return Sender(c * line.direction, -crossing / c, misfit)


def linked(letters: Sequence[Upload], log: Mapping[int, Upload]) -> list[int]:
    """For each letter the sender under whose name the server holds its rows (``-1``: nobody).

    Rows are compared byte by byte; a letter none of whose rows is there goes to the only person whose upload
    names all of its items, if there is just one.
    """
    owners = {
        (int(item), row.tobytes()): user
        for user, upload in log.items()
        for item, row in zip(upload.ids, upload.rows, strict=True)
    }
    return [_owner(letter, owners, log) for letter in letters]


def _owner(letter: Upload, owners: Mapping[tuple[int, bytes], int], log: Mapping[int, Upload]) -> int:
    rows = zip(letter.ids, letter.rows, strict=True)
    votes = Counter(owners.get((int(item), row.tobytes()), -1) for item, row in rows)
    votes.pop(-1, None)
    if votes:
        return votes.most_common(1)[0][0]
    holders = [user for user, upload in log.items() if np.isin(letter.ids, upload.ids).all()]
    return holders[0] if len(holders) == 1 and len(letter.ids) else -1


def remaining(upload: Upload, letter: Upload) -> Index:
    """The items of an upload that its letter does not name: those that were really rated.

    Example:
        >>> both, none = np.array([1, 2, 5], "i4"), np.zeros((0, 0))
        >>> remaining(Upload(both, none, none), Upload(both[1:2], none, none)).tolist()
        [1, 5]
    """
    return np.setdiff1d(upload.ids, letter.ids)
