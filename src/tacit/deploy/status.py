"""A device in a few numbers: for the terminal, the page and programs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.account.claim import Observer
from tacit.deploy.identity import Identity
from tacit.deploy.limits import Sent, Spent, spent
from tacit.deploy.store import DeviceStore


@dataclass(frozen=True)
class RunSpent:
    """What left a device in one run, and what each observer may have learned from it."""

    run: str
    rounds: int
    exchanges: int
    up_bytes: int
    down_bytes: int
    spent: tuple[Spent, ...]
    lost: int = 0


def run_spent(run: str, lines: Sequence[Sent], delta: float) -> RunSpent:
    """One run's part of a person's ledger, added up.

    Example:
        >>> line = Sent("ann", "r", 0, "round", "server", 100, 40, None, 0)
        >>> told = run_spent("r", [line], 1e-6)
        >>> told.rounds, told.up_bytes, told.spent[0].value
        (1, 100, inf)
    """
    mine = [line for line in lines if line.run == run]
    claims = [line.claim for line in mine]
    found = tuple(spent(claims, observer, delta) for observer in Observer)
    return RunSpent(
        run,
        len({line.round for line in mine if line.round >= 0}),
        len(mine),
        sum(line.up_bytes for line in mine),
        sum(line.down_bytes for line in mine),
        tuple(told for told in found if told.value > 0),
        sum(not line.known for line in mine),
    )


def status(store: DeviceStore) -> dict[str, Any]:
    """The device as plain JSON data; no entry of anybody's history is in it."""
    people = store.people()
    ledgers = {person: store.sent(person) for person in people}
    return {
        "folder": str(store.folder),
        "people": [{"person": person, "entries": len(store.history(person))} for person in people],
        "paused": store.paused,
        "limits": store.limits().to_json(),
        "public_key": Identity.of(store).public_text,
        "fingerprint": Identity.of(store).fingerprint,
        "runs": [_run(store, run, ledgers) for run in store.runs()],
    }


def _run(store: DeviceStore, run: str, ledgers: dict[str, list[Sent]]) -> dict[str, Any]:
    about, model = store.run(run), store.model(run)
    told = {person: run_spent(run, lines, about.delta) for person, lines in ledgers.items()}
    return {
        "run": run,
        "method": about.method_name,
        "server": about.server,
        "model_round": None if model is None else model[0],
        "people": [
            {
                "person": person,
                "rounds": line.rounds,
                "up_bytes": line.up_bytes,
                "down_bytes": line.down_bytes,
                "lost_lines": line.lost,
                "privacy": [spent_json(one) for one in line.spent],
            }
            for person, line in told.items()
        ],
    }


def spent_json(told: Spent) -> dict[str, Any]:
    """One observer's epsilon as JSON data; unbounded is ``null``."""
    return {
        "observer": told.observer.value,
        "unit": told.unit.value,
        "adjacency": told.adjacency.value,
        "epsilon": told.value if math.isfinite(told.value) else None,
        "delta": told.delta,
        "because": told.reason,
        "assumes": list(told.assumes),
    }
