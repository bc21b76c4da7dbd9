"""Step sizes that server and clients both follow: public functions of the round's number."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decaying:
    """A step size that shrinks by a factor in each round; public, so clients follow it too.

    Example:
        >>> Decaying(0.8, 0.9).at(2)
        0.6480000000000001
    """

    rate: float
    decay: float = 1.0

    def at(self, round: int) -> float:
        """The step size of a round (counted from 0)."""
        return self.rate * self.decay**round
