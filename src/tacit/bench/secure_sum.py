"""One client's work in a secure sum, beside the floor of the machine and beside Paillier encryption.

A thousand clients, a ring of neighbours, a model the size of MovieLens 1M's item table. *Mask work* is what
the masks themselves cost: set up one AES-256-CTR stream per neighbour and add it to the vector. Its *floor*
is the bare key streams of the same length, written to a buffer and forgotten. The other phases of the
protocol are measured on a real client whose thousand peers have real keys and signatures. One thread.
"""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.transport.secure_sum import masks, wire
from tacit.transport.secure_sum.client import Client, signed
from tacit.transport.secure_sum.in_process import enrolled
from tacit.transport.secure_sum.plan import Plan, Rates, plan_for
from tacit.transport.secure_sum.shares import joined, split
from tacit.transport.secure_sum.terms import Terms

KEY_BITS = 2048


def run(
    *,
    clients: int = 1000,
    coordinates: int = 74_120,
    ring: int = 32,
    dropout: float = 0.1,
    adversary: float = 0.05,
    values: int = 4,
    repeats: int = 9,
) -> dict[str, Any]:
    """Measure a client's phases, the floor under its masks, and Paillier on the same vector (sampled).

    Example:
        >>> found = run(clients=12, coordinates=500, values=1, repeats=1)
        >>> found["bench"], found["ratios"]["paillier"] > 1
        ('secure-sum', True)
    """
    if repeats < 1 or values < 1:
        raise TacitError(f"{repeats} repeats of {values} values", "measure at least one of each once")
    rates = Rates(dropout=dropout, adversary=adversary)
    plan = plan_for(clients, rates)
    terms = Terms(b"bench", 0, "train", bytes(32), coordinates, ring, rates, invited=clients)
    encrypt, engine = _paillier()
    best = _timed(_mask_jobs(plan, terms) | {"reconstruct": _reconstruction(plan)}, repeats)
    best |= {"paillier-value": _fastest(lambda: [encrypt(1234) for _ in range(values)], 2) / values}
    phases = _device_phases(plan, terms)
    floor = min(best["stream-whole"], best["stream-tiled"])
    device = sum(phases.values())
    per_cipher = (KEY_BITS - 1) // ring
    paillier = best["paillier-value"] * coordinates
    packed = best["paillier-value"] * -(-coordinates // per_cipher)
    return {
        "bench": "secure-sum",
        "seconds": {
            "masks": best["masks"],
            "floor": floor,
            "masks-untiled": best["untiled"],
            **{f"device-{name}": spent for name, spent in phases.items()},
            "device-whole": device,
            "server-reconstruct-one": best["reconstruct"],
            "server-own-masks": best["one-mask"] * clients,
            "paillier": paillier,
            "paillier-packed": packed,
        },
        "ratios": {
            "floor": best["masks"] / floor,
            "untiled": best["untiled"] / best["masks"],
            "paillier": paillier / best["masks"],
            "paillier-packed": packed / best["masks"],
            "paillier-to-whole-device": paillier / device,
            "paillier-packed-to-whole-device": packed / device,
        },
        "plan": str(plan),
        "bytes": _sizes(plan, terms, per_cipher),
        "notes": _notes(plan, terms, engine, values, per_cipher, repeats),
    }


def _mask_jobs(plan: Plan, terms: Terms) -> dict[str, Callable[[], object]]:
    chance = random.Random(0)
    seeds: list[tuple[bytes, masks.Sign]] = [(chance.randbytes(32), 1) for _ in range(plan.degree + 1)]
    dtype = masks.RINGS[terms.ring]
    total: masks.Ring = np.zeros(terms.length, dtype=dtype)
    spare = total.copy()
    zeros, room = bytes(terms.nbytes), bytearray(terms.nbytes + 15)

    def streams(width: int) -> None:
        for seed, _ in seeds:
            fill = masks.stream(seed).update_into
            for low in range(0, terms.nbytes, width):
                fill(zeros[: min(width, terms.nbytes - low)], room)

    def untiled() -> None:
        for seed, _ in seeds:
            masks.stream(seed).update_into(zeros, room)
            np.add(spare, np.frombuffer(room, dtype, terms.length), out=spare)

    return {
        "masks": lambda: masks.add_masks(total, seeds),
        "stream-whole": lambda: streams(terms.nbytes),
        "stream-tiled": lambda: streams(masks.TILE),
        "untiled": untiled,
        "one-mask": lambda: masks.add_masks(spare, seeds[:1]),
    }


def _reconstruction(plan: Plan) -> Callable[[], object]:
    points = list(range(1, plan.degree + 1))
    shares = split(bytes(32), points, plan.threshold, random.Random(0).randbytes)
    return lambda: joined(points[: plan.threshold], shares[: plan.threshold])


def _device_phases(plan: Plan, terms: Terms) -> dict[str, float]:
    """The time each message costs one client; letters of its neighbours are stand-ins of the right size."""
    identities, directory = enrolled(range(plan.clients))
    vector: masks.Ring = np.zeros(terms.length, dtype=masks.RINGS[terms.ring])
    everybody = [Client(terms, user, identities[user], directory, vector) for user in range(plan.clients)]
    adverts = [wire.Advert.read(wire.unframed(wire.Kind.ADVERT, one.start())) for one in everybody]
    roster, client = wire.Roster.of(adverts, terms), everybody[0]
    all_of_them = np.arange(plan.clients)
    vote = roster.vote(all_of_them, all_of_them)
    votes = {user: signed(identities[user], vote) for user in range(plan.quorum)}
    letters = [bytes(wire.SEALED_BYTES)] * plan.degree
    sent = {
        "check-roster-and-share": roster.wire,
        "agree-and-mask": wire.delivery(all_of_them, letters, plan.clients),
        "vote": wire.survivors_message(all_of_them, plan.clients),
        "check-votes-and-open": wire.votes_message(votes),
    }
    spent = {}
    for name, message in sent.items():
        began = time.process_time()
        client.receive(message)
        spent[name] = time.process_time() - began
    return spent


def _paillier() -> tuple[Callable[[int], int], str]:
    """Encryption under a fresh 2048-bit key, in the fastest arithmetic there is here."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    primes = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS).private_numbers()
    modulus = primes.p * primes.q
    square, chance = modulus * modulus, random.Random(0)
    power, engine = _power()

    def encrypted(value: int) -> int:
        return (1 + value * modulus) * int(power(chance.randrange(1, modulus), modulus, square)) % square

    return encrypted, engine


def _power() -> tuple[Callable[[int, int, int], Any], str]:
    try:
        import gmpy2  # pyright: ignore[reportMissingImports]
    except ImportError:
        return pow, "Python's own whole numbers; gmpy2 is not installed and would be several times faster"
    return gmpy2.powmod, "gmpy2"


def _timed(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest of interleaved runs of each job, in processor time, after one to warm up."""
    best = dict.fromkeys(jobs, float("inf"))
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            seconds = _fastest(job, 1)
            if turn:
                best[name] = min(best[name], seconds)
    return best


def _fastest(job: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        job()
        best = min(best, time.process_time() - began)
    return best


def _sizes(plan: Plan, terms: Terms, per_cipher: int) -> dict[str, int]:
    crossing = wire.everybody_answers(terms)
    cipher = 2 * KEY_BITS // 8
    return {
        "up-per-client": crossing.up // plan.clients,
        "down-per-client": crossing.down // plan.clients,
        "vector": terms.nbytes,
        "paillier": cipher * terms.length,
        "paillier-packed": cipher * -(-terms.length // per_cipher),
    }


def _notes(plan: Plan, terms: Terms, engine: str, values: int, per_cipher: int, repeats: int) -> list[str]:
    return [
        str(plan),
        f"one client of {plan.clients}, {terms.length} numbers of {terms.ring} bits; one thread, processor "
        f"time, minimum of {repeats} interleaved repeats (phases: once)",
        "floor: the bare AES-256-CTR key streams, key set-up included, the faster of whole and tiled room",
        f"Paillier, {KEY_BITS} bits: {values} values encrypted, scaled up to the vector; by {engine}",
        f"packed: {per_cipher} numbers of {terms.ring} bits in a ciphertext, sums included",
    ]
