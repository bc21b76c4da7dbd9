"""The pictures of a report's numbers: learning curves, accuracy with intervals, bytes, groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tacit.evaluate.intervals import Interval
from tacit.report.drawing import INK, MUTED, SERIES, drawn
from tacit.report.words import LOWER_IS_BETTER, sized

FEW = 25  # rounds that are drawn as dots too


@dataclass(frozen=True)
class Curve:
    """What one metric was after some rounds, and where other runs ended (drawn as lines across).

    ``each`` has the single runs behind a mean.
    """

    metric: str
    rounds: Sequence[int]
    values: Sequence[float]
    beside: Mapping[str, float]
    each: Sequence[Sequence[float]] = ()


def curves(found: Sequence[Curve], label: str, told: str) -> str:
    """Learning curves, one panel per metric."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        panels = _panels(figure, len(found), narrow=narrow)
        for axes, curve in zip(panels, found, strict=True):
            for values in curve.each:
                axes.plot(curve.rounds, values, color=SERIES[0], lw=0.8, alpha=0.45)
            style = {"color": SERIES[0], "marker": _dot(curve.rounds), "ms": 3.5, "lw": 2}
            axes.plot(curve.rounds, curve.values, label=label, **style)
            for number, (name, value) in enumerate(curve.beside.items()):
                color = SERIES[1 + number % (len(SERIES) - 1)]
                dashes = _DASHES[(number + number // (len(SERIES) - 1)) % len(_DASHES)]
                axes.axhline(value, color=color, lw=1.6, ls=dashes, label=shortened(name, 30))
            axes.set_title(titled(curve.metric, upright=True))
            axes.set_xlabel("round")
            axes.margins(x=0.02, y=0.12)
        handles, labels = panels[0].get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 3)

    beside = max((len(curve.beside) for curve in found), default=0)
    extra = 0.2 * math.ceil((beside + 1) / 3) if beside else 0.0
    height = 2.4 * len(found) + (0.22 * (beside + 1) if beside else 0.0)
    return drawn("curve", "Learning curve", told, draw, (2.9 * math.ceil(len(found) / 2) + extra, height))


def titled(metric: str, *, upright: bool = False) -> str:
    """A panel's title: the metric, and which way along its axis is better.

    Example:
        >>> titled("rmse"), titled("hr@10", upright=True)
        ('RMSE   ← better', 'HR@10   ↑ better')
    """
    lower = metric in LOWER_IS_BETTER
    if upright:
        return f"{metric.upper()}   {'↓' if lower else '↑'} better"
    return f"{metric.upper()}   {'← better' if lower else 'better →'}"


def _panels(figure: Any, many: int, *, narrow: bool, sizes: Sequence[int] = ()) -> list[Any]:
    """So many axes: one below the other on narrow pictures, two abreast on wide ones.

    ``sizes`` are the lines of each panel: taller panels hold more.
    """
    across = 1 if narrow else min(2, many)
    down = math.ceil(many / across)
    heights = [max(sizes[row * across : (row + 1) * across]) + 1 for row in range(down)] if sizes else None
    grid = figure.subplots(down, across, squeeze=False, height_ratios=heights)
    places = [axes for row in grid for axes in row]
    for axes in places[many:]:
        axes.set_visible(False)
    return places[:many]


_DASHES = ("--", ":", "-.", (0, (6, 2)), (0, (1, 2)))


@dataclass(frozen=True)
class Mark:
    """One line of a chart: a label, a value, maybe its interval, and whether it is the run in question.

    ``each`` has the single runs behind a mean.
    """

    label: str
    value: float
    interval: Interval | None = None
    main: bool = False
    each: Sequence[float] = ()


def forest(panels: Mapping[str, Sequence[Mark]], told: str) -> str:
    """Values with 95 % intervals, one panel per metric, one line per method."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        places = _panels(figure, len(panels), narrow=narrow)
        before: list[str] = []
        for number, (axes, (metric, marks)) in enumerate(zip(places, panels.items(), strict=True)):
            _forest(axes, metric, marks)
            labels = [mark.label for mark in marks]
            if number % 2 and not narrow and labels == before:
                axes.tick_params(labelleft=False)  # the panel to the left has the same
            before = labels

    lines = max(len(marks) for marks in panels.values())
    each = 0.75 + 0.27 * lines
    wide = each * math.ceil(len(panels) / min(2, len(panels)))
    return drawn("accuracy", "Accuracy with confidence intervals", told, draw, (wide, each * len(panels)))


def _forest(axes: Any, metric: str, marks: Sequence[Mark]) -> None:
    for place, mark in enumerate(marks):
        color = SERIES[0] if mark.main else MUTED
        if mark.interval is not None:
            ends = [mark.interval.low, mark.interval.high]
            axes.plot(ends, [place, place], color=color, lw=2.2, solid_capstyle="butt")
        strokes = {"marker": "|", "ms": 7, "mew": 1, "alpha": 0.7, "color": color, "ls": ""}
        axes.plot(mark.each, [place] * len(mark.each), **strokes)
        axes.plot(
            [mark.value], [place], marker="o" if mark.main else "D", ms=6 if mark.main else 5, color=color
        )
    main = next((mark for mark in marks if mark.main), None)
    if main is not None and len(marks) > 1:
        axes.axvline(main.value, color=SERIES[0], lw=0.9, ls=":")
    axes.set_yticks(range(len(marks)), [shortened(mark.label) for mark in marks])
    axes.set_ylim(len(marks) - 0.4, -0.6)
    _few_ticks(axes)
    axes.set_title(titled(metric))
    axes.grid(axis="y", visible=False)


def shortened(label: str, most: int = 22) -> str:
    """A label that fits beside a chart: its begin and its end, which tell settings and twins apart.

    Example:
        >>> shortened("fedrec++:rho=3, central twin")
        'fedrec++:rh…ntral twin'
    """
    if len(label) <= most:
        return label
    tail = (most - 1) // 2
    return f"{label[: most - 1 - tail]}…{label[-tail:]}"


def _few_ticks(axes: Any) -> None:
    """Numbers below an axis that never touch, however small they are."""
    axes.locator_params(axis="x", nbins=5)
    if max(map(abs, axes.get_xlim())) < 0.01:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")


def written(axes: Any, label: str, end: float, place: int) -> None:
    """A bar's number, right behind its end."""
    axes.annotate(
        label, (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9, color=INK
    )


def kinds(bars: Mapping[str, float], told: str) -> str:
    """Bytes of one person in one round, by kind."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        axes = figure.subplots()
        values = list(bars.values())
        top = max(values, default=1.0)
        colors = [SERIES[1] if not name.startswith("received") else SERIES[4] for name in bars]
        axes.barh(range(len(bars)), values, color=colors, height=0.62)
        for place, value in enumerate(values):
            axes.annotate(
                sized(value),
                (value, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        names = [
            name.replace(" from ", "\nfrom ").replace(" to ", "\nto ") if narrow else name for name in bars
        ]
        axes.set_yticks(range(len(bars)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, top * (1.45 if narrow else 1.18))
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)

    height = 0.5 + 0.34 * len(bars)
    return drawn("bytes", "Bytes per person and round, by kind", told, draw, (height, height * 1.25))


def flow(rounds: Sequence[int], sent: Sequence[float], received: Sequence[float], told: str) -> str:
    """Bytes of all people in each round, and so far."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        panels = _panels(figure, 2, narrow=narrow)
        for axes, title, summed in zip(
            panels, ("bytes in each round", "bytes so far"), (False, True), strict=True
        ):
            for name, values, color, dashes in (
                ("received by everybody", received, SERIES[4], "--"),
                ("sent by everybody", sent, SERIES[1], "-"),
            ):
                shown = list(accumulate(values)) if summed else values
                axes.plot(
                    rounds, shown, color=color, ls=dashes, lw=2, label=name, marker=_dot(rounds), ms=3.5
                )
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: sized_on_axis(value))
            axes.set_title(title)
            axes.set_xlabel("round")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 2)

    return drawn("flow", "Bytes by round", told, draw, (2.7, 4.9))


