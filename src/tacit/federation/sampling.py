"""Who is asked in a round."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from tacit.account import events
from tacit.account.claim import Adjacency, Claim, Observer
from tacit.errors import TacitError
from tacit.rng import Keys, uniforms
from tacit.settings import head_count
from tacit.types import Index, RoundFacts


class Sampling(ABC):
    """Draws the people of one part who are asked in a round.

    Sampling never helps against the server: it knows whom it asked.
    """

    @abstractmethod
    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """The people asked, in rising order."""

    def expected(self, population: int) -> int:
        """How many of so many are asked on average: public, and what sums are divided by."""
        return population

    def least(self, population: int) -> int:
        """How many of so many are asked at least, whatever the draw; 0 where nobody can say."""
        del population
        return 0

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """What a secret draw is worth against whoever gets the model; nothing by default."""
        del facts
        return _counted(claim)


_PUBLIC = ("how many people there are is public",)


def _counted(claim: Claim) -> Claim:
    """Means are over a public number of people, which one person more or less would change."""
    shown = claim.event(Observer.RELEASE)
    if claim.adjacency is Adjacency.REPLACE_ONE or isinstance(shown, events.NonPrivate | events.Nothing):
        return claim
    return claim.with_event(Observer.RELEASE, shown, _PUBLIC)


def _sampled(claim: Claim, sampling: events.Sampling, adjacency: Adjacency) -> Claim:
    """Amplify what the released model shows where that is proved: for normal noise on a sum.

    A stage that asked for replace-one keeps it: there who takes part is seen, and brings noise of their own,
    so whoever stays away takes noise out of the sum and no add-remove analysis covers that.
    """
    shown = claim.event(Observer.RELEASE)
    if not isinstance(shown, events.Gaussian):
        return _counted(claim)
    if claim.adjacency is Adjacency.REPLACE_ONE and adjacency is Adjacency.ADD_REMOVE:
        return claim
    return replace(claim, adjacency=adjacency).with_event(
        Observer.RELEASE, events.Sampled(shown, sampling), _PUBLIC
    )


@dataclass(frozen=True)
class Everyone(Sampling):
    """All of them, every round."""

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """Everybody."""
        del round, keys
        return people

    def least(self, population: int) -> int:
        """All of them."""
        return population


@dataclass(frozen=True)
class FixedSize(Sampling):
    """A fresh draw of a fixed number (or share) of people in every round, without replacement.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> len(FixedSize(0.5).draw(np.arange(10, dtype="i4"), 0, SeededKeys(1)))
        5
    """

    amount: int | float

    def expected(self, population: int) -> int:
        """That many."""
        return head_count(self.amount, population, "clients")

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """That many people."""
        count = self.expected(len(people))
        if count == 0:
            raise TacitError(f"clients={self.amount} asks nobody", "give at least 1, or a share such as 0.2")
        if count == len(people):
            return people
        chosen = keys.generator("sampling", round).choice(len(people), count, replace=False)
        return people[np.sort(chosen)]

    def least(self, population: int) -> int:
        """That many."""
        return head_count(self.amount, population, "clients")

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """Amplified under replace-one, the only adjacency that a cohort of fixed size has an analysis for."""
        sampling = events.FixedSize(self.expected(facts.population), facts.population)
        return _sampled(claim, sampling, Adjacency.REPLACE_ONE)


@dataclass(frozen=True)
class Poisson(Sampling):
    """Everybody flips a coin of their own in every round; ``amount`` is the mean number (or share) asked.

    The size of the cohort varies, and rounds without anybody happen. Divide sums by the mean number:
    the number who really came is about people's data too.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> asked = [len(Poisson(5).draw(np.arange(10, dtype="i4"), r, SeededKeys(1))) for r in range(400)]
        >>> bool(4.7 < np.mean(asked) < 5.3)
        True
    """

    amount: int | float

    def expected(self, population: int) -> int:
        """The mean."""
        return head_count(self.amount, population, "clients")

    def rate(self, population: int) -> float:
        """The probability with which each person is asked."""
        rate = self.expected(population) / population
        if rate == 0:
            raise TacitError(f"clients={self.amount} asks nobody", "give at least 1, or a share such as 0.2")
        return rate

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """Whoever's coin fell that way."""
        coins = uniforms(keys.users(people, "sampling", round), 1)[:, 0]
        return people[coins < self.rate(len(people))]

    def least(self, population: int) -> int:
        """Fewer come with probability below ``2**-40`` (Chernoff's bound).

        Example:
            >>> Poisson(0.5).least(1000)
            333
        """
        mean = self.rate(population) * population
        return max(0, math.floor(mean - math.sqrt(2 * 40 * math.log(2) * mean)))

    def event(self, claim: Claim, facts: RoundFacts) -> Claim:
        """Amplified under add-remove, where it is the server that adds the noise."""
        return _sampled(claim, events.Poisson(self.rate(facts.population)), Adjacency.ADD_REMOVE)
