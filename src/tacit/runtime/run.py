"""A whole run: train, evaluate, write the folder; a kill at any moment loses at most a few seconds."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit import codec
from tacit.account.claim import Adjacency, Observer, Unit
from tacit.account.events import Nothing
from tacit.data.interactions import Dataset, Interactions, by_user
from tacit.errors import TacitError
from tacit.evaluate.null_model import NullAudit, not_applicable
from tacit.evaluate.protocol import Evaluation, evaluate
from tacit.evaluate.scorer import Scorer
from tacit.federation.federation import Federation
from tacit.ledger.privacy import Guarantee, PrivacyLedger
from tacit.ledger.record import ExchangeRecord
from tacit.ledger.traffic import TrafficLedger
from tacit.models.baselines import Baseline, Known
from tacit.rng import SeededKeys
from tacit.round import Method, ServerState
from tacit.runtime.checkpoint import Checkpoint
from tacit.runtime.curve import Watched
from tacit.runtime.folder import RunFolder
from tacit.runtime.groups import grouped
from tacit.runtime.listener import Listener
from tacit.runtime.negatives import audited
from tacit.runtime.simulate import Execution, World, collected, new_world, set_up, step
from tacit.split import Split
from tacit.types import Index

CHECKPOINT_SECONDS = 2.0
CHECKPOINT_SHARE = 0.05  # of the time may go into writing checkpoints
LOGS = ("ledger.jsonl", "metrics.jsonl")


@dataclass(frozen=True)
class Fitting:
    """A baseline with its settings: it is given everybody's data in one place."""

    baseline: Baseline
    settings: Mapping[str, Any]

    @property
    def predicts_ratings(self) -> bool:
        """Whether it predicts ratings."""
        return self.baseline.predicts_ratings


@dataclass(frozen=True)
class Plan:
    """Everything a run needs, resolved: nothing in it changes while it runs."""

    name: str
    method: Method | Fitting
    dataset: Dataset
    split: Split
    seed: int
    metrics: tuple[str, ...] = ()
    evaluate_every: int = 0
    delta: float = 1e-6
    execution: Execution = field(default_factory=Execution)


class Interrupted(Exception):
    """The run was stopped between two rounds and saved."""


@dataclass
class Ledgers:
    """The two ledgers of a run, and their lines not yet written."""

    privacy: PrivacyLedger
    traffic: TrafficLedger = field(default_factory=TrafficLedger)
    unwritten: list[dict[str, Any]] = field(default_factory=list)

    def add(self, records: Sequence[ExchangeRecord]) -> None:
        """Count the exchanges of a round."""
        for record in records:
            self.privacy.add(record.claim)
            self.traffic.add(record)
            self.unwritten.append(record.to_json())


def federation_of(dataset: Dataset, train: Interactions) -> Federation:
    """Everybody's training history; people without one take no part."""
    offsets, items, values = by_user(train, dataset.users)
    return Federation(
        offsets, items, values, dataset.items, dataset.scale, dataset.user_features, dataset.item_features
    )


