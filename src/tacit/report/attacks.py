"""What ``tacit audit`` found, beside what was claimed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.report import figures
from tacit.report.markup import Column, table, text
from tacit.report.saved import Saved
from tacit.report.words import epsilon_text, observer_name


def attack_results(run: Saved) -> str:
    """The section about attacks; without an audit it says how to make one."""
    if run.audit is None:
        where = "RUN"
        return (
            "<p>This run was not attacked yet. <code>tacit audit "
            + where
            + "</code> replays it with every observer "
            "listening, writes what they found into the run’s folder, and the next report shows it here.</p>"
        )
    found = [line for line in run.audit["attacks"] if "skipped" not in line]
    skipped = [line for line in run.audit["attacks"] if "skipped" in line]
    return _verdicts(run.audit) + _picture(found) + _numbers(found) + _skipped(skipped)


def _verdicts(audit: Mapping[str, Any]) -> str:
    broken = [line for line in audit["attacks"] if line.get("exceeds")]
    if broken:
        lines = "".join(f"<p>{text(line['name'])}: {text(line['exceeds'])}</p>" for line in broken)
        return f'<div class="alarm"><h3>A measured lower bound exceeds a claim</h3>{lines}</div>'
    bounded = [line for line in audit["privacy"] if line["epsilon"] is not None]
    if not bounded:
        return "<p>Nothing was claimed, so nothing can be refuted: these numbers are what observers get.</p>"
    claims = ", ".join(f"{observer_name(line['observer']).lower()}: {epsilon_text(line)}" for line in bounded)
    return (
        f'<p class="calm">No measurement exceeds what is claimed ({text(claims)}). An audit finds '
        "mistakes; it cannot prove a claim.</p>"
    )


def _picture(found: Sequence[Mapping[str, Any]]) -> str:
    leaks = [
        figures.Leak(f"{line['name']}: {name.replace('_', ' ')}", value, line["metrics"][f"prior_{name}"])
        for line in found
        for name, value in line["metrics"].items()
        if f"prior_{name}" in line["metrics"]
        and 0 <= value <= 1
        and 0 <= line["metrics"][f"prior_{name}"] <= 1
    ]
    if not leaks:
        return ""
    worst = max(leaks, key=lambda leak: leak.found - (leak.guessed or 0.0))
    told = (
        f"{len(leaks)} measurements: a dot is what an attack finds, a bar what a guess from public knowledge "
        f"finds. The widest gap: {worst.label}, {worst.found:.3g} against {worst.guessed:.3g}."
    )
    return figures.leaks(leaks, told)


def _numbers(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "<p>No attack applies to this run.</p>"
    rows = []
    for line in found:
        metrics = line["metrics"]
        for name, value in metrics.items():
            if name.startswith("prior_"):
                continue
            prior = metrics.get(f"prior_{name}")
            guess = "" if prior is None else f"{prior:.4g}"
            rows.append((line["name"], line["observer"], name.replace("_", " "), f"{value:.4g}", guess))
    columns = [Column("attack"), Column("observer"), Column("metric"), Column("found", number=True)]
    return table("What each attack found", [*columns, Column("by guessing", number=True)], rows)


def _skipped(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    listed = "".join(f"<li>{text(line['name'])}: {text(line['skipped'])}</li>" for line in lines)
    return f"<details><summary>Attacks that do not apply, and why</summary><ul>{listed}</ul></details>"
