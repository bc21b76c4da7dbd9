"""Deep gradient compression equals the loop of its paper, number by number."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tacit.local.residual import Residual
from tacit.local.work import Broadcast, LocalWork, Work
from tacit.protect.shared_mask import kept
from tacit.rng import SeededKeys
from tacit.schedule import Warming
from tacit.testing.tiny import tiny_federation

SIZE = 12


@dataclass(frozen=True)
class Noisy(LocalWork):
    """Any update: random numbers of a round."""

    def run(self, received, private, cohort, inbox, keys):
        del inbox, keys
        generator = np.random.default_rng(received.round)
        return Work({"w": generator.normal(size=(len(cohort), SIZE)).astype("f4")}, {"mine": private["mine"]})


@pytest.mark.parametrize("choice", ["shared", "largest"])
@pytest.mark.parametrize("clip", [0.0, 0.7])
def test_rounds_equal_the_loop_of_the_paper(choice, clip):
    cohort = tiny_federation(3, 8).cohort(np.arange(3, dtype=np.int32))
    work = Residual(Noisy(), ("w",), Warming(0.25, 2), kept, momentum=0.8, clip=clip, choice=choice)
    private = {
        "mine": np.zeros((3, 1)),
        "velocity/w": np.zeros((3, SIZE), "f4"),
        "unsent/w": np.zeros((3, SIZE), "f4"),
    }
    velocity, unsent = np.zeros((3, SIZE)), np.zeros((3, SIZE))
    for round in range(6):
        done: Any = work.run(Broadcast(round, {}), private, cohort, None, SeededKeys(1))
        private = {**private, **done.private}
        raw = np.random.default_rng(round).normal(size=(3, SIZE)).astype("f4")
        share = 0.25 if round >= 2 else 0.25 ** (round / 2)
        for client in range(3):
            gradient = raw[client].astype(float)
            if clip:
                gradient *= min(1.0, clip / np.linalg.norm(gradient))
            velocity[client] = 0.8 * velocity[client] + gradient
            unsent[client] += velocity[client]
            count = int(np.ceil(share * SIZE))
            places = (
                kept("w", round, SIZE, share)
                if choice == "shared"
                else np.argsort(-np.abs(unsent[client]))[:count]
            )
            sent = np.zeros(SIZE)
            sent[places] = unsent[client][places]
            velocity[client][places] = unsent[client][places] = 0
            np.testing.assert_allclose(done.update["w"][client], sent, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(private["unsent/w"], unsent, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(private["velocity/w"], velocity, rtol=1e-4, atol=1e-5)


def test_without_momentum_nothing_is_ever_lost():
    """What was sent and what is still unsent add up to everything there was."""
    cohort = tiny_federation(3, 8).cohort(np.arange(3, dtype=np.int32))
    work = Residual(Noisy(), ("w",), Warming(0.1), kept, momentum=0.0)
    private = {
        "mine": np.zeros((3, 1)),
        "velocity/w": np.zeros((3, SIZE), "f4"),
        "unsent/w": np.zeros((3, SIZE), "f4"),
    }
    sent, there_was = np.zeros((3, SIZE)), np.zeros((3, SIZE))
    for round in range(8):
        done: Any = work.run(Broadcast(round, {}), private, cohort, None, SeededKeys(1))
        private = {**private, **done.private}
        sent += done.update["w"]
        there_was += np.random.default_rng(round).normal(size=(3, SIZE)).astype("f4")
    np.testing.assert_allclose(sent + private["unsent/w"], there_was, rtol=1e-4, atol=1e-5)