def execute(
    plan: Plan, folder: RunFolder, listener: Listener, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Train and evaluate, or continue where the folder stands; returns the result's JSON.

    Raises:
        Interrupted: The listener asked to stop; the folder can be resumed.
    """
    if isinstance(plan.method, Method):
        scorer, audit, told = _trained(plan, plan.method, folder, listener)
    else:
        scorer, told = _fitted(plan, plan.method, listener)
        audit = not_applicable("a baseline draws no negatives that it keeps")
    listener.stage("evaluating", 1)
    began = time.perf_counter()
    final = evaluate_plan(plan, scorer, asked_metrics(plan), audit)
    spent = time.perf_counter() - began
    result = {
        "method": plan.name,
        "metrics": {name: _plain(value) for name, value in final.metrics.items()},
        "errors": {name: _plain(value) for name, value in final.errors.items() if value == value},
        **told,
        "seconds": {**seconds, **told["seconds"], "evaluate": round(spent, 4)},
        "notes": [*final.notes, *plan.split.notes, *told.get("notes", ())],
        "groups": [line.to_json() for line in grouped(final, scorer, plan.split, plan.dataset.scale)],
    }
    _save_per_user(folder, final)
    listener.step(1, final.metrics)
    return result


def asked_metrics(plan: Plan) -> tuple[str, ...]:
    """The metrics asked for, or those that fit the method and the data; none where nothing is held out."""
    if not len(plan.split.test):
        return ()
    if plan.metrics:
        return plan.metrics
    errors = ("rmse", "mae") if plan.method.predicts_ratings and plan.dataset.scale else ()
    return (*errors, "hr@10", "ndcg@10", "recall@10", "mrr", "coverage@10")


def evaluate_plan(
    plan: Plan, scorer: Scorer, metrics: tuple[str, ...], audit: NullAudit | None = None
) -> Evaluation:
    """Evaluate on the held-out part, always in the same way."""
    return evaluate(
        scorer,
        plan.split,
        catalogue=plan.dataset.items,
        metrics=metrics,
        scale=plan.dataset.scale,
        keys=SeededKeys(plan.seed),
        audit=audit,
    )


def _plain(value: float) -> float:
    return round(float(value), 6)


def _save_per_user(folder: RunFolder, final: Evaluation) -> None:
    from tacit.runtime.checkpoint import save_arrays  # with its reader

    arrays = {f"{name}/users": found.users for name, found in final.per_user.items()}
    arrays |= {f"{name}/values": found.values for name, found in final.per_user.items()}
    arrays |= {
        f"{name}/weights": found.weights
        for name, found in final.per_user.items()
        if found.weights is not None
    }
    if arrays:
        save_arrays(folder.path / "per_user.safetensors", arrays)


def fitted_baseline(plan: Plan, method: Fitting) -> Scorer:
    """A baseline fitted on the training part; equal plans give equal models."""
    known = Known(
        plan.split.train, plan.dataset.users, plan.dataset.items, SeededKeys(plan.seed), plan.split.support
    )
    return method.baseline.fit(known, **method.settings)


def _fitted(plan: Plan, method: Fitting, listener: Listener) -> tuple[Scorer, dict[str, Any]]:
    listener.stage("training", 1)
    began = time.perf_counter()
    scorer = fitted_baseline(plan, method)
    spent = time.perf_counter() - began
    listener.step(1, {})
    why = "all data lie in one place; no noise is added"
    lines = [
        Guarantee(
            observer,
            Unit.USER,
            Adjacency.ADD_REMOVE,
            None,
            plan.delta,
            "accounted",
            (),
            why,
        )
        for observer in (Observer.SERVER, Observer.RELEASE)
    ]
    pooled = 8 * len(plan.split.train)
    traffic = {**TrafficLedger().summary(), "total_bytes": pooled}
    traffic["setup_bytes_per_client"] = round(pooled / plan.dataset.users, 2)
    return scorer, {
        "rounds": 0,
        "privacy": [line.to_json() for line in lines],
        "traffic": traffic,
        "seconds": {"train": round(spent, 4), "per_round": 0.0},
    }


def _trained(
    plan: Plan, method: Method, folder: RunFolder, listener: Listener
) -> tuple[Scorer, NullAudit, dict[str, Any]]:
    federation = federation_of(plan.dataset, plan.split.train)
    world = new_world(method, federation, SeededKeys(plan.seed), plan.execution, plan.delta)
    method = world.method
    ledgers = Ledgers(PrivacyLedger(plan.delta, method.mode))
    saved = folder.checkpoint()
    if saved is None:
        for name in LOGS:
            folder.cut(name, 0)
        ledgers.add(set_up(world))
        before = 0.0
    else:
        before = _restore(world, ledgers, folder, saved)
    spent = before + _train(world, ledgers, plan, folder, listener, before)
    private = personalised(world, plan)
    scorer = method.model.scorer(world.server.shared, private)
    folder.save_model(world.server.shared, private)
    guarantees = [line.to_json() for line in ledgers.privacy.guarantees()]
    told = {
        "rounds": method.rounds,
        "privacy": guarantees,
        "paper_says": method.paper.says,
        "notes": list(method.notes),
        "traffic": {
            **ledgers.traffic.summary(),
            "model_bytes": codec.broadcast_nbytes(world.server.shared),
            **_units(method, ledgers),
        },
        "seconds": {"train": round(spent, 4), "per_round": round(spent / max(1, method.rounds), 6)},
    }
    return scorer, audited(world, plan.split), told


def _units(method: Method, ledgers: Ledgers) -> dict[str, Any]:
    if method.published_units is None or not ledgers.traffic.by_exchange:
        return {}
    units = method.published_units(ledgers.traffic.by_exchange)
    return {"published_units_per_round": {name: round(value, 2) for name, value in units.items()}}


def personalised(world: World, plan: Plan, only: Index | None = None) -> dict[str, Any]:
    """Everybody's private arrays, to be read; people known by their support alone are folded in on devices.

    Where a model is adapted before it is used, everybody's device does so from its own history. With
    ``only`` the arrays are ready for these people alone. What nobody is folded into is the world's own array.
    """
    private = dict(world.private)
    if world.method.model.adapts:
        _fold_in(world, world.federation, private, only)
    support = plan.split.support
    if support is not None and len(support):
        _fold_in(world, federation_of(plan.dataset, support), private, only)
    return private


def _fold_in(world: World, histories: Federation, private: dict[str, Any], only: Index | None) -> None:
    people = histories.people if only is None else np.intersect1d(histories.people, only).astype(np.int32)
    for users in histories.chunks(people, world.execution.pairs_per_chunk):
        folded = world.method.model.folded_in(world.server.shared, histories.cohort(users))
        for name, array in folded.items():
            if name not in private:
                private[name] = np.zeros((len(histories), *array.shape[1:]), dtype=array.dtype)
            elif private[name] is world.private.get(name):
                private[name] = private[name].copy()
            private[name][users] = array


def _train(
    world: World, ledgers: Ledgers, plan: Plan, folder: RunFolder, listener: Listener, before: float
) -> float:
    rounds = world.method.rounds
    listener.stage("training", rounds)
    listener.step(world.server.round, {})
    spent, save_at = 0.0, time.perf_counter() + CHECKPOINT_SECONDS
    every = plan.evaluate_every or max(1, rounds // 20)
    watched = Watched.of(plan.split, asked_metrics(plan), SeededKeys(plan.seed))
    while world.server.round < rounds:
        began = time.perf_counter()
        try:
            ledgers.add(_round(world, ledgers))
        except TacitError:
            if world.server.round:  # the last good model, and what everybody has seen by now
                _save(world, ledgers, folder, before + spent)
            raise
        spent += time.perf_counter() - began
        done = world.server.round
        facts: dict[str, float] = {}
        if watched.metrics and (done % every == 0 or done == rounds):
            scorer = world.method.model.scorer(world.server.shared, personalised(world, plan, watched.people))
            seen = evaluate_plan(replace(plan, split=watched.split), scorer, watched.metrics)
            facts = {name: _plain(value) for name, value in seen.metrics.items()}
            folder.append("metrics.jsonl", [{"round": done, "metrics": facts, "users": seen.users}])
        listener.step(done, facts)
        stop = listener.stopping() and done < rounds
        if stop or done == rounds or time.perf_counter() >= save_at:
            began = time.perf_counter()
            _save(world, ledgers, folder, before + spent)
            ended = time.perf_counter()
            save_at = ended + max(CHECKPOINT_SECONDS, (ended - began) / CHECKPOINT_SHARE)
        if stop:
            raise Interrupted
    return spent


def _round(world: World, ledgers: Ledgers) -> list[ExchangeRecord]:
    """One round; of one that is refused the server has seen the answers, and nobody gets a model."""
    records, tallies = collected(world)
    try:
        step(world, records, tallies)
    except TacitError:
        kept = Observer.RELEASE, Nothing()
        ledgers.add([replace(record, claim=record.claim.with_event(*kept)) for record in records])
        raise
    return records


def _save(world: World, ledgers: Ledgers, folder: RunFolder, spent: float) -> None:
    """Ledger lines first, then the checkpoint that says how many of them count."""
    folder.append("ledger.jsonl", ledgers.unwritten)
    ledgers.unwritten.clear()
    arrays: dict[str, Any] = {}
    for group, values in (
        ("shared", world.server.shared),
        ("optimiser", world.server.optimiser),
        ("private", world.private),
    ):
        arrays.update({f"{group}/{name}": array for name, array in values.items()})
    facts = {
        "round": world.server.round,
        "spent": spent,
        "protections": {name: list(states) for name, states in world.server.protections.items()},
        "sizes": {name: folder.size(name) for name in LOGS},
    }
    folder.save_checkpoint(Checkpoint(arrays, facts))


def _restore(world: World, ledgers: Ledgers, folder: RunFolder, saved: Checkpoint) -> float:
    """Put the world back to the checkpoint and forget what was written after it."""
    private = saved.group("private")
    expected = {name: array.shape for name, array in world.private.items()}
    if {name: array.shape for name, array in private.items()} != expected or "sizes" not in saved.facts:
        raise TacitError(
            "the checkpoint does not fit its configuration", "start the run anew in another folder"
        )
    for name, size in saved.facts["sizes"].items():
        folder.cut(name, size)
    world.private = private
    protections = {name: tuple(states) for name, states in saved.facts["protections"].items()}
    world.server = ServerState(
        saved.facts["round"], saved.group("shared"), saved.group("optimiser"), protections
    )
    for line in folder.lines("ledger.jsonl"):
        record = ExchangeRecord.from_json(line)
        ledgers.privacy.add(record.claim)
        ledgers.traffic.add(record)
    return float(saved.facts["spent"])
