"""All attacks on one run: replay it with somebody listening, hand each attack what its observer saw.

Randomness is keyed, so a replay sends the very messages that the run sent. Rounds are replayed from the
first; a person's last uploads among them are attacked.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.audit import linkability, membership
from tacit.audit.evidence import Evidence, Metrics, Skipped
from tacit.audit.rated_set import mixing_of
from tacit.audit.scored import answers, letters, masked, sums, uploads, values
from tacit.audit.transcript import Recording, gradient_of
from tacit.audit.truth import Truth
from tacit.config.experiment import Experiment, resolved
from tacit.errors import TacitError, nearest
from tacit.local.factor_gradients import FactorGradients
from tacit.local.own_bits import OwnBits
from tacit.local.presence import MetBits
from tacit.protect.randomised_bits import RandomisedBits
from tacit.protect.randomised_response import RandomisedResponse
from tacit.rng import SeededKeys
from tacit.round import Exchange, Method
from tacit.runtime.folder import RunFolder
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import World, new_world, one_round, set_up
from tacit.types import Array, Delivers, Index

ROUNDS = 5
RETRAINED_ROUNDS = 50
AUDIT = "audit.json"
MOST_PEOPLE = 1000
UNSEEN = {
    Delivers.SUM: "the server is handed one sum, no single uploads",
    Delivers.SHUFFLED: "the server is handed shuffled reports without senders, no single uploads",
}


@dataclass(frozen=True)
class Attack:
    """One attack: who could carry it out, and how."""

    observer: str
    run: Callable[[Evidence], Metrics | Skipped]


ATTACKS: Mapping[str, Attack] = {
    "rating-reconstruction-one-round": Attack("server", uploads.from_one_round),
    "rating-reconstruction-two-rounds": Attack("server", uploads.from_two_rounds),
    "rated-set-one-upload": Attack("server", uploads.rated_set_from_one_upload),
    "rated-set-intersection": Attack("server", uploads.rated_set_by_intersection),
    "rated-set-from-values": Attack("server", values.rated_set_from_values),
    "denoiser-alone": Attack("peer", letters.denoiser_alone),
    "denoiser-with-server": Attack("peer and server", letters.denoiser_with_server),
    "sum-tail": Attack("server", sums.sum_tail),
    "masked-rating-recovery": Attack("server", masked.masked_recovery),
    "masked-rating-ranking": Attack("server", masked.masked_ranking),
    "randomised-response": Attack("server", answers.randomised_response),
}


@dataclass(frozen=True)
class Retraining:
    """An attack that trains the run once more, with coins of its own: who could carry it out, and how."""

    observer: str
    run: Callable[[Plan, int, Listener], Mapping[str, Any] | Skipped]


RETRAINED: Mapping[str, Retraining] = {
    "user-membership": Retraining("release", membership.user_membership),
    "one-run-canaries": Retraining("release", membership.one_run_canaries),
    "shuffle-linkability": Retraining("server", linkability.shuffle_linkability),
}


def audited(
    folder: Path, names: Sequence[str], rounds: int, data_dir: Path | None, listener: Listener
) -> dict[str, Any]:
    """The JSON of ``tacit audit``: attacks on a run folder, finished or not.

    Raises:
        TacitError: The folder is no run's, or a name is no attack's.
    """
    known = {**ATTACKS, **RETRAINED}
    for name in names:
        if name not in known:
            raise TacitError(f"no attack is called {name!r}", nearest(name, known))
    opened = RunFolder.opened(folder)
    _, plan = resolved(Experiment.from_mapping(opened.config()), data_dir)
    if not isinstance(plan.method, Method):
        raise TacitError(f"{plan.name} sees all data in one place", "audit a federated method's run")
    finished = (folder / "result.json").exists()
    claims = opened.result()["privacy"] if finished else []
    found = {
        "run": str(folder),
        "rounds": min(rounds or ROUNDS, plan.method.rounds),
        "finished": finished,
        "privacy": claims,
        "attacks": every_attack(plan, names or tuple(known), rounds, listener),
    }
    keep(opened, found)
    return found


def every_attack(plan: Plan, names: Sequence[str], rounds: int, listener: Listener) -> list[dict[str, Any]]:
    """The attacks named, in their order: those on one replay first, then those that train anew."""
    read = [name for name in ATTACKS if name in names]
    found = attacked(observed(plan, rounds or ROUNDS, listener), read, listener)["attacks"] if read else []
    for name in RETRAINED:
        if name in names:
            told = _trained_anew(name, plan, rounds or RETRAINED_ROUNDS, listener)
            line: dict[str, Any] = {"name": name, "observer": RETRAINED[name].observer}
            if isinstance(told, Skipped):
                found.append({**line, "metrics": {}, "skipped": told.reason})
            else:
                plain = {key: _plain(value) for key, value in told["metrics"].items()}
                found.append({**line, **told, "metrics": plain})
    return found


def _trained_anew(name: str, plan: Plan, rounds: int, listener: Listener) -> Mapping[str, Any] | Skipped:
    """What was found; or, where the changed run is refused, in whose words."""
    try:
        return RETRAINED[name].run(plan, rounds, listener)
    except TacitError as error:
        return Skipped(f"with some people left out the run is refused: {error}")


def keep(folder: RunFolder, found: Mapping[str, Any]) -> None:
    """Write ``audit.json`` into the run's folder, for its report; attacks left out now stay as they were."""
    file = folder.path / AUDIT
    before = json.loads(file.read_text("utf-8"))["attacks"] if file.exists() else []
    now = {line["name"] for line in found["attacks"]}
    merged = [*found["attacks"], *(line for line in before if line["name"] not in now)]
    order = {name: place for place, name in enumerate([*ATTACKS, *RETRAINED])}
    merged.sort(key=lambda line: order.get(line["name"], len(order)))
    folder.save_text(AUDIT, json.dumps({**found, "attacks": merged}, indent=1))


