"""A whole secure sum in one process: the same halves a deployment runs, with bytes handed over directly."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tacit.errors import TacitError
from tacit.transport.secure_sum.client import Client, public_identity
from tacit.transport.secure_sum.masks import Ring
from tacit.transport.secure_sum.server import Phase, Server
from tacit.transport.secure_sum.shares import Entropy
from tacit.transport.secure_sum.terms import Terms


@dataclass(frozen=True)
class Summed:
    """A finished sum: its value in the ring, whose vectors it holds, and what crossed."""

    total: Ring
    survivors: tuple[int, ...]
    up: int
    down: int


def enrolled(
    users: Collection[int], entropy: Entropy = secrets.token_bytes
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Identities and the directory of their public halves.

    Example:
        >>> identities, directory = enrolled([3, 4])
        >>> sorted(directory), identities[3] == directory[3]
        ([3, 4], False)
    """
    identities = {user: entropy(32) for user in users}
    return identities, {user: public_identity(identity) for user, identity in identities.items()}


def summed(
    terms: Terms,
    vectors: Mapping[int, Ring],
    drops: Mapping[int, Phase] | None = None,
    entropy: Entropy = secrets.token_bytes,
) -> Summed:
    """The sum of these vectors; who drops out is silent from the phase given on.

    Example:
        >>> import numpy as np
        >>> vectors = {user: np.full(2, user, dtype="<u8") for user in range(10)}
        >>> found = summed(Terms(b"run", 0, "train", bytes(32), 2, invited=10), vectors, {4: Phase.INPUTS})
        >>> found.total.tolist(), len(found.survivors)
        ([41, 41], 9)
    """
    identities, directory = enrolled(vectors, entropy)
    clients = {
        user: Client(terms, user, identities[user], directory, vector, entropy=entropy)
        for user, vector in vectors.items()
    }
    server = Server(terms, directory, list(vectors))
    up = down = 0
    outgoing: dict[int, bytes] = dict.fromkeys(clients, b"")
    while server.phase is not Phase.DONE:
        present = [user for user in outgoing if _present(user, server.phase, drops or {})]
        for user in present:
            client = clients[user]
            answer = client.start() if server.phase is Phase.KEYS else client.receive(outgoing[user])
            up += len(answer)
            server.receive(user, answer)
        if server.ignored:
            user, why = next(iter(server.ignored.items()))
            raise TacitError(
                f"an honest message of user {user} was refused: {why}", "this is a defect: report it"
            )
        outgoing = server.advance()
        down += sum(map(len, outgoing.values()))
    return Summed(server.total, tuple(server.survivors), up, down)


_ORDER = list(Phase)


def _present(user: int, phase: Phase, drops: Mapping[int, Phase]) -> bool:
    return user not in drops or _ORDER.index(phase) < _ORDER.index(drops[user])
