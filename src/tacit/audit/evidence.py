"""What an attack is given, and what its score is told against: kept apart in one object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.audit.rated_set import Mixing, in_common
from tacit.audit.reconstruction import Gradient
from tacit.audit.transcript import Dated, Transcript
from tacit.audit.truth import Prior, Truth
from tacit.types import Floats, Index

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Skipped:
    """An attack that does not apply, and why."""

    reason: str


@dataclass(frozen=True)
class Evidence:
    """What was seen, what is public about the method, and the truth that scores are told against.

    ``gradient`` is how rows of uploads are made; ``masked`` says that ratings were masked before. ``epsilon``
    is that of randomised answers (infinite: told as they are). ``unseen`` says why the server holds no single
    uploads, where it does not.
    """

    transcript: Transcript
    truth: Truth
    mixing: Mixing
    gradient: Gradient | None = None
    masked: bool = False
    epsilon: float | None = None
    unseen: str = ""

    @property
    def prior(self) -> Prior:
        """What everybody knows."""
        return Prior(self.truth)

    def without_rows(self) -> Skipped | None:
        """Why values of uploads cannot be attacked, if they cannot."""
        if self.transcript.uploads:
            return None
        form = "" if self.gradient else "rows of uploads are not gradients of one squared error"
        return Skipped(self.unseen or form or "nobody sent anything in the rounds replayed")

    def last(self, uploads: int) -> Iterator[tuple[int, list[Dated]]]:
        """Everybody whose last so many uploads are kept."""
        for user, sent in self.transcript.uploads.items():
            if len(sent) >= uploads:
                yield user, sent[-uploads:]

    def common(self, user: int) -> Index:
        """The items that all of a person's uploads name."""
        return in_common(self.transcript.supports[user])

    def vector_error(self, found: Floats, user: int, round: int) -> float:
        """How far a vector is from the person's own before or after the round, relative to its length."""
        errors = []
        for at in (round, round + 1):
            true = self.truth.vectors[at][user].astype(np.float64)
            errors.append(float(np.linalg.norm(found - true)) / max(float(np.linalg.norm(true)), 1e-300))
        return min(errors)


def means(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, float]:
    """The mean of each column over people.

    Example:
        >>> means(("a", "b"), [(1, 0), (0, 0)])
        {'a': 0.5, 'b': 0.0}
    """
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), len(names))
    return {name: float(column.mean()) for name, column in zip(names, table.T, strict=True)}
