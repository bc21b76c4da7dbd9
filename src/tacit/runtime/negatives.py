"""What a training drew as negatives or fillers, replayed for the null-model audit.

Draws are keyed by round and user, so they can be drawn again exactly, without having been stored. Of what
the server sent, only the last is known: where it decides what may be drawn (a sub-model chosen anew in each
round), every round is replayed with the last choice.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data.interactions import Interactions
from tacit.evaluate.held_out import SplitLike
from tacit.evaluate.null_model import NullAudit, not_applicable, null_audit
from tacit.round import Exchange, broadcast_of
from tacit.runtime.simulate import World
from tacit.types import Index, Segment

MOST_USERS = 2000
MOST_ROUNDS = 20


def audited(world: World, split: SplitLike) -> NullAudit:
    """The audit over a sample of people and rounds; every exchange of the method is replayed.

    Where others are drawn among some items only, it is about these alone: among them, draws are uniform.
    """
    if not len(split.test):
        return not_applicable("nothing is held out")
    everybody = world.federation.people
    chosen = np.sort(world.keys.generator("audit/people").permutation(everybody)[:MOST_USERS])
    people, catalogue = len(world.federation), world.federation.catalogue
    drawn: Any = sparse.csr_array((people, catalogue), dtype=np.int32)
    among = np.ones(catalogue, dtype=np.bool_)
    for exchange in world.method.exchanges:
        part = np.intersect1d(chosen, world.casting.parts[exchange.part]).astype(np.int32)
        found = _counts(world, exchange, part)
        if found.nnz:
            drawn = drawn + found
            among &= exchange.local.drawable(broadcast_of(exchange, world.server), catalogue)
    if not drawn.nnz:
        return not_applicable(f"{world.method.name} draws no negatives and no fillers in this configuration")
    return null_audit(drawn[:, np.flatnonzero(among)], _only(split, chosen, people, among), keys=world.keys)


@dataclass(frozen=True)
class _Part:
    """Some people's rows of a split."""

    train: Interactions
    test: Interactions
    support: Interactions | None


def _only(split: SplitLike, people: Index, users: int, among: NDArray[np.bool_]) -> _Part:
    """The rows of these people and items, items numbered anew: no copy of everybody's is made."""
    wanted = np.zeros(users, dtype=np.bool_)
    wanted[people] = True
    number = (np.cumsum(among) - 1).astype(np.int32)

    def part(log: Interactions) -> Interactions:
        kept = log.take(wanted[log.users] & among[log.items])
        return replace(kept, items=number[kept.items])

    support = None if split.support is None else part(split.support)
    return _Part(part(split.train), part(split.test), support)


def _counts(world: World, exchange: Exchange, users: Index) -> sparse.csr_array:
    cohort = world.federation.cohort(users)
    shape = len(world.federation), world.federation.catalogue
    total = sparse.csr_array(shape, dtype=np.int32)
    for round in range(min(MOST_ROUNDS, world.method.rounds) if len(users) else 0):
        seen = exchange.protections.on_cohort(replace(cohort, fillers=None), world.keys, round)
        received = broadcast_of(exchange, replace(world.server, round=round))
        segment = exchange.local.negatives(received, seen, world.keys)
        if segment is not None:
            total = total + _matrix(segment, users, shape)
    return total


def _matrix(segment: Segment, users: Index, shape: tuple[int, int]) -> sparse.csr_array:
    ends = np.cumsum(segment.lengths)
    positions = np.repeat(segment.starts - (ends - segment.lengths), segment.lengths) + np.arange(ends[-1])
    rows, columns = np.repeat(users, segment.lengths), segment.ids[positions]
    return sparse.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)
