"""One self-contained HTML page per run: it reads the run's files and asks the network for nothing."""

import html
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.report.tables import epsilon_text, sized, units_text
from tacit.runtime.checkpoint import written_whole

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; } pre { overflow-x: auto; padding: .6rem; }
pre, .plot { background: var(--soft); border-radius: .4rem; } .plot svg { width: 100%; height: auto; }
@media print { body { max-width: none; } }
"""


def write_report(folder: Path) -> Path:
    """Write ``report.html`` into a finished run's folder."""
    result = json.loads((folder / "result.json").read_text("utf-8"))
    metrics = folder / "metrics.jsonl"
    curve = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()] if metrics.exists() else []
    config = (folder / "config.toml").read_text("utf-8")
    target = folder / "report.html"
    written_whole(target, lambda draft: draft.write_text(page(result, curve, config), encoding="utf-8"))
    return target


def page(result: Mapping[str, Any], curve: Sequence[Mapping[str, Any]], config: str) -> str:
    """The page's HTML.

    Example:
        >>> empty = {"privacy": [], "metrics": {}, "traffic": {}, "seconds": {}, "notes": []}
        >>> "no observer" in page({"method": "pop", "data": "demo", "split": "x", "seed": 1, **empty}, [], "")
        True
    """
    title = f"{result['method']} on {result['data']}"
    sections = [
        f"<h1>{_text(title)}</h1><p>Split {_text(result['split'])}, seed {result['seed']}.</p>",
        _section("Accuracy", _accuracy(result)),
        _section("Learning curve", _picture(curve)) if curve else "",
        _section("Privacy over the whole run", _privacy(result)),
        _section("What left the devices", _traffic(result)),
        _section("Time", _rows(("stage", "seconds"), result["seconds"].items())),
        _section("Notes", "<ul>" + "".join(f"<li>{_text(note)}</li>" for note in result["notes"]) + "</ul>"),
        _section("Configuration", f"<pre>{_text(config)}</pre>"),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)} · Tacit</title><style>{_STYLE}</style></head><body><main>"
        + "".join(sections)
        + "</main></body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(str(value))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{body}</section>"


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    table = [list(row) for row in rows]
    columns = list(zip(*table, strict=True)) or [()] * len(head)
    numeric = [all(isinstance(value, float | int) or value == "" for value in column) for column in columns]
    marks = [' class="number"' if is_number else "" for is_number in numeric]
    cells = "".join(
        f'<th scope="col"{mark}>{_text(name)}</th>' for mark, name in zip(marks, head, strict=True)
    )
    body = ""
    for row in table:
        body += (
            "<tr>"
            + "".join(f"<td{mark}>{_text(v)}</td>" for mark, v in zip(marks, row, strict=True))
            + "</tr>"
        )
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _accuracy(result: Mapping[str, Any]) -> str:
    errors = result.get("errors", {})
    rows = [
        (name, round(value, 4), round(errors[name], 4) if name in errors else "")
        for name, value in result["metrics"].items()
    ]
    return _rows(("metric", "value", "standard error over users"), rows)


def _privacy(result: Mapping[str, Any]) -> str:
    lines = []
    for line in result["privacy"]:
        why = "; ".join([*([line["because"]] if line.get("because") else []), *line["assumes"]])
        lines.append((line["observer"], f"{line['unit']}, {line['adjacency']}", epsilon_text(line), why))
    if not lines:
        return "<p>Nothing leaves a device: no observer sees anything.</p>"
    said = f"<p>The paper says: {_text(result['paper_says'])}</p>" if result.get("paper_says") else ""
    return _rows(("who looks", "unit, adjacency", "guarantee", "because, or assuming"), lines) + said


def _traffic(result: Mapping[str, Any]) -> str:
    traffic = dict(result["traffic"])
    units = traffic.pop("published_units_per_round", {})
    rows = [(name.replace("_", " "), sized(value)) for name, value in traffic.items()]
    rows += [
        (f"as the paper counts, {name.replace('_', ' ')}", units_text(name, value))
        for name, value in units.items()
    ]
    return _rows(("what", "how much"), rows)


def _picture(curve: Sequence[Mapping[str, Any]]) -> str:
    """The learning curve as inline SVG; without the plotting extra, as a table."""
    try:
        from matplotlib.figure import Figure  # an extra, and slow to load
    except ImportError:
        return _rows(
            ("round", *curve[0]["metrics"]), [(at["round"], *at["metrics"].values()) for at in curve]
        )
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for name in curve[0]["metrics"]:
        axes.plot(
            [at["round"] for at in curve],
            [at["metrics"][name] for at in curve],
            marker=".",
            label=name.upper(),
        )
    axes.set_xlabel("round")
    axes.set_ylabel("error on the held-out part")
    axes.legend()
    axes.grid(alpha=0.3)
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None})
    svg = drawing.getvalue()
    first, last = curve[0], curve[-1]
    said = ", ".join(f"{name} {value:.4f} at the end" for name, value in last["metrics"].items())
    span = f"from round {first['round']} to {last['round']}"
    caption = _text(f"Errors on the held-out part {span}: {said}. Shown, never selected on.")
    picture = svg[svg.index("<svg") :]
    return f'<figure class="plot" role="img" aria-label="{caption}">{picture}</figure><p>{caption}</p>'
