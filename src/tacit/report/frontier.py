"""The frontier of accuracy, privacy and bytes as a page, picture files and a table."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.report.drawing import MUTED, SERIES, drawn, saved
from tacit.report.markup import Column, Section, document, table, text
from tacit.report.words import LOWER_IS_BETTER, sized
from tacit.runtime.checkpoint import written_whole

MARKERS = ("o", "s", "D", "^", "v", "P")


def write_frontier(found: Mapping[str, Any], out: Path) -> list[Path]:
    """``frontier.html``, and ``frontier.svg`` and ``frontier.png`` where the plotting extra is installed."""
    html = out / "frontier.html"
    whole = page(found)
    written_whole(html, lambda draft: draft.write_text(whole, encoding="utf-8"))
    try:
        pictures = [saved(_drawing(found), out / f"frontier.{kind}", (9.0, 4.2)) for kind in ("svg", "png")]
    except ImportError:
        pictures = []
    return [html, *pictures]


def rows(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The table: a star marks the points that no other beats in everything."""
    primary = found["primary"]
    columns = ["", "point", primary, "p", "ε server", "ε release", "sent/round", "train"]
    lines = []
    for point in found["points"]:
        value = point["metrics"][primary]
        spread = "" if value["sd"] is None else f" ± {value['sd']:.4f}"
        p = "" if point["p"] is None else f"{point['p']:.2g}"
        sides = [_side(point["epsilon"], side) for side in ("server", "release")]
        mark = "★" if point["frontier"] else ""
        lines.append(
            [mark, point["point"], f"{value['mean']:.4f}{spread}", p, *sides, sized(point["bytes"]),
             f"{point['seconds']:.2f} s"]
        )  # fmt: skip
    return columns, lines


def _side(epsilon: Mapping[str, float | None], side: str) -> str:
    if side not in epsilon:
        return "–"
    value = epsilon[side]
    return "∞" if value is None else f"{value:.3g}"


def page(found: Mapping[str, Any]) -> str:
    """The page: the picture, the table, what was refused."""
    columns, lines = rows(found)
    primary = found["primary"]
    best = sum(1 for point in found["points"] if point["frontier"])
    told = (
        f"{len(found['points'])} points, {found['seeds']} seed(s) each; left {primary} against ε for whoever "
        f"gets the model, right against the bytes a person sends per round. Filled: the {best} points no "
        "other beats in accuracy, ε and bytes at once. Bars: one standard deviation over seeds."
    )
    head = "<h1>Accuracy, privacy, bytes</h1>"
    against = (
        f"p: paired test on {primary} against {found['reference']}, Holm’s correction for all points; over "
        "seeds from five seeds on, over people below (then of these trained models alone)."
    )
    shown = [[*line[1:], line[0]] for line in lines]
    names = [*columns[1:], "on the frontier"]
    marked = [Column(name, number=name not in {"point"}) for name in names]
    sections = [
        Section(
            "picture", "The frontier", drawn("frontier", "The frontier", told, _drawing(found), (3.8, 6.2))
        ),
        Section("numbers", "In numbers", table("Every point", marked, shown) + f"<p>{text(against)}</p>"),
    ]
    if found["refused"]:
        listed = "".join(f"<li>{text(one['point'])}: {text(one['why'])}</li>" for one in found["refused"])
        sections.append(Section("refused", "Points that do not exist", f"<ul>{listed}</ul>"))
    return document(
        "Accuracy, privacy, bytes · Tacit", head, sections, "<p>Made by Tacit from finished runs.</p>"
    )


def _drawing(found: Mapping[str, Any]) -> Any:
    points: Sequence[Mapping[str, Any]] = found["points"]
    primary = found["primary"]
    methods = list(dict.fromkeys(point["method"] for point in points))
    finite = sorted({spent(point) for point in points if math.isfinite(spent(point))} - {0.0})
    edge = (max(finite) if finite else 1.0) * 3

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        left, right = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
        for number, method in enumerate(methods):
            own = [point for point in points if point["method"] == method]
            color, marker = SERIES[number % len(SERIES)], MARKERS[number % len(MARKERS)]
            for axes, where in ((left, _at(edge)), (right, _bytes)):
                _dots(axes, own, where, primary, color, marker, method)
        left.set_xscale("log")
        ticks = [*finite, edge]
        left.set_xticks(ticks, [*(f"{value:.3g}" for value in finite), "∞"])
        left.minorticks_off()
        left.set_xlabel("ε for whoever gets the model")
        right.set_xscale("log")
        right.set_xlabel("bytes sent per person and round")
        better = "smaller is better" if primary in LOWER_IS_BETTER else "larger is better"
        left.set_title(f"{primary.upper()} ({better})")
        left.margins(0.12)
        right.margins(0.12)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 3)

    return draw


def spent(point: Mapping[str, Any]) -> float:
    """The epsilon against whoever gets the model; infinite where nothing was proved.

    Example:
        >>> spent({"epsilon": {"server": None, "release": 2.0}}), spent({"epsilon": {}})
        (2.0, 0.0)
    """
    if not point["epsilon"]:
        return 0.0
    value = point["epsilon"].get("release", point["epsilon"].get("server"))
    return math.inf if value is None else float(value)


def _at(edge: float) -> Any:
    return lambda point: min(max(spent(point), 1e-3), edge)


def _bytes(point: Mapping[str, Any]) -> float:
    return max(1.0, float(point["bytes"]))


def _dots(
    axes: Any,
    points: Sequence[Mapping[str, Any]],
    where: Any,
    primary: str,
    color: str,
    marker: str,
    label: str,
) -> None:
    ordered = sorted(points, key=where)
    across = [where(point) for point in ordered]
    up = [point["metrics"][primary]["mean"] for point in ordered]
    spreads = [point["metrics"][primary]["sd"] or 0.0 for point in ordered]
    if len({*across}) > 1:
        axes.plot(across, up, color=color, lw=1.2, alpha=0.6)
    axes.errorbar(across, up, yerr=spreads, fmt="none", ecolor=MUTED, elinewidth=1)
    for place, point in enumerate(ordered):
        face = color if point["frontier"] else "none"
        told = label if place == 0 else None
        style = {"marker": marker, "ms": 7, "mew": 1.6, "color": color, "markerfacecolor": face, "ls": ""}
        axes.plot([across[place]], [up[place]], label=told, **style)
