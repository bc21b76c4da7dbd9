"""Results in a terminal: read from a run's result, never from live objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tacit.report.words import epsilon_text, sized, units_text

SHOWN = 4  # metrics in a comparison; the JSON and the run folders have them all


def _table(title: str, *columns: str, right: Sequence[int] = ()) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place in right else "left", overflow="fold")
    return table


def console() -> Console:
    """Where results go: stdout, as wide as the terminal, and wide enough in a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=120)


def print_result(result: Mapping[str, Any]) -> None:
    """A run's numbers, privacy and traffic."""
    out = console()
    head = f"{result['method']} on {result['data']}, split {result['split']}, seed {result['seed']}"
    numbers = _table(head, "metric", "value", "± standard error", right=(1, 2))
    for name, value in result["metrics"].items():
        error = result.get("errors", {}).get(name)
        numbers.add_row(name, f"{value:.4f}", "" if error is None else f"{error:.4f}")
    out.print(numbers)
    privacy = _table("privacy over the whole run", "who looks", "unit", "guarantee", "because, or assuming")
    for line in result["privacy"]:
        unit = f"{line['unit']}, {line['adjacency']}"
        why = "; ".join([*([line["because"]] if line.get("because") else []), *line["assumes"]])
        privacy.add_row(line["observer"], unit, epsilon_text(line), why)
    if result["privacy"]:
        out.print(privacy)
    else:
        out.print("privacy: nothing leaves a device\n")
    if result.get("paper_says"):
        out.print(f"the paper says: {result['paper_says']}\n")
    _print_traffic(out, result)
    for note in result.get("notes", ()):
        out.print(f"note: {note}")
    seconds = result["seconds"]
    parts = (f"{name.replace('_', ' ')} {value:.3g} s" for name, value in seconds.items())
    out.print(f"{result['rounds']} rounds; {', '.join(parts)}")
    out.print(f"run folder: {result['run']}\nreport: {result['run']}/report.html", soft_wrap=True)


def _print_traffic(out: Console, result: Mapping[str, Any]) -> None:
    traffic = result["traffic"]
    table = _table("what crossed the wires (encoded lengths)", "per client and round", "bytes", right=(1,))
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
            table.add_row(f"numbers {way} by all, whole run", f"{traffic[key] / 1e6:,.2f} M")
    for name, value in traffic.get("published_units_per_round", {}).items():
        table.add_row(f"as the paper counts: {name.replace('_', ' ')}", units_text(name, value))
    out.print(table)


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
        table = _table(title, "name", "what it is")
        for name, line in entries.items():
            table.add_row(name, line)
        out.print(table)


def print_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """Any small table."""
    table = _table(title, *columns, right=right)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def compared_rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The columns and rows of a comparison."""
    names = list(dict.fromkeys(name for row in table["rows"] for name in row["metrics"]))
    names = names[:SHOWN]
    columns = ["method", *names, "p", "ε server", "ε release", "sent/round", "train"]
    return columns, [_compared_row(row, names) for row in table["rows"]]


def _compared_row(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    cells = []
    for name in names:
        found = row["metrics"].get(name)
        spread = f" ± {found['sd']:.4f}" if found and found["sd"] is not None else ""
        cells.append(f"{found['mean']:.4f}{spread}" if found else "")
    guarantees = {line["observer"]: line for line in row["privacy"] if line["unit"] == "user"}
    sides = [_short(guarantees.get(observer)) for observer in ("server", "release")]
    p = "" if row["p"] is None else f"{row['p']:.2g}"
    sent = sized(row["traffic"]["up_bytes_per_client_round"])
    return [row["method"], *cells, p, *sides, sent, f"{row['seconds']['train']:.2f} s"]


def _short(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "–"
    return "∞" if line["epsilon"] is None else f"{line['epsilon']:.3g}"
