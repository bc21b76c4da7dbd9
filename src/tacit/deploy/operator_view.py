"""What an operator may see of a federation: counts, bytes, refusals by name, what was promised. No person."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.deploy.about import RunAbout
from tacit.deploy.accuracy import NAME
from tacit.deploy.charter import Charter
from tacit.deploy.journal import Journal
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.traffic import TrafficLedger
from tacit.round import ServerState


def seen(folder: Path) -> dict[str, Any]:
    """The state of a server's folder, running or not, as plain JSON data."""
    journal = Journal.opened(folder)
    try:
        charter = Charter.of(RunAbout.decoded(journal.fact("charter") or b""))
        state, records, devices = journal.state(), journal.records(), journal.devices()
        traffic, privacy = TrafficLedger(), PrivacyLedger(charter.about.delta, charter.method.mode)
        for record in records:
            traffic.add(record)
            privacy.add(record.claim)
        rounds = [_round(row) for row in journal.rounds()]
        seconds = [row["seconds"] for row in rounds if row["seconds"] is not None and row["round"] >= 0]
        return {
            "run": charter.run,
            "method": charter.about.method_name,
            "rounds": {"done": max(0, 0 if state is None else state.round), "of": charter.method.rounds},
            "devices": {
                "expected": charter.about.people,
                "enrolled": len(devices),
                "revoked": sum(device.revoked for device in devices.values()),
            },
            "under_way": _under_way(journal),
            "last_rounds": rounds[-10:],
            "lost": sum(row["invited"] - row["answered"] for row in rounds),
            "seconds_per_round": round(sum(seconds) / len(seconds), 4) if seconds else None,
            "framing_bytes": sum(row["framing"] for row in rounds),
            "traffic": traffic.summary(),
            "privacy": [line.to_json() for line in privacy.guarantees()],
            "accuracy": _accuracy(charter, state),
            "refusals": journal.refusals(),
            "warnings": _warnings(charter, rounds, journal.refusals()),
        }
    finally:
        journal.close()


def _accuracy(charter: Charter, state: ServerState | None) -> list[dict[str, Any]]:
    """What randomised answers tell of the lists; empty where nobody was asked."""
    if charter.accuracy is None or state is None or NAME not in state.optimiser:
        return []
    return charter.accuracy.told(state.optimiser[NAME])


def _round(row: Mapping[str, Any]) -> dict[str, Any]:
    seconds = row["seconds"]
    return {**row, "seconds": None if seconds is None else round(seconds, 3)}


def _under_way(journal: Journal) -> dict[str, Any] | None:
    opened = journal.opened_steps()
    if not opened:
        return None
    last = opened[max(opened)]
    return {"exchange": max(opened), "invited": len(last.invited)}


def _warnings(
    charter: Charter, rounds: list[dict[str, Any]], refusals: Mapping[str, Mapping[str, int]]
) -> list[str]:
    found = []
    if charter.seeded is not None:
        found.append("seeded run: everything drawn can be derived, no claim holds")
    found += [f"round {row['round']}: {row['said']}" for row in rounds if row["said"]]
    for row in rounds[-5:]:
        if row["answered"] * 2 < row["invited"]:
            found.append(f"round {row['round']}: only {row['answered']} of {row['invited']} answered")
    suspicious = {"unsigned", "stranger", "revoked", "foreign model", "tampered", "replayed", "duplicate"}
    for reason, times in refusals.get("server", {}).items():
        if reason in suspicious:
            found.append(f"{times} messages refused: {reason}")
    return found


def printed(view: Mapping[str, Any]) -> None:
    """The view as tables."""
    from tacit.report.tables import print_rows

    rounds, devices = view["rounds"], view["devices"]
    facts = [
        ("run", view["run"]),
        ("method", view["method"]),
        ("rounds", f"{rounds['done']} of {rounds['of']}"),
        ("people", f"{devices['enrolled']} of {devices['expected']} enrolled, {devices['revoked']} revoked"),
        ("answers lost", str(view["lost"])),
        (
            "seconds per round",
            "-" if view["seconds_per_round"] is None else f"{view['seconds_per_round']:.2f}",
        ),
        ("bytes, all", f"{view['traffic']['total_bytes']:,} and {view['framing_bytes']:,} of framing"),
    ]
    for line in view["privacy"]:
        epsilon = "∞" if line["epsilon"] is None else f"{line['epsilon']:.3g}"
        facts.append((f"ε to the {line['observer']}", f"{epsilon} ({line['unit']}, δ = {line['delta']:g})"))
    for told in view["accuracy"][-1:]:
        epsilon = f"ε = {told['epsilon']:g} each"
        of = f"round {told['round']}, {told['people']} randomised answers, {epsilon}"
        facts.append(("hr@10", f"{told['hr@10']:.3f} ± {told['se']:.3f} ({of})"))
    for side, reasons in view["refusals"].items():
        told = ", ".join(f"{name}: {times}" for name, times in reasons.items())
        facts.append((f"refused by {'devices' if side == 'device' else 'the ' + side}", told))
    print_rows("the federation", ("", ""), facts, right=())
    rows = [
        (str(row["round"]), str(row["invited"]), str(row["answered"]), _seconds(row), row["said"])
        for row in view["last_rounds"]
    ]
    print_rows("its last rounds", ("round", "asked", "answered", "seconds", ""), rows, right=(0, 1, 2, 3))
    for warning in view["warnings"]:
        print_rows("", ("",), [(f"warning: {warning}",)], right=())


def _seconds(row: Mapping[str, Any]) -> str:
    return "" if row["seconds"] is None else f"{row['seconds']:.2f}"


def as_json(view: Mapping[str, Any]) -> str:
    """One line."""
    return json.dumps(view)
