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


@dataclass(frozen=True)
class Warming:
    """A share that shrinks from 1 to ``share`` over the first ``rounds`` rounds, by equal factors.

    Example:
        >>> Warming(0.01, 2).at(0), round(Warming(0.01, 2).at(1), 6), Warming(0.01, 2).at(5)
        (1.0, 0.1, 0.01)
    """

    share: float
    rounds: int = 0

    def at(self, round: int) -> float:
        """The share of a round (counted from 0)."""
        return self.share if round >= self.rounds else self.share ** (max(round, 0) / self.rounds)
