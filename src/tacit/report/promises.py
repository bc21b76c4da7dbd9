"""What each observer was promised over the whole run, in a picture, in plain words, and with its reasons."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.report import exposure
from tacit.report.markup import Column, table, text
from tacit.report.words import (
    best_guess,
    epsilon_text,
    meaning,
    mode_words,
    observer_name,
    observer_sees,
    of_100,
    told_apart,
    weak,
)

UNBOUNDED_MEANS = (
    "ε = ∞ means that nothing was proved for this observer. It does not say that everything is known to "
    "leak, only that nothing rules it out; what attacks do find stands further down."
)


def promised(result: Mapping[str, Any]) -> str:
    """The section about privacy."""
    lines = result["privacy"]
    if not lines:
        return "<p>Nothing leaves a device: no observer sees anything.</p>"
    cards = "".join(_card(line) for line in lines)
    unbounded = any(line["epsilon"] is None for line in lines)
    meant = f"<p>{text(UNBOUNDED_MEANS)}</p>" if unbounded else ""
    said = ""
    if result.get("paper_says"):
        said = (
            f"<h3>What the paper claims, beside what is true here</h3><p>The paper says: "
            f"“{text(result['paper_says'])}”.</p>"
        )
        rows = [(_who(line), epsilon_text(line), _because(line)) for line in lines]
        columns = [Column("who looks"), Column("what was proved"), Column("because")]
        said += table("What was proved for this run", columns, rows)
    return _picture(lines) + meant + f'<div class="cards">{cards}</div>{said}'


def _picture(lines: Sequence[Mapping[str, Any]]) -> str:
    """How often each observer may be right, where anything was proved; else there is no picture."""
    if all(line["epsilon"] is None for line in lines):
        return ""
    scales = [
        exposure.Scale(
            _who(line),
            1.0 if line["epsilon"] is None else best_guess(float(line["epsilon"]), float(line["delta"])),
            bounded=line["epsilon"] is not None,
            weak=weak(line),
        )
        for line in lines
    ]
    bounded = "; ".join(f"{one.label}: {of_100(one.most)}" for one in scales if one.bounded)
    told = (
        "How many of 100 guesses between two equally likely cases an observer can get right at most, "
        f"whatever else they know; tossing a coin gets 50. {bounded}."
    )
    if not all(one.bounded for one in scales):
        told += " Hatched: nothing was proved, so nothing keeps it below 100."
    return exposure.scales(scales, told)


def _who(line: Mapping[str, Any]) -> str:
    """The observer, and what is told apart where that is not a whole person."""
    name = observer_name(line["observer"])
    return name if line["unit"] == "user" else f"{name}, one interaction ({line['adjacency']})"


def _because(line: Mapping[str, Any]) -> str:
    return line.get("because") or mode_words(line.get("mode", "accounted"))


def _card(line: Mapping[str, Any]) -> str:
    unbounded = line["epsilon"] is None
    kind = "open" if unbounded else "weak" if weak(line) else "bound"
    number = "ε = ∞" if unbounded else f"ε = {line['epsilon']:.4g}"
    why = f"<p>Why: {text(line['because'])}.</p>" if unbounded and line.get("because") else ""
    rests = "".join(f"<li>{text(assumed)}</li>" for assumed in line["assumes"])
    rests = f"<p>It rests on:</p><ul>{rests}</ul>" if rests and not unbounded else ""
    unit, adjacency = told_apart(line["unit"], line["adjacency"])
    facts = {"unit": unit, "adjacency": adjacency}
    if not unbounded:
        facts |= {"δ": f"{line['delta']:g}", "counted": mode_words(line.get("mode", "accounted"))}
    listed = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
    return (
        f'<div class="card {kind}"><h3>{text(_who(line))}</h3>'
        f'<p class="muted">{text(observer_sees(line["observer"]))}</p><p class="epsilon">{number}</p>'
        f"<p>{text(meaning(line))}</p>{why}{rests}<dl>{listed}</dl></div>"
    )