def attacked(
    evidence: Evidence, names: Sequence[str] = tuple(ATTACKS), listener: Listener | None = None
) -> dict[str, Any]:
    """Each attack's metrics on the same evidence, or why it was skipped."""
    found: list[dict[str, Any]] = []
    listener = listener or Listener()
    listener.stage("attacking", len(names))
    for name in names:
        told = ATTACKS[name].run(evidence)
        line: dict[str, Any] = {"name": name, "observer": ATTACKS[name].observer}
        if isinstance(told, Skipped):
            found.append({**line, "metrics": {}, "skipped": told.reason})
        else:
            found.append({**line, "metrics": {key: _plain(value) for key, value in told.items()}})
        listener.step(len(found), {})
    return {"attacks": found}


def _plain(value: float) -> float:
    return float(f"{float(value):.6g}")


def observed(plan: Plan, rounds: int, listener: Listener) -> Evidence:
    """Replay the first rounds of a run, with everybody's messages written down as their readers see them."""
    assert isinstance(plan.method, Method)
    federation = federation_of(plan.dataset, plan.split.train)
    world = new_world(plan.method, federation, SeededKeys(plan.seed), None, plan.delta)
    rounds = min(rounds, world.method.rounds)
    people = world.keys.generator("audit/attacked").permutation(federation.people)[:MOST_PEOPLE]
    recording = Recording(people.astype(np.int32), federation.catalogue, _letter_rounds(world.method, rounds))
    world.onlooker = recording
    vectors: dict[int, Array] = {}
    listener.stage("replaying", rounds)
    set_up(world)
    while world.server.round < rounds:
        _note_vectors(world, vectors)
        one_round(world)
        listener.step(world.server.round, {})
    _note_vectors(world, vectors)
    return evidence_of(world, recording, vectors, rounds)


def _note_vectors(world: World, vectors: dict[int, Array]) -> None:
    """Everybody's vector before the coming round, for scoring."""
    if "user" in world.private:
        vectors[world.server.round] = world.private["user"].copy()


def evidence_of(world: World, recording: Recording, vectors: Mapping[int, Array], rounds: int) -> Evidence:
    """What was recorded, with what is public about the method, and the truth to score against."""
    asked, senders = _who(world, rounds)
    told = [exchange for exchange in world.method.exchanges if exchange.local.row_form is not None]
    main = told[0] if told else world.method.exchanges[0]
    form = main.local.row_form
    transcript = recording.transcript()
    unseen = UNSEEN.get(main.transport.delivers, "") if transcript.anything else "nothing leaves a device"
    return Evidence(
        transcript=transcript,
        truth=Truth(world.federation, vectors, asked, senders),
        mixing=mixing_of(main, world.federation.catalogue),
        gradient=gradient_of(main),
        masked=form is not None and form.masked,
        epsilon=_epsilon(world.method),
        unseen=unseen,
    )


def _letter_rounds(method: Method, rounds: int) -> frozenset[int]:
    """The last round, and the last in which made-up ratings are mean ratings: the settings tell."""
    found = {rounds - 1}
    for exchange in method.exchanges:
        local = exchange.local
        if isinstance(local, FactorGradients) and local.filling == "hybrid":
            found |= {min(rounds - 1, local.t_predict)}
    return frozenset(found)


def _who(world: World, rounds: int) -> tuple[dict[int, Index], dict[tuple[int, int], Index]]:
    """Who was asked first in each round, and who wrote to whom: drawn again from the same keys."""
    first, peer = world.method.exchanges[0], world.casting.peer
    asked: dict[int, Index] = {}
    senders: dict[tuple[int, int], Index] = {}
    for round in range(rounds):
        drawn = asked[round] = first.sampling.draw(world.casting.parts[first.part], round, world.keys)
        if peer is not None:
            for recipient in np.unique(peer[drawn]).tolist():
                senders[round, recipient] = drawn[peer[drawn] == recipient]
    return asked, senders


def _epsilon(method: Method) -> float | None:
    """That of randomised answers about items; infinite where they are told as they are."""
    for exchange in (*method.setup, *method.exchanges):
        if isinstance(exchange.local, OwnBits | MetBits):
            return _of_answers(exchange)
    return None


def _of_answers(exchange: Exchange) -> float:
    stages = exchange.protections.stages
    randomised = (stage for stage in stages if isinstance(stage, RandomisedResponse | RandomisedBits))
    return next((stage.epsilon for stage in randomised), math.inf)