def sized_on_axis(count: float) -> str:
    """A number of bytes on an axis, without idle noughts."""
    number, unit = sized(count).split(" ")
    return f"{float(number):g} {unit}"


def _dot(rounds: Sequence[int]) -> str:
    return "o" if len(rounds) <= FEW else ""


def groups(panels: Mapping[str, Sequence[Mark]], told: str) -> str:
    """A metric for groups of people and of items, with standard errors."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        sizes = [len(marks) for marks in panels.values()]
        places = _panels(figure, len(panels), narrow=narrow, sizes=sizes)
        for axes, (metric, marks) in zip(places, panels.items(), strict=True):
            colors = [SERIES[2] if "users" in mark.label else SERIES[3] for mark in marks]
            axes.barh(range(len(marks)), [mark.value for mark in marks], color=colors, height=0.6)
            for place, mark in enumerate(marks):
                end = mark.value
                if mark.interval is not None:
                    low, high = mark.interval.low, mark.interval.high
                    axes.plot([low, high], [place, place], color=INK, lw=1.4)
                    end = max(end, high)
                written(axes, f"{mark.value:.3g}", end, place)
            axes.set_yticks(range(len(marks)), [mark.label for mark in marks])
            axes.invert_yaxis()
            axes.margins(x=0.2)
            _few_ticks(axes)
            axes.set_title(titled(metric))
            axes.grid(axis="y", visible=False)

    sizes = [len(marks) for marks in panels.values()]
    rows = [max(sizes[at : at + 2]) for at in range(0, len(sizes), 2)]
    heights = [sum(0.85 + 0.3 * lines for lines in found) for found in (rows, sizes)]
    return drawn("groups", "Accuracy by group", told, draw, (heights[0], heights[1]))
