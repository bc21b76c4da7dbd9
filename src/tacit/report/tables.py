"""Results in a terminal: read from a run's result, never from live objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tacit.report.words import (
    chance,
    counted,
    epsilon_text,
    measured,
    rounds_text,
    sent_text,
    side,
    sized,
    spread_of,
    units_text,
)

SHOWN = 4  # metrics in a comparison; the JSON and the run folders have them all
FOLDED = 16  # letters of a method's name that stand in one line at least


def _table(*columns: str, right: Sequence[int] = (), whole: Sequence[int] = ()) -> Table:
    """A table; columns of numbers stand right, those that are whole never break a cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for place, name in enumerate(columns):
        justify = "right" if place in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=place in whole)
    return table


def _show(out: Console, title: str, table: Table) -> None:
    """The title as a line of its own, which may be longer than the table is wide."""
    out.print(title, style="bold")
    out.print(table)


def console() -> Console:
    """Where results go: stdout, as wide as the terminal, and wide enough in a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=120)


def print_result(result: Mapping[str, Any]) -> None:
    """A run's numbers, privacy and traffic."""
    out = console()
    head = f"{result['method']} on {result['data']}, split {result['split']}, seed {result['seed']}"
    numbers = _table("metric", "value", "± standard error", right=(1, 2))
    for name, value in result["metrics"].items():
        error = result.get("errors", {}).get(name)
        numbers.add_row(name, measured(value), "" if error is None else spread_of(error, value))
    _show(out, head, numbers)
    _print_privacy(out, result["privacy"])
    if result.get("paper_says"):
        out.print(f"the paper says: {result['paper_says']}\n")
    _print_traffic(out, result)
    for note in result.get("notes", ()):
        out.print(f"note: {note}")
    seconds = result["seconds"]
    parts = (f"{name.replace('_', ' ')} {value:.3g} s" for name, value in seconds.items())
    out.print(f"{rounds_text(result['rounds'])}; {', '.join(parts)}")
    run = result["run"]
    out.print(f"run folder: {run}\nreport: {run}/report.html", soft_wrap=True)
    if out.is_terminal:
        out.print(f"next: tacit report {run} --beside; tacit audit {run}; tacit recommend {run} --user ID")


def _print_privacy(out: Console, lines: Sequence[Mapping[str, Any]]) -> None:
    if not lines:
        out.print("privacy: nothing leaves a device\n")
        return
    table = _table("who looks", "unit", "guarantee", "because, or assuming")
    for line in lines:
        unit = f"{line['unit']}, {line['adjacency']}"
        why = "; ".join([*([line["because"]] if line.get("because") else []), *line["assumes"]])
        table.add_row(line["observer"], unit, epsilon_text(line), why)
    _show(out, "privacy over the whole run", table)
    if any(line["epsilon"] is None for line in lines):
        out.print("ε = ∞: nothing was proved; take it that this observer can learn everything\n")


def _print_traffic(out: Console, result: Mapping[str, Any]) -> None:
    traffic = result["traffic"]
    table = _table("per client and round", "bytes", right=(1,), whole=(1,))
    table.add_row("sent", sized(traffic["up_bytes_per_client_round"]))
    _add_parts(table, traffic, "up")
    if traffic["letter_bytes_per_client_round"]:
        table.add_row("  of which to other clients", sized(traffic["letter_bytes_per_client_round"]))
    table.add_row("received", sized(traffic["down_bytes_per_client_round"]))
    _add_parts(table, traffic, "down")
    if traffic.get("setup_bytes_per_client"):
        table.add_row("before the first round, once", sized(traffic["setup_bytes_per_client"]))
    if traffic.get("model_bytes"):
        table.add_row("the finished model, not in the sums", sized(traffic["model_bytes"]))
    table.add_row("all clients, whole run", sized(traffic["total_bytes"]))
    for way, key in (("sent", "numbers_up"), ("received", "numbers_down")):
        if traffic.get(key):
            table.add_row(f"numbers {way} by all, whole run", counted(traffic[key]))
    for name, value in traffic.get("published_units_per_round", {}).items():
        table.add_row(f"as the paper counts: {name.replace('_', ' ')}", units_text(name, value))
    _show(out, "what crossed the wires (encoded lengths)", table)


def _add_parts(table: Table, traffic: Mapping[str, Any], way: str) -> None:
    """Ids, values and headers of what crossed one way; letters are not taken apart."""
    whole = traffic[f"{way}_bytes_per_client_round"]
    ids, values = (traffic.get(f"{kind}_bytes_{way}_per_client_round", 0) for kind in ("id", "value"))
    if traffic["letter_bytes_per_client_round"] or not values:
        return
    if ids:
        table.add_row("  of which ids: what the values belong to", sized(ids))
    table.add_row("  of which values", sized(values))
    table.add_row("  of which headers and seals", sized(max(0.0, whole - ids - values)))


def print_methods(federated: Mapping[str, str], baselines: Mapping[str, str]) -> None:
    """The list of methods."""
    out = console()
    for title, entries in (
        ("federated methods", federated),
        ("baselines (all data in one place)", baselines),
    ):
        table = _table("name", "what it is", whole=(0,))
        for name, line in entries.items():
            table.add_row(name, line)
        _show(out, title, table)


def print_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """Any small table."""
    table = _table(*columns, right=right)
    for row in rows:
        table.add_row(*row)
    _show(console(), title, table)


def print_compared(title: str, found: Mapping[str, Any]) -> None:
    """A comparison, with as many metrics as the terminal is wide enough for; the others are named below."""
    out = console()
    names = list(dict.fromkeys(name for row in found["rows"] for name in row["metrics"]))
    shown = min(SHOWN, len(names))
    while shown > 1 and _wide(compared_rows(found, shown)) > out.width:
        shown -= 1
    columns, rows = compared_rows(found, shown)
    table = _table(*columns, right=range(1, len(columns)), whole=range(1, len(columns)))
    table.columns[0].min_width = min(FOLDED, max(len(row[0]) for row in rows))
    for row in rows:
        table.add_row(*row)
    _show(out, title, table)
    if names[shown:]:
        out.print(f"also measured, in compare.json and on the page: {', '.join(names[shown:])}")


def _wide(table: tuple[Sequence[str], Sequence[Sequence[str]]]) -> int:
    """How wide a table is: its longest cells, and a gap of two around each; the first column may fold."""
    columns, rows = table
    longest = [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    return min(longest[0], FOLDED) + sum(longest[1:]) + 2 * len(longest)


def compared_rows(table: Mapping[str, Any], shown: int = SHOWN) -> tuple[list[str], list[list[str]]]:
    """The columns and rows of a comparison."""
    names = list(dict.fromkeys(name for row in table["rows"] for name in row["metrics"]))
    names = names[:shown]
    columns = ["method", *names, "p", "ε server", "ε release", "sent/round", "train"]
    return columns, [_compared_row(row, names) for row in table["rows"]]


def _compared_row(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    cells = []
    for name in names:
        found = row["metrics"].get(name)
        spread = f" ± {spread_of(found['sd'], found['mean'])}" if found and found["sd"] is not None else ""
        cells.append(f"{measured(found['mean'])}{spread}" if found else "")
    sides = [side(row["privacy"], observer) for observer in ("server", "release")]
    return [
        row["method"],
        *cells,
        chance(row["p"]),
        *sides,
        sent_text(row),
        f"{row['seconds']['train']:.2f} s",
    ]
