"""Ratings, rated items and a person's vector from gradient rows: closed forms, nothing is trained.

A row of an upload is ``gain (u.v_i - r_i) u + reg v_i`` with public ``v_i``, ``gain`` and ``reg``. Without
the last part all rows point along ``u = c w``; with ``x_i = w.v_i`` and ``s_i`` the length along ``w``,

    s_i = c^2 x_i - c r_i        so        r_i = c x_i - s_i / c

and one number ``c`` is all that is missing. Ratings from a known scale give it away in one round: guess one
item's rating, solve for ``c``, and see whether the others fall on the scale. Ratings that may be any number
need two rounds: ``r_i`` is the same in both, which is linear in ``(c, 1/c, c', 1/c')``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Scale
from tacit.types import Floats, Index

Mask = NDArray[np.bool_]
DRAWS = 100


@dataclass(frozen=True)
class Gradient:
    """How a row is made, all of it public; ``mixed`` says that items with made-up ratings are among them."""

    reg: float = 0.0
    gain: float = 1.0
    mixed: bool = False


@dataclass(frozen=True)
class Upload:
    """A message as its reader decodes it: rows of the item table by rising id, and the table sent before."""

    ids: Index
    rows: Floats
    table: Floats


@dataclass(frozen=True)
class Line:
    """An upload's rows as lengths along one direction; ``rest`` is the share that points elsewhere."""

    direction: Floats
    lengths: Floats
    products: Floats
    rest: float


@dataclass(frozen=True)
class Recovered:
    """What an attack says: the person's vector, and for each row a rating and whether it was rated."""

    vector: Floats
    ratings: Floats
    rated: Mask


def line_of(upload: Upload, gradient: Gradient) -> Line:
    """The direction that all rows share, and where each lies along it.

    Example:
        >>> table, person = np.eye(2), np.array([3.0, 4.0])
        >>> rows = (table @ person - 5.0)[:, np.newaxis] * person
        >>> line = line_of(Upload(np.arange(2, dtype="i4"), rows, table), Gradient())
        >>> np.abs(line.direction).round(6).tolist(), line.rest < 1e-12
        ([0.6, 0.8], True)
    """
    table = upload.table[upload.ids].astype(np.float64)
    rows = (upload.rows.astype(np.float64) - gradient.reg * table) / gradient.gain
    if not rows.any() or not np.isfinite(rows).all():
        nothing = np.zeros(len(rows))
        return Line(np.zeros(table.shape[1]), nothing, nothing, 1.0)
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    along = directions[0]
    rest = float(np.square(sizes[1:]).sum() / np.square(sizes).sum())
    return Line(along, rows @ along, table @ along, rest)


def one_round(
    upload: Upload, gradient: Gradient, scale: Scale, *, probes: int = 40, tolerance: float = 1e-4
) -> Recovered:
    """Everything from one upload, where ratings come from a known scale.

    The best ``c`` puts most items on the scale; where made-up ratings are mixed in, which agree on one value,
    agreement on one level only does not count. Among equals the one that leaves least wins. How far rows lie
    off their line says how coarsely they were sent; ``tolerance`` widens with it.

    Example:
        >>> draw = np.random.default_rng(1)
        >>> table, person = draw.normal(size=(9, 3)), draw.normal(size=3)
        >>> ratings = np.array([5, 3, 1, 4, 2, 5, 3, 2, 4])
        >>> rows = (table @ person - ratings)[:, np.newaxis] * person
        >>> found = one_round(Upload(np.arange(9, dtype="i4"), rows, table), Gradient(), Scale(1, 5, 1))
        >>> found.ratings.round(6).astype(int).tolist(), bool(np.allclose(found.vector, person))
        ([5, 3, 1, 4, 2, 5, 3, 2, 4], True)
    """
    line = line_of(upload, gradient)
    lengths, products = line.lengths, line.products
    guesses = _guesses(line, scale, probes)
    if not len(guesses):
        return Recovered(line.direction * 0, lengths * 0, np.zeros(len(lengths), dtype=bool))
    tolerance = _widened(tolerance, line, scale)
    best = _best(guesses, line, scale, mixed=gradient.mixed, tolerance=tolerance)
    for _ in range(3):
        rated, levels = _on_scale(best * products - lengths / best, scale, tolerance)
        best = _refined(best, products[rated], lengths[rated], levels[rated])
    ratings = best * products - lengths / best
    rated, _ = _on_scale(ratings, scale, tolerance)
    return Recovered(best * line.direction, ratings, rated)


def _widened(tolerance: float, line: Line, scale: Scale) -> float:
    """Six deviations of a rating's error, if the error along the line is like that across it."""
    across = max(1, min(len(line.lengths), len(line.direction)) - 1)
    return float(np.clip(6.0 * scale.high * np.sqrt(line.rest / across), tolerance, 0.45 * scale.step))


def _guesses(line: Line, scale: Scale, probes: int) -> Floats:
    """Every ``c`` that gives some probed item some rating: the roots of ``x c^2 - a c - s``, both signs."""
    seen = np.flatnonzero(line.lengths)
    if not len(seen):
        return np.zeros(0)
    at = seen[np.unique(np.linspace(0, len(seen) - 1, min(probes, len(seen))).astype(int))]
    levels = scale.low + scale.step * np.arange(scale.levels)
    levels = levels[levels != 0]
    x, s, a = (part.reshape(-1) for part in np.broadcast_arrays(
        line.products[at, np.newaxis], line.lengths[at, np.newaxis], levels
    ))  # fmt: skip
    inside = a * a + 4.0 * x * s
    x, s, a, inside = (part[inside >= 0] for part in (x, s, a, inside))
    far = (a + np.copysign(np.sqrt(inside), a)) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.concatenate([-s / far, far / x])
    return roots[np.isfinite(roots) & (roots != 0)]


