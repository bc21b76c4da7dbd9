"""Scripts for a server that lies or is unlucky, against the client code that devices run."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tacit.transport.secure_sum.client import Client
from tacit.transport.secure_sum.in_process import enrolled
from tacit.transport.secure_sum.masks import RINGS
from tacit.transport.secure_sum.plan import Rates
from tacit.transport.secure_sum.server import Phase, Server
from tacit.transport.secure_sum.terms import SumAborted, Terms


class Cohort:
    """Clients with vectors, and an honest server to lead them up to the point where a script takes over."""

    def __init__(self, clients=12, seed=0, ring=32, length=6, rates=None, vectors=None, invited=None):
        self.rates = rates or Rates(dropout=0.1, adversary=0.1)
        self.terms = Terms(
            b"run", 5, "train", bytes(32), length, ring, self.rates, invited=invited or clients
        )
        chance = random.Random(seed)
        self.identities, self.directory = enrolled(range(clients), chance.randbytes)
        generator = np.random.default_rng(seed)
        self.vectors = vectors or {
            user: generator.integers(0, 1000, length).astype(RINGS[ring]) for user in range(clients)
        }
        self.seed = seed
        self.clients = {user: self.client(user) for user in range(clients)}
        self.server = Server(self.terms, self.directory, list(self.clients))
        self.heard = []  # every byte that clients sent, in order

    def client(self, user, **changes):
        entropy = random.Random(f"{self.seed}/{user}").randbytes
        told = {
            "terms": self.terms,
            "identity": self.identities[user],
            "last_round": -1,
            "entropy": entropy,
            **changes,
        }
        return Client(
            told["terms"], user, told["identity"], self.directory, self.vectors[user],
            last_round=told["last_round"], entropy=told["entropy"],
        )  # fmt: skip

    def adverts(self):
        return {user: client.start() for user, client in self.clients.items()}

    def up_to(self, phase):
        """Play honestly until the server waits for ``phase``; returns what it would send to whom."""
        outgoing = dict.fromkeys(self.clients, b"")
        while self.server.phase is not phase:
            for user, wire in outgoing.items():
                client = self.clients[user]
                answer = client.start() if self.server.phase is Phase.KEYS else client.receive(wire)
                self.heard.append((self.server.phase, user, answer))
                self.server.receive(user, answer)
            outgoing = self.server.advance()
        return outgoing

    def other_terms(self, **changes):
        return replace(self.terms, **changes)


@pytest.fixture
def cohort():
    return Cohort()


@pytest.fixture
def cohorts():
    return Cohort


@pytest.fixture
def refusal():
    """What a client answers: the reason it refused with, or None."""

    def of(client, wire):
        try:
            client.receive(wire)
        except SumAborted as error:
            return error.reason.value
        return None

    return of
