"""A chain of protections alone, without a recommender: canaries of their own coordinate, in or out by a coin.

Each canary sends the whole length the chain lets through, along an axis nobody else uses: no real person can
be seen better. What comes out of the protected sum is compared with what the chain's own events claim.
"""

from dataclasses import dataclass

import numpy as np

from tacit.account.accountant import epsilon_of_claims
from tacit.account.claim import Claim, Observer
from tacit.audit.one_run import Flags, fitted, lower_bound
from tacit.federation.sampling import Sampling
from tacit.protect.protection import Chain
from tacit.rng import Keys
from tacit.types import Cohort, Floats, RoundFacts

LOUD = 1e3


@dataclass(frozen=True)
class Measured:
    """What was claimed, what is certified, and what the fit says.

    Example:
        >>> Measured(2.0, 2.4, 7.4, np.zeros(1), np.ones(1, "?")).refuted
        True
    """

    claimed: float
    certified: float
    fitted: float
    scores: Floats
    there: Flags

    @property
    def refuted(self) -> bool:
        """Whether the certified bound is above the claim."""
        return self.certified > self.claimed


def measured(
    chain: Chain, sampling: Sampling, *, people: int, canaries: int, rounds: int, delta: float, keys: Keys
) -> Measured:
    """Run the chain for so many rounds and look for every canary in the sums it lets out.

    Args:
        chain: Protections with a bound and with noise on the sum.
        sampling: Draws canaries among the people.
        people: How many there are; those that are no canaries send nothing.
        canaries: How many canaries; each has a coordinate of its own.
        rounds: How many sums are released.
        delta: Of the claim.
        keys: Of the run; the coins have a purpose of their own.

    Returns:
        The claim over all rounds beside what the sums prove.

    Example:
        >>> from tacit.federation.sampling import Poisson
        >>> from tacit.protect.clip import Clip
        >>> from tacit.protect.noise import GaussianNoise
        >>> from tacit.protect.protection import chain
        >>> from tacit.rng import SeededKeys
        >>> guard, rule = chain(Clip(1.0), GaussianNoise(4.0)), Poisson(20)
        >>> found = measured(guard, rule, people=200, canaries=100, rounds=5, delta=1e-5, keys=SeededKeys(1))
        >>> found.refuted
        False
    """
    there = keys.generator("audit/there").random(canaries) < 0.5
    everybody = np.arange(people, dtype=np.int32)
    scores = np.zeros(canaries)
    states = chain.init()
    claims: list[Claim] = []
    for round in range(rounds):
        drawn = sampling.draw(everybody, round, keys)
        users = drawn[(drawn < canaries) & np.append(there, np.zeros(people - canaries, np.bool_))[drawn]]
        facts = RoundFacts(round, "train", people, len(drawn), len(users), {"canaries": (canaries,)})
        sent = np.zeros((len(users), canaries))
        sent[np.arange(len(users)), users] = LOUD
        total = np.zeros(canaries)
        if len(users):
            nobody = np.zeros(0, dtype=np.int32)
            offsets = np.zeros(len(users) + 1, dtype=np.int64)
            cohort = Cohort(users, offsets, nobody, nobody.astype(np.float32), canaries)
            update = chain.on_client({"canaries": sent}, states, cohort, keys, "train", round)
            total = np.asarray(update["canaries"]).sum(axis=0)
        claim = chain.event(Claim.unbounded("no protection"), states, facts)
        claims.append(sampling.event(claim, facts))
        protected, states = chain.on_server({"canaries": total}, states, facts, keys)
        scores += np.asarray(protected["canaries"])
    claimed = epsilon_of_claims(claims, Observer.RELEASE, delta).value
    bound = lower_bound(scores, there, delta)
    return Measured(claimed, bound, fitted(scores, there, delta), scores, there)
