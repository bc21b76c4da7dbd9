"""What left the devices: bytes by kind, by exchange, by round and in all."""

from collections.abc import Mapping
from typing import Any

from tacit.report import figures
from tacit.report.markup import Column, table
from tacit.report.saved import Saved
from tacit.report.words import sized, units_text

NUMBER = {"number": True}


def sent_by_devices(run: Saved) -> str:
    """The section about bytes; a method without exchanges has only the size of its data."""
    traffic = run.result["traffic"]
    if not run.crossed:
        total = sized(traffic["total_bytes"])
        return f"<p>No exchange took place; all data in one place are {total}.</p>"
    return _kinds(run) + _rounds(run) + _crossings(run) + _whole(traffic)


def _kinds(run: Saved) -> str:
    """One person in one round, by kind; set-up is told apart."""
    traffic = run.result["traffic"]
    trained = [part for part in run.crossed if not part.exchange.endswith("(set-up)")]
    people = max(1, sum(part.answered for part in trained))
    whole: dict[str, int] = {}
    for part in trained:
        for kind, count in part.kinds.items():
            whole[kind] = whole.get(kind, 0) + count
    whole = {kind: count for kind, count in whole.items() if count}
    if not whole:
        return ""
    told = (
        f"One person in one round, in the lengths of the encoded messages: "
        f"{sized(traffic['up_bytes_per_client_round'])} sent, "
        f"{sized(traffic['down_bytes_per_client_round'])} received; the whole run, all people: "
        f"{sized(traffic['total_bytes'])}."
    )
    rows = [(kind, sized(count / people), sized(count)) for kind, count in whole.items()]
    columns = [Column("kind"), Column("one person", **NUMBER), Column("in all", **NUMBER)]
    caption = "Bytes by kind, without set-up: of one person in one round, and of all people in the whole run"
    bars = {kind: count / people for kind, count in whole.items()}
    return figures.kinds(bars, told) + table(caption, columns, rows)


def _rounds(run: Saved) -> str:
    """All people together, round by round."""
    flow = run.flow
    if len(flow.rounds) < 2:
        return ""
    least, most = min(flow.sent), max(flow.sent)
    alike = most - least <= 0.01 * most
    each = f"about {sized(most)}" if alike else f"between {sized(least)} and {sized(most)}"
    told = (
        f"All people together sent {each} in each of {len(flow.rounds)} rounds, {sized(sum(flow.sent))} in "
        f"all, and received {sized(sum(flow.received))}."
    )
    return figures.flow(flow.rounds, flow.sent, flow.received, told)


def _crossings(run: Saved) -> str:
    rows = []
    for part in run.crossed:
        each = max(1, part.answered)
        kinds = part.kinds
        rows.append(
            (
                part.exchange,
                part.rounds,
                f"{part.answered:,}",
                sized(kinds["ids (which items)"] / each),
                sized(kinds["values"] / each),
                sized(kinds["headers and seals"] / each),
                sized(kinds["letters to other clients"] / each),
                sized((part.traffic.down + part.traffic.letters_in) / each),
                sized(part.traffic.total),
            )
        )
    names = ("times", "answers", "ids", "values", "headers", "letters", "received", "in all")
    columns = [Column("exchange"), *(Column(name, **NUMBER) for name in names)]
    return table("Every exchange: bytes per answering person, and in all", columns, rows)


def _whole(traffic: Mapping[str, Any]) -> str:
    rows = [
        ("all people, all rounds, both ways", sized(traffic["total_bytes"])),
        ("set-up, per person, once", sized(traffic.get("setup_bytes_per_client", 0))),
    ]
    if traffic.get("model_bytes"):
        rows.append(("the finished model, for a device that fetches it", sized(traffic["model_bytes"])))
    for name, value in traffic.get("published_units_per_round", {}).items():
        rows.append(
            (f"as the paper counts, {name.replace('_', ' ')}", f"{units_text(name, value)} per round")
        )
    return table("The whole run", [Column("what"), Column("how much", **NUMBER)], rows)
