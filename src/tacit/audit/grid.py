"""Every attack against every protection: one table, one data set, the same first rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.audit.suite import ATTACKS, RETRAINED, every_attack
from tacit.config.experiment import Experiment, resolved
from tacit.errors import TacitError, nearest
from tacit.ledger.privacy import PrivacyLedger
from tacit.rng import SeededKeys
from tacit.round import Method, claim_of
from tacit.runtime.listener import Listener
from tacit.runtime.run import Plan, federation_of
from tacit.runtime.simulate import new_world
from tacit.types import RoundFacts

SMALL = "demo:users=200,items=150,mean=20"
SHOWN: Mapping[str, tuple[str, ...]] = {
    "rating-reconstruction-one-round": ("exact", "precision"),
    "rating-reconstruction-two-rounds": ("people_within_0.05",),
    "rated-set-one-upload": ("precision",),
    "rated-set-intersection": ("precision@5", "precision@3", "precision@2", "precision@1"),
    "rated-set-from-values": ("precision",),
    "denoiser-alone": ("vectors_found", "linked"),
    "denoiser-with-server": ("linked",),
    "sum-tail": ("people_exposed",),
    "masked-rating-recovery": ("exact_item_means", "exact_centred"),
    "masked-rating-ranking": (),
    "randomised-response": ("precision", "auc"),
    "user-membership": ("advantage",),
    "one-run-canaries": ("epsilon_lower_bound",),
    "shuffle-linkability": ("linked_by_order",),
}


@dataclass(frozen=True)
class Defence:
    """One column: a name, and the method with its protections."""

    name: str
    experiment: Experiment


def _defence(name: str, method: str, **keys: Any) -> Defence:
    return Defence(name, Experiment.from_mapping({"method": method, "data": SMALL, **keys}))


DEFENCES: tuple[Defence, ...] = (
    _defence("plain uploads (fedmf)", "fedmf"),
    _defence("fresh fillers (fedrec)", "fedrec", settings={"rho": 1.0}),
    _defence("kept fillers (fedrec)", "fedrec", settings={"rho": 1.0, "fillers": "kept"}),
    _defence("denoisers (fedrec++)", "fedrec++", settings={"rho": 1.0}),
    _defence("secure sum (fedmf)", "fedmf", transport="secure-sum"),
    _defence(
        "noise in shares in a secure sum (fedmf)",
        "fedmf",
        rounds=20,
        transport="secure-sum",
        protect=["skellam:4.0:40:3.0"],
    ),
    _defence("randomised sub-models (priv-fedmf-sub)", "priv-fedmf-sub"),
    _defence("noise on devices (dp-fedmf)", "dp-fedmf"),
    _defence("masks (fedmmf)", "fedmmf"),
    _defence("plain network (privrec)", "privrec", settings={"clients": 50}),
    _defence(
        "central noise, ε=2 (dp-privrec)",
        "dp-privrec",
        settings={"epsilon": 2.0, "clients": 50, "rounds": 20},
    ),
    _defence("local noise, shuffled (fmf-ldp)", "fmf-ldp"),
)


def grid(
    names: Sequence[str],
    data: str,
    rounds: int,
    data_dir: Path | None,
    listener: Listener,
    defences: Sequence[Defence] = DEFENCES,
) -> dict[str, Any]:
    """The JSON of ``tacit audit --grid``: per protection every attack's headline, its guess, or why none.

    Args:
        names: Attacks; all of them if none is named.
        data: The data set; the small synthetic one if empty.
        rounds: Rounds replayed, and trained anew.
        data_dir: Where data sets lie.
        listener: Is told how far it got.
        defences: The columns.
    """
    known = {**ATTACKS, **RETRAINED}
    for name in names:
        if name not in known:
            raise TacitError(f"no attack is called {name!r}", nearest(name, known))
    columns = []
    for defence in defences:
        experiment = replace(defence.experiment, data=data or SMALL)
        _, plan = resolved(experiment, data_dir)
        found = every_attack(plan, names or tuple(known), rounds, listener)
        columns.append(
            {
                "protection": defence.name,
                "method": experiment.method,
                "epsilon": claimed(plan),
                "attacks": [{**line, **_headline(line)} for line in found],
            }
        )
    return {"data": data or SMALL, "rounds": rounds, "grid": columns}


def claimed(plan: Plan) -> dict[str, float | None]:
    """What the whole run would promise server and release, from its claims before it starts."""
    assert isinstance(plan.method, Method)
    world = new_world(
        plan.method, federation_of(plan.dataset, plan.split.train), SeededKeys(plan.seed), None, plan.delta
    )
    ledger = PrivacyLedger(plan.delta, world.method.mode)
    people = len(world.federation.people)
    shapes = {name: array.shape for name, array in world.server.shared.items()}
    for times, exchanges in ((1, world.method.setup), (world.method.rounds, world.method.exchanges)):
        for exchange in exchanges:
            facts = RoundFacts(0, exchange.name, people, people, people, shapes)
            claim = claim_of(exchange, world.server, facts)
            for _ in range(times):
                ledger.add(claim)
    return {line.observer.value: line.epsilon for line in ledger.guarantees()}


def _headline(line: Mapping[str, Any]) -> dict[str, Any]:
    """The one number of an attack that a table shows, and what a guess gives."""
    metrics = line["metrics"]
    name = next((name for name in SHOWN.get(line["name"], ()) if name in metrics), None)
    if name is None:
        name = next((name for name in metrics if not name.startswith("prior_")), None)
    if name is None:
        return {"headline": None}
    return {"headline": {"metric": name, "found": metrics[name], "guessed": metrics.get(f"prior_{name}")}}


def rows(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The table for people: attacks down, protections across; guesses in brackets, a dash where none."""
    columns = ["attack", *(column["protection"] for column in found["grid"])]
    names = [line["name"] for line in found["grid"][0]["attacks"]]
    table = [["ε server", *(_epsilon(column, "server") for column in found["grid"])]]
    table.append(["ε release", *(_epsilon(column, "release") for column in found["grid"])])
    for place, name in enumerate(names):
        table.append([name, *(_cell(column["attacks"][place]) for column in found["grid"])])
    return columns, table


def _epsilon(column: Mapping[str, Any], observer: str) -> str:
    if observer not in column["epsilon"]:
        return "–"
    value = column["epsilon"][observer]
    return "∞" if value is None else f"{value:.3g}"


def _cell(line: Mapping[str, Any]) -> str:
    head = line.get("headline")
    if head is None or "skipped" in line:
        return "–"
    guess = "" if head["guessed"] is None else f" ({head['guessed']:.2g})"
    return f"{head['found']:.3g}{guess}"
