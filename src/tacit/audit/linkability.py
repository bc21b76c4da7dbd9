"""Which shuffled reports belong together (A13): read from the log between proxy and server.

The method's own first messages are sealed, handed to the proxy and passed on for real. The server tries what
a log offers: reports that follow one another, reports of one size, and reports whose bytes repeat. A guess
that two reports are of one person is right by chance with probability (k - 1) / (n k - 1).
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.audit.evidence import Skipped
from tacit.rng import SeededKeys
from tacit.round import Method, broadcast_of, client_side
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import new_world
from tacit.transport.sealed_reports import Proxy
from tacit.transport.shuffle_proxy import ShuffleProxy
from tacit.types import Array, Index

PEOPLE = 50
REPORTS = 20


@dataclass(frozen=True)
class Log:
    """What the server writes down of one batch (order and sizes), and whose each report really was."""

    sizes: Index
    repeats: int
    owners: Index


def shuffle_linkability(plan: Plan, rounds: int, listener: Listener) -> dict[str, Any] | Skipped:
    """A13 on a method's own reports; rounds do not matter, every round's batch is made alike."""
    del rounds
    assert isinstance(plan.method, Method)
    world = new_world(
        plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(plan.seed), None, plan.delta
    )
    exchanges = (*world.method.setup, *world.method.exchanges)
    exchange = next((one for one in exchanges if isinstance(one.transport, ShuffleProxy)), None)
    if exchange is None:
        return Skipped("no proxy shuffles reports in this method")
    listener.stage("linking", 1)
    users = np.sort(world.keys.generator("audit/linked").permutation(world.federation.people)[:PEOPLE])
    users = users.astype(np.int32)
    plainly = replace(exchange, transport=_carried(exchange.transport))
    private = {name: array[users] for name, array in world.private.items()}
    received = exchange.local.prepared(broadcast_of(exchange, world.server))
    cohort = world.federation.cohort(users)
    states = world.server.protections[exchange.name]
    out = client_side(plainly, states, received, private, cohort, None, world.keys)
    sealed: Any = out.messages.arrays["sealed"]
    log = passed_on(users, sealed[:, :REPORTS])
    listener.step(1, {})
    return {"metrics": scored(log)}


def _carried(transport: Any) -> ShuffleProxy:
    return replace(transport, n_min=min(transport.n_min, PEOPLE), sealing="full")


def passed_on(users: Index, sealed: Array) -> Log:
    """Everybody's sealed reports through the proxy, as the server gets them."""
    proxy = Proxy(sealed.shape[2], min(len(users), PEOPLE))
    owner: dict[bytes, int] = {}
    for user, reports in zip(users.tolist(), sealed, strict=True):
        wires = [report.tobytes() for report in reports]
        owner |= {_mark(wire): user for wire in wires}
        proxy.receive(str(user), wires)
    batch = proxy.batch()
    marks = [_mark(wire) for wire in batch]
    return Log(
        np.array([len(wire) for wire in batch], dtype=np.int32),
        len(marks) - len(set(marks)),
        np.array([owner[mark] for mark in marks], dtype=np.int32),
    )


def _mark(wire: bytes) -> bytes:
    return hashlib.blake2b(wire, digest_size=16).digest()


def scored(log: Log) -> dict[str, float]:
    """How often guesses from order and from size are right, beside chance.

    Example:
        >>> told = Log(np.full(4, 52, "i4"), 0, np.array([1, 1, 2, 2], "i4"))
        >>> found = scored(told)
        >>> round(found["linked_by_order"], 3), round(found["prior_linked_by_order"], 3)
        (0.667, 0.333)
    """
    _, each = np.unique(log.owners, return_counts=True)
    total = len(log.owners)
    chance = float((each * (each - 1)).sum() / (total * (total - 1)))
    follows = log.owners[1:] == log.owners[:-1]
    return {
        "linked_by_order": float(follows.mean()),
        "prior_linked_by_order": chance,
        "linked_by_size": _by_size(log),
        "prior_linked_by_size": chance,
        "distinct_sizes": float(len(np.unique(log.sizes))),
        "repeated_bytes": float(log.repeats),
        "standard_error": float(np.sqrt(chance * (1 - chance) / max(1, total - 1))),
        "reports": float(total),
        "people": float(len(each)),
    }


def _by_size(log: Log) -> float:
    """Of all pairs of one size, how many are of one person."""
    pairs = right = 0
    for size in np.unique(log.sizes):
        owners = log.owners[log.sizes == size]
        _, each = np.unique(owners, return_counts=True)
        pairs += len(owners) * (len(owners) - 1)
        right += int((each * (each - 1)).sum())
    return right / pairs if pairs else 0.0
