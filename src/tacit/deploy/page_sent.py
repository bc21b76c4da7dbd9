"""What left a device, as HTML: run by run and message by message, from its own ledger."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape

from tacit.account.claim import Observer
from tacit.deploy.about import RunAbout
from tacit.deploy.limits import Sent, Spent, spent
from tacit.deploy.page_parts import Row, bars, card, facts, table, when
from tacit.deploy.status import run_spent
from tacit.report.tables import sized

_WHO = {
    Observer.SERVER: "the server",
    Observer.PROXY: "the proxy",
    Observer.PEER: "another person's device",
    Observer.RELEASE: "anyone who is given the model",
}
_SHORT = {
    Observer.SERVER: "server",
    Observer.PROXY: "proxy",
    Observer.PEER: "peer",
    Observer.RELEASE: "model’s users",
}


def run_card(about: RunAbout, lines: Sequence[Sent]) -> str:
    """One run: rounds, bytes, and what each observer may have learned at most."""
    told = run_spent(about.run, lines, about.delta)
    rounds: dict[int, list[int]] = {}
    for line in lines:
        both = rounds.setdefault(line.round, [0, 0])
        both[0] += line.up_bytes
        both[1] += line.down_bytes
    drawn = [(_round(number), up, down) for number, (up, down) in sorted(rounds.items())][-60:]
    summary = facts(
        [
            ("rounds taken part in", str(told.rounds)),
            ("sent", sized(told.up_bytes)),
            ("received", sized(told.down_bytes)),
            (
                "with",
                f"<small>{escape(about.server or ', '.join(sorted({line.to for line in lines})))}</small>",
            ),
        ]
    )
    rows = [Row((_WHO[one.observer], _epsilon(one), _why(one))) for one in told.spent]
    promise = table(
        f"What each may have learned of you in this run, at most (δ = {about.delta:g})",
        ("Who", "ε", "What that means"),
        rows,
    )
    lost = (
        f"<p><strong>{told.lost}</strong> answers may have been given after this copy of the store was "
        "made. What they said is lost; they count here as promising nothing.</p>"
        if told.lost
        else ""
    )
    chart = bars(drawn, f"Bytes sent and received in each of {len(drawn)} rounds")
    note = (
        "<p class=key>Counted for somebody known to have taken part in these rounds: that a run draws its "
        "people in secret makes its own ε smaller, and is left out here.</p>"
    )
    return card(f"{about.method_name} · {about.run}", summary + chart + promise + note + lost)


def lines_card(
    lines: Sequence[Sent], abouts: Mapping[str, RunAbout], start: int, shown: int, further: str
) -> str:
    """Message by message, the newest first."""
    newest = list(reversed(lines))[start : start + shown]
    rows = [
        Row(
            (
                f"{_round(line.round)} <span class=id>{escape(line.run)}</span>",
                escape(line.exchange),
                escape(line.to) if line.known else "not in this copy",
                sized(line.up_bytes),
                sized(line.down_bytes),
                _each(line, abouts[line.run].delta),
                when(line.time),
            )
        )
        for line in newest
    ]
    names = ("Round", "Step", "To", "Sent", "Received", "ε of this message", "When (UTC)")
    listed = table(f"{len(lines)} messages, newest first", names, rows, (3, 4), kind="lines")
    return card("Message by message", listed + further)


def _round(number: int) -> str:
    return f"round {number}" if number >= 0 else "set-up"


def _epsilon(told: Spent) -> str:
    return '<strong class="none">∞</strong>' if math.isinf(told.value) else f"<b>{told.value:.3g}</b>"


def _why(told: Spent) -> str:
    if math.isinf(told.value):
        return f"nothing is promised: {escape(told.reason)}"
    unit = "everything you did" if told.unit.value == "user" else "any single entry"
    assumes = (
        f"<details><summary>It assumes</summary>{escape('; '.join(told.assumes))}</details>"
        if told.assumes
        else ""
    )
    return f"protects {unit} ({escape(told.adjacency.value)}){assumes}"


def _each(line: Sent, delta: float) -> str:
    """The epsilons of one message on its own, by observer."""
    told = [one for one in _alone(json.dumps(line.claim, sort_keys=True), delta) if one.value > 0]
    return " · ".join(f"{_epsilon(one)} {_SHORT[one.observer]}" for one in told) or "nothing to see"


@lru_cache(maxsize=256)
def _alone(claim: str, delta: float) -> tuple[Spent, ...]:
    return tuple(spent([json.loads(claim)], observer, delta) for observer in Observer)
