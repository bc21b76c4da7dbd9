"""The frontier of accuracy, privacy and bytes as a page, picture files and a table."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.report.drawing import MUTED, SERIES, drawn, saved
from tacit.report.figures import shortened, sized_on_axis, titled
from tacit.report.markup import Column, Section, document, table, text
from tacit.report.words import chance, measured, sized, spread_of
from tacit.runtime.checkpoint import written_whole

DASHES = ("--", ":", "-.", (0, (6, 2)))
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
        spread = "" if value["sd"] is None else f" ± {spread_of(value['sd'], value['mean'])}"
        sides = [_side(point["epsilon"], side) for side in ("server", "release")]
        mark = "★" if point["frontier"] else ""
        lines.append(
            [mark, point["point"], f"{measured(value['mean'])}{spread}", chance(point["p"]), *sides,
             "all data" if point["pooled"] else sized(point["bytes"]), f"{point['seconds']:.2f} s"]
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
    several = found["seeds"] > 1
    seeds = f"{found['seeds']} seeds each" if several else "one seed"
    told = (
        f"{len(found['points'])} points, {seeds}; {primary} first against ε for whoever gets the model, then "
        f"against the bytes a person sends per round. Filled: the {best} that, by their means, no other "
        "beats in accuracy, ε and bytes at once."
    )
    told += " Bars: one standard deviation over seeds." if several else ""
    if all(point["epsilon"].get("server", 0.0) is None for point in found["points"]):
        told += " Against the server nothing is proved at any point (ε = ∞)."
    if any(point["pooled"] for point in found["points"]):
        told += " Lines across: what has all data in one place, which no device sends."
    head = (
        f'<h1>Accuracy, privacy, bytes</h1><p class="muted">{text(", ".join(_methods(found)))}: {seeds}.</p>'
    )
    against = (
        f"p: Student’s paired test on {primary} against {found['reference']}, over "
        + ("seeds" if found["pairs"] == "seeds" else "people (of these trained models alone)")
        + ", corrected for all points after Holm. ★: on the frontier. ε in a name is what the method was "
        "asked for; the columns are what was accounted for whole people over the whole run."
    )
    shown = [[*line[1:], line[0]] for line in lines]
    names = [*columns[1:], "on the frontier"]
    marked = [Column(name, number=name != "point") for name in names]
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


def _methods(found: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(point["method"] for point in found["points"]))


def _drawing(found: Mapping[str, Any]) -> Any:
    primary = found["primary"]
    points = [point for point in found["points"] if not point["pooled"]]
    across = [point for point in found["points"] if point["pooled"]]
    methods = [name for name in _methods(found) if any(point["method"] == name for point in points)]
    finite = sorted({spent(point) for point in points if math.isfinite(spent(point))} - {0.0})
    edge = (max(finite) if finite else 1.0) * 3

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        from matplotlib.ticker import LogLocator  # an extra, and slow to load

        left, right = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
        for number, method in enumerate(methods):
            own = [point for point in points if point["method"] == method]
            color, marker = SERIES[number % len(SERIES)], MARKERS[number % len(MARKERS)]
            for axes, where, line in ((left, _at(edge), "shrunk"), (right, _bytes, "asked_epsilon")):
                _dots(axes, own, where, line, primary, color, marker)
            style = {"marker": marker, "ms": 7, "mew": 1.6, "color": color, "ls": ""}
            left.plot([], [], label=shortened(method, 30), **style)
        for number, point in enumerate(across):
            style = {"color": MUTED, "lw": 1.4, "ls": DASHES[number % len(DASHES)]}
            for axes in (left, right):
                axes.axhline(point["metrics"][primary]["mean"], label=shortened(point["point"], 30), **style)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.margins(0.12)
            axes.set_title(titled(primary, upright=True))
        ends = [edge] if any(math.isinf(spent(point)) for point in points) else []
        ticks = spaced([*finite, *ends], 0.12 if narrow else 0.08)
        left.set_xticks(ticks, ["∞" if value == edge else f"{value:.3g}" for value in ticks])
        left.set_xlabel("ε for whoever gets the model")
        right.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        right.xaxis.set_major_formatter(lambda value, _: sized_on_axis(value))
        right.set_xlabel("sent per person and round")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 3)

    return draw


def spaced(ticks: Sequence[float], room: float) -> list[float]:
    """Of the ticks of a logarithmic axis those that are that share of it apart, the last one kept.

    Example:
        >>> spaced([1, 2, 2.1, 4, 1000], 0.05)
        [1, 2.1, 4, 1000]
    """
    if len(ticks) < 2:
        return list(ticks)
    least = room * math.log(ticks[-1] / ticks[0])
    kept: list[float] = []
    for tick in reversed(ticks):
        if not kept or math.log(kept[-1] / tick) >= least:
            kept.append(tick)
    return kept[::-1]


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
    line: str,
    primary: str,
    color: str,
    marker: str,
) -> None:
    """One method's points; those that differ in nothing but the axis are joined (``line`` names what not)."""
    for kind in dict.fromkeys(point[line] for point in points):
        joined = sorted((point for point in points if point[line] == kind), key=where)
        up = [point["metrics"][primary]["mean"] for point in joined]
        axes.plot([where(point) for point in joined], up, color=color, lw=1.2, alpha=0.6)
    for point in points:
        value, face = point["metrics"][primary], color if point["frontier"] else "none"
        at = ([where(point)], [value["mean"]])
        axes.errorbar(*at, yerr=[value["sd"] or 0.0], fmt="none", ecolor=MUTED, elinewidth=1)
        axes.plot(*at, marker=marker, ms=7, mew=1.6, color=color, markerfacecolor=face, ls="")
