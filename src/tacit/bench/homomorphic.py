"""FedMF under homomorphic encryption (CKKS, key shared by the clients), beside plain FedMF and masks.

Every client's message of every round is really encrypted, added and decrypted: the model that the clients see
at the end is compared with that of plain FedMF. Masks are those of one client in a secure sum of a thousand
over a vector of the same length; the secure sum's other phases are in ``tacit bench secure-sum``.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.bench.secure_sum import _fastest
from tacit.data import load
from tacit.errors import TacitError
from tacit.federation.federation import put_back, taken
from tacit.kernels.rows import materialise
from tacit.local.work import Broadcast
from tacit.methods.fedmmf import fedmmf
from tacit.rng import SeededKeys
from tacit.round import Exchange, client_side
from tacit.runtime.run import federation_of
from tacit.runtime.simulate import Execution, World, new_world, one_round
from tacit.split import split
from tacit.transport.homomorphic import BlindTable, KeyHolder
from tacit.transport.secure_sum import masks
from tacit.transport.secure_sum.plan import Rates, plan_for
from tacit.types import Array, Floats, Index, Rows

CROWD = 1000
RATE = 0.001


def run(*, people: int = 16, items: int = 1682, dim: int = 20, rounds: int = 3) -> dict[str, Any]:
    """Train FedMF twice, in plain text and encrypted, and say what the second costs.

    Example:
        >>> run(people=0)
        Traceback (most recent call last):
        tacit.errors.TacitError: 0 people, 3 rounds; give at least 4 people and one round
    """
    if people < 4 or rounds < 1:
        raise TacitError(f"{people} people, {rounds} rounds", "give at least 4 people and one round")
    keys = KeyHolder.made()
    plain, blind = (_world(people, items, dim, rounds) for _ in range(2))
    for _ in range(rounds):
        one_round(plain)
    found, spent, crossed = _encrypted(blind, keys, rounds)
    masked = _masks(items * dim)
    each = {name: seconds / (people * rounds) for name, seconds in spent.items()}
    device = each["encrypt"] + each["decrypt"]
    gap = float(np.abs(found - plain.server.shared["items"]).max())
    vector = 4 * items * dim
    return {
        "bench": "homomorphic",
        "seconds": {
            **{f"client-{name}": each[name] for name in ("decrypt", "train", "encrypt")},
            "server-add": each["add"],
            "masks": masked,
        },
        "ratios": {
            "masks": device / masked,
            "bytes-up": crossed / vector,
            "training": device / each["train"],
        },
        "bytes": {"up-per-client": crossed, "down-per-client": crossed, "vector": vector},
        "largest-difference": gap,
        "notes": [
            f"{people} people, {items} items of {dim} numbers, {rounds} rounds; seconds per client and round",
            f"item tables differ from plain FedMF's by at most {gap:.1e}: CKKS is approximate",
            f"masks: one client of {CROWD} in a secure sum, 32-bit numbers; its keys and shares cost more",
            "one client that works for the server opens everybody's messages here, and none in a secure sum",
        ],
    }


def _world(people: int, items: int, dim: int, rounds: int) -> World:
    dataset = load(f"demo:users={people},items={items},mean={max(8, items // 17)}")
    parts = split(dataset, "ratings-5fold:1", seed=1)
    method = fedmmf(mask="none", plain=True, dim=dim, rounds=rounds, rate=RATE)
    return new_world(method, federation_of(dataset, parts.train), SeededKeys(1), Execution())


def _encrypted(world: World, keys: KeyHolder, rounds: int) -> tuple[Floats, Mapping[str, float], int]:
    """The item table after some rounds as clients decrypt it; seconds of each part; bytes of an upload."""
    exchange, federation = world.method.exchanges[0], world.federation
    start: Floats = world.server.shared["items"]
    table = BlindTable(keys.public, keys.encrypted(start))
    spent: dict[str, float] = dict.fromkeys(("decrypt", "train", "encrypt", "add"), 0.0)
    crossed, clock = 0, time.process_time
    for round in range(rounds):
        sent = table.wire
        for user in federation.people:
            times = [clock()]
            seen = keys.decrypted(sent, start.size).reshape(start.shape).astype(np.float32)
            times.append(clock())
            step = _step(world, exchange, round, seen, np.array([user], dtype=np.int32))
            times.append(clock())
            message = keys.encrypted(step)
            times.append(clock())
            table.add(message)
            times.append(clock())
            for name, seconds in zip(spent, np.diff(times).tolist(), strict=True):
                spent[name] += seconds
            crossed = len(message)
    return keys.decrypted(table.wire, start.size).reshape(start.shape), spent, crossed


def _step(world: World, exchange: Exchange, round: int, table: Floats, user: Index) -> Floats:
    """What one client adds to the table: its gradient, times the step size, negative."""
    received = exchange.local.prepared(Broadcast(round, {"items": table}))
    cohort, states = world.federation.cohort(user), world.server.protections["train"]
    done = client_side(exchange, states, received, taken(world.private, user), cohort, None, world.keys)
    put_back(world.private, user, done.private)
    rows = done.messages.arrays["items"]
    assert isinstance(rows, Rows)
    gradient = np.zeros(table.shape, dtype=np.float64)
    values: Array = materialise(rows)
    gradient[rows.ids] = values[:, : table.shape[1]]
    return -RATE * gradient


def _masks(length: int) -> float:
    plan = plan_for(CROWD, Rates())
    seeds: list[tuple[bytes, masks.Sign]] = [(bytes([n]) * 32, 1) for n in range(plan.degree + 1)]
    total: masks.Ring = np.zeros(length, dtype=masks.RINGS[32])
    return _fastest(lambda: masks.add_masks(total, seeds), 5)
