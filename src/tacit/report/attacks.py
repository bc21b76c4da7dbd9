"""What ``tacit audit`` found, beside what was claimed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.report import exposure
from tacit.report.markup import text
from tacit.report.saved import Subject
from tacit.report.words import epsilon_text, observer_name, pooled

WHO: Mapping[str, str] = {
    "server": "the server",
    "peer": "another device",
    "release": "whoever gets the model",
    "proxy": "the proxy",
}
DOES: Mapping[str, str] = {
    "rating-reconstruction-one-round": "Solves one upload for the ratings, the rated items and the vector.",
    "rating-reconstruction-two-rounds": "Solves two uploads of a person for ratings that may be any number.",
    "rated-set-one-upload": "Takes the most popular of the items that an upload names.",
    "rated-set-intersection": "Takes the items that all of a person’s uploads name; @3 is after three.",
    "rated-set-from-values": "Parts items by where their rows lie along the line that all rows share.",
    "denoiser-alone": "Reads the sender’s vector and mean rating off the filler rows of a letter.",
    "denoiser-with-server": "Finds the sender of each letter by rows that repeat an upload.",
    "sum-tail": "Looks for items in an exact sum that one person alone touched, and solves those rows.",
    "masked-rating-recovery": "Reads masked ratings from uploads and takes them for ratings.",
    "masked-rating-ranking": "Orders a person’s items by masked rating; @0.3 is the best-liked 30 %.",
    "randomised-response": "Adds up what randomised answers about each item make likely.",
    "user-membership": "Asks of each released model which people’s updates explain its step.",
    "one-run-canaries": "Adds people with an update of their own, half of them left out, and looks for them.",
    "shuffle-linkability": "Guesses which shuffled reports are of one person, by order and by size.",
}


METRICS: Mapping[str, str] = {
    "tpr_at_1_percent": "found at 1 % false alarms",
    "advantage": "advantage over a coin",
    "epsilon_lower_bound": "ε at least (95 % sure)",
    "epsilon_fit": "ε as fitted (no proof)",
    "epsilon_claimed": "ε claimed for the rounds replayed",
    "largest_certifiable": "largest ε so few people could show",
}


def attack_results(main: Subject) -> str:
    """The section about attacks; without an audit it says how to make one."""
    run = main.audited
    if run is None or run.audit is None:
        if pooled(main.first.result):
            return "<p>All data lie in one place here: nothing is sent that could be attacked.</p>"
        if not main.first.result["privacy"]:
            return "<p>Nothing leaves a device: there is nothing to attack.</p>"
        many = len(main.runs) > 1
        return (
            f"<p>{'None of these runs' if many else 'This run'} was {'' if many else 'not '}attacked yet. "
            "<code>tacit audit RUN</code> replays a run with every observer listening, writes what they "
            "found into its folder, and the next report shows it here.</p>"
        )
    found = [line for line in run.audit["attacks"] if "skipped" not in line]
    skipped = [line for line in run.audit["attacks"] if "skipped" in line]
    which = f"<p>On the run of seed {run.result['seed']}.</p>" if len(main.runs) > 1 else ""
    return which + _verdicts(run.audit) + _picture(found) + _numbers(found) + _skipped(skipped)


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
        exposure.Leak(
            f"{line['name']}: {_metric(name)}",
            value,
            line["metrics"][f"prior_{name}"],
            line["metrics"].get(f"allowed_{name}"),
        )
        for line in found
        for name, value in line["metrics"].items()
        if f"prior_{name}" in line["metrics"] and not name.endswith(("error", "rmse"))
    ]
    leaks = [leak for leak in leaks if 0 <= leak.found <= 1 and 0 <= (leak.guessed or 0.0) <= 1]
    if not leaks:
        return ""
    worst = max(leaks, key=lambda leak: leak.found - (leak.guessed or 0.0))
    told = (
        f"{len(leaks)} measurements that are shares: a dot is what an attack finds, a bar what a guess from "
        "public knowledge finds. The widest gap: "
        f"{worst.label}, {worst.found:.3g} against {worst.guessed:.3g}."
    )
    if any(leak.allowed is not None for leak in leaks):
        told += " A triangle is the most that the claim allows: a dot far beyond it would speak against it."
    return exposure.leaks(leaks, told)


def _numbers(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "<p>No attack applies to this run.</p>"
    return f'<h3>What each attack found</h3><div class="cards">{"".join(map(_card, found))}</div>'


def _card(line: Mapping[str, Any]) -> str:
    """One attack: what it does, who could, and each number beside what a guess scores."""
    metrics, listed = line["metrics"], ""
    for name, value in metrics.items():
        if not name.startswith(("prior_", "allowed_")):
            near = (("guess", metrics.get(f"prior_{name}")), ("allowed", metrics.get(f"allowed_{name}")))
            said = ", ".join(f"{what} {other:.3g}" for what, other in near if other is not None)
            aside = f' <span class="muted">({said})</span>' if said else ""
            listed += f"<dt>{text(_metric(name))}</dt><dd>{value:.4g}{aside}</dd>"
    said = "".join(f"<p>{text(line[key])}</p>" for key in ("exceeds", "suspicious") if key in line)
    return (
        f'<div class="card {"open" if "exceeds" in line else "plain"}"><h4>{text(line["name"])}</h4>'
        f'<p class="muted">By {text(_who(line["observer"]))}. {text(DOES.get(line["name"], ""))}</p>{said}'
        f"<dl>{listed}</dl></div>"
    )


def _metric(name: str) -> str:
    return METRICS.get(name, name.replace("_", " "))


def _who(observer: str) -> str:
    return " and ".join(WHO.get(part, part) for part in observer.split(" and "))


def _skipped(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    listed = "".join(f"<li>{text(line['name'])}: {text(line['skipped'])}</li>" for line in lines)
    return f"<details><summary>Attacks that do not apply, and why</summary><ul>{listed}</ul></details>"
