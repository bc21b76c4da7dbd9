"""What a training drew as negatives or fillers, replayed for the null-model audit.

Draws are keyed by round and user, so they can be drawn again exactly, without having been stored.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tacit.data.interactions import Interactions
from tacit.evaluate.held_out import SplitLike
from tacit.evaluate.null_model import NullAudit, not_applicable, null_audit
from tacit.round import Exchange
from tacit.runtime.simulate import World
from tacit.types import Index, Segment

MOST_USERS = 2000
MOST_ROUNDS = 20


def audited(world: World, split: SplitLike) -> NullAudit:
    """The audit over a sample of people and rounds; every exchange of the method is replayed."""
    if not len(split.test):
        return not_applicable("nothing is held out")
    everybody = world.federation.people
    chosen = np.sort(world.keys.generator("audit/people").permutation(everybody)[:MOST_USERS])
    drawn = sparse.csr_array((len(world.federation), world.federation.catalogue), dtype=np.int32)
    for exchange in world.method.exchanges:
        part = np.intersect1d(chosen, world.casting.parts[exchange.part]).astype(np.int32)
        if len(part):
            drawn = drawn + _counts(world, exchange, part)
    if not drawn.nnz:
        return not_applicable(f"{world.method.name} draws no negatives and no fillers in this configuration")
    return null_audit(drawn, _only(split, chosen, len(world.federation)), keys=world.keys)


@dataclass(frozen=True)
class _Part:
    """Some people's rows of a split."""

    train: Interactions
    test: Interactions
    support: Interactions | None


def _only(split: SplitLike, people: Index, users: int) -> _Part:
    """The rows of the people whose draws were replayed: a sample is audited without a copy of everybody's."""
    wanted = np.zeros(users, dtype=np.bool_)
    wanted[people] = True
    train, test = (part.take(wanted[part.users]) for part in (split.train, split.test))
    return _Part(
        train, test, None if split.support is None else split.support.take(wanted[split.support.users])
    )


def _counts(world: World, exchange: Exchange, users: Index) -> sparse.csr_array:
    cohort = world.federation.cohort(users)
    shape = len(world.federation), world.federation.catalogue
    total = sparse.csr_array(shape, dtype=np.int32)
    for round in range(min(MOST_ROUNDS, world.method.rounds)):
        seen = exchange.protections.on_cohort(replace(cohort, fillers=None), world.keys, round)
        segment = exchange.local.negatives(seen, world.keys, round)
        if segment is not None:
            total = total + _matrix(segment, users, shape)
    return total


def _matrix(segment: Segment, users: Index, shape: tuple[int, int]) -> sparse.csr_array:
    ends = np.cumsum(segment.lengths)
    positions = np.repeat(segment.starts - (ends - segment.lengths), segment.lengths) + np.arange(ends[-1])
    rows, columns = np.repeat(users, segment.lengths), segment.ids[positions]
    return sparse.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)