def _best(guesses: Floats, line: Line, scale: Scale, *, mixed: bool, tolerance: float) -> float:
    """The guess that explains most; in blocks, so that a long history costs no memory."""
    best, found = (-1, -np.inf), float(guesses[0])
    for block in np.array_split(guesses, max(1, len(guesses) * len(line.lengths) >> 20)):
        ratings = block[:, np.newaxis] * line.products - line.lengths / block[:, np.newaxis]
        on, levels = _on_scale(ratings, scale, tolerance)
        explained = on.sum(axis=1)
        if mixed:
            places = np.rint((levels - scale.low) / scale.step).astype(int)
            explained = explained - np.max(
                [(on & (places == level)).sum(axis=1) for level in range(scale.levels)], axis=0
            )
        left = np.where(on, np.abs(ratings - levels), 0).sum(axis=1) / np.maximum(on.sum(axis=1), 1)
        top = np.lexsort((left, -explained))[0]
        if (explained[top], -left[top]) > best:
            best, found = (int(explained[top]), -float(left[top])), float(block[top])
    return found


def _on_scale(ratings: Floats, scale: Scale, tolerance: float) -> tuple[Mask, Floats]:
    """Which numbers are ratings, and the nearest level of each."""
    steps = np.clip(np.rint((ratings - scale.low) / scale.step), 0, scale.levels - 1)
    levels = scale.low + scale.step * steps
    return np.abs(ratings - levels) < tolerance, levels


def _refined(c: float, x: Floats, s: Floats, a: Floats) -> float:
    """One Gauss-Newton step on ``c^2 x - c a - s`` over the items that count as rated."""
    slope = 2.0 * c * x - a
    steepness = float(slope @ slope)
    return c - float(slope @ (c * c * x - c * a - s)) / steepness if steepness > 0 else c


def two_rounds(
    first: Upload,
    second: Upload,
    gradient: Gradient,
    hint: Floats,
    *,
    among: Index | None = None,
) -> tuple[Index, Recovered]:
    """Ratings that may be any number, from two uploads: the items in both, and what they were rated.

    ``hint`` holds a public guess per item (its mean rating): it only decides the sign. Items whose made-up
    ratings changed between the rounds do not fit and are left out. ``among`` narrows the items down to those
    that may have been rated (:func:`tacit.audit.rated_set.in_common`).

    Example:
        >>> draw = np.random.default_rng(2)
        >>> ids, ratings = np.arange(9, dtype="i4"), draw.uniform(0.5, 5.0, 9)
        >>> def told(table, person):
        ...     return Upload(ids, (table @ person - ratings)[:, np.newaxis] * person, table)
        >>> one, two = (told(draw.normal(size=(9, 3)), draw.normal(size=3)) for _ in range(2))
        >>> both, found = two_rounds(one, two, Gradient(), hint=np.full(9, 3.0))
        >>> bool(np.allclose(found.ratings, ratings))
        True
    """
    both, here, there = np.intersect1d(first.ids, second.ids, return_indices=True)
    if among is not None:
        both, here, there = (part[np.isin(both, among)] for part in (both, here, there))
    one, two = line_of(first, gradient), line_of(second, gradient)
    columns = np.stack(
        [one.products[here], -one.lengths[here], -two.products[there], two.lengths[there]], axis=1
    )
    nothing = Recovered(one.direction * 0, np.zeros(len(both)), np.zeros(len(both), dtype=bool))
    sizes = np.linalg.norm(columns, axis=0)
    if len(both) < 4 or (sizes == 0).any():
        return both.astype(np.int32), nothing
    scaled = columns / sizes
    kept = _fitting(scaled) if gradient.mixed else np.ones(len(both), dtype=bool)
    unknowns = np.linalg.svd(scaled[kept])[2][-1] / sizes
    product = unknowns[0] * unknowns[1]
    if product <= 0:
        return both.astype(np.int32), nothing
    c = unknowns[0] / np.sqrt(product)
    ratings = c * one.products[here] - one.lengths[here] / c
    if float(ratings @ hint[both]) < 0:
        c, ratings = -c, -ratings
    return both.astype(np.int32), Recovered(c * one.direction, ratings, kept)


def _fitting(columns: Floats) -> Mask:
    """The rows that share a null vector: least median of squares over small draws, then all that fit it."""
    draw, best, null = np.random.default_rng(0), np.inf, np.zeros(4)
    for _ in range(DRAWS):
        chosen = draw.choice(len(columns), min(5, len(columns)), replace=False)
        guess = np.linalg.svd(columns[chosen])[2][-1]
        middle = float(np.median(np.abs(columns @ guess)))
        if middle < best:
            best, null = middle, guess
    kept = np.ones(len(columns), dtype=bool)
    for _ in range(3):
        misses = np.abs(columns @ null)
        kept = misses <= 10.0 * float(np.median(misses))
        null = np.linalg.svd(columns[kept])[2][-1]
    return kept
