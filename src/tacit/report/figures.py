"""The pictures of a report: learning curves, accuracy with intervals, bytes by kind, groups, attacks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.evaluate.intervals import Interval
from tacit.report.drawing import INK, MUTED, SERIES, drawn
from tacit.report.words import sized

LOWER_IS_BETTER = ("rmse", "mae")


@dataclass(frozen=True)
class Curve:
    """What one metric was after some rounds, and where other runs ended (drawn as lines across)."""

    metric: str
    rounds: Sequence[int]
    values: Sequence[float]
    beside: Mapping[str, float]


def curves(found: Sequence[Curve], label: str, told: str) -> str:
    """Learning curves, one panel per metric."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        many = len(found)
        panels = figure.subplots(many, 1) if narrow else figure.subplots(1, many)
        for axes, curve in zip([panels] if many == 1 else panels, found, strict=True):
            marker = "o" if len(curve.rounds) <= 25 else ""
            axes.plot(curve.rounds, curve.values, color=SERIES[0], marker=marker, ms=3.5, lw=2, label=label)
            for number, (name, value) in enumerate(curve.beside.items()):
                color = SERIES[1 + number % (len(SERIES) - 1)]
                axes.axhline(value, color=color, lw=1.6, ls=_DASHES[number % len(_DASHES)], label=name)
            better = "smaller is better" if curve.metric in LOWER_IS_BETTER else "larger is better"
            axes.set_title(f"{curve.metric.upper()} ({better})")
            axes.set_xlabel("round")
            axes.margins(x=0.02, y=0.12)
        axes = panels if many == 1 else panels[0]
        handles, labels = axes.get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 3)

    beside = max((len(curve.beside) for curve in found), default=0)
    extra = 0.2 * math.ceil((beside + 1) / 3) if beside else 0.0
    height = 2.4 * len(found) + (0.22 * (beside + 1) if beside else 0.0)
    return drawn("curve", "Learning curve", told, draw, (2.9 + extra, height))


_DASHES = ("--", ":", "-.", (0, (6, 2)), (0, (1, 2)))


@dataclass(frozen=True)
class Mark:
    """One line of a chart: a label, a value, maybe its interval, and whether it is the run in question."""

    label: str
    value: float
    interval: Interval | None = None
    main: bool = False


def forest(panels: Mapping[str, Sequence[Mark]], told: str) -> str:
    """Values with 95 % intervals, one panel per metric, one line per method."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        across = 1 if narrow else min(2, len(panels))
        down = math.ceil(len(panels) / across)
        grid = figure.subplots(down, across, squeeze=False)
        places = [axes for row in grid for axes in row]
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        for axes, (metric, marks) in zip(places, panels.items(), strict=False):
            _forest(axes, metric, marks)

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
        axes.plot(
            [mark.value], [place], marker="o" if mark.main else "D", ms=6 if mark.main else 5, color=color
        )
    main = next((mark for mark in marks if mark.main), None)
    if main is not None and len(marks) > 1:
        axes.axvline(main.value, color=SERIES[0], lw=0.9, ls=":")
    axes.set_yticks(range(len(marks)), [shortened(mark.label) for mark in marks])
    axes.set_ylim(len(marks) - 0.4, -0.6)
    better = "← better" if metric in LOWER_IS_BETTER else "better →"
    axes.set_title(f"{metric.upper()}   {better}")
    axes.grid(axis="y", visible=False)


def shortened(label: str, most: int = 22) -> str:
    """A label that fits beside a chart.

    Example:
        >>> shortened("fedrec++:rho=3, central twin, long")
        'fedrec++:rho=3, centr…'
    """
    return label if len(label) <= most else label[: most - 1] + "…"


def _written(axes: Any, label: str, end: float, place: int) -> None:
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


def groups(panels: Mapping[str, Sequence[Mark]], told: str) -> str:
    """A metric for groups of people and of items, with standard errors."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        across = 1 if narrow else len(panels)
        grid = figure.subplots(math.ceil(len(panels) / across), across, squeeze=False)
        places = [axes for row in grid for axes in row]
        for axes, (metric, marks) in zip(places, panels.items(), strict=False):
            colors = [SERIES[2] if "users" in mark.label else SERIES[3] for mark in marks]
            axes.barh(range(len(marks)), [mark.value for mark in marks], color=colors, height=0.6)
            for place, mark in enumerate(marks):
                end = mark.value
                if mark.interval is not None:
                    low, high = mark.interval.low, mark.interval.high
                    axes.plot([low, high], [place, place], color=INK, lw=1.4)
                    end = max(end, high)
                _written(axes, f"{mark.value:.3g}", end, place)
            axes.set_yticks(range(len(marks)), [mark.label for mark in marks])
            axes.invert_yaxis()
            axes.margins(x=0.2)
            better = "smaller is better" if metric in LOWER_IS_BETTER else "larger is better"
            axes.set_title(f"{metric.upper()} ({better})")
            axes.grid(axis="y", visible=False)

    lines = max(len(marks) for marks in panels.values())
    each = 0.85 + 0.3 * lines
    return drawn("groups", "Accuracy by group", told, draw, (each, each * len(panels)))


@dataclass(frozen=True)
class Leak:
    """What an attack found, beside what a guess from public knowledge finds."""

    label: str
    found: float
    guessed: float | None


def leaks(found: Sequence[Leak], told: str) -> str:
    """Attacks as dumbbells: the guess, and what was found with the observer's own eyes."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        axes = figure.subplots()
        for place, leak in enumerate(found):
            if leak.guessed is not None:
                axes.plot([leak.guessed, leak.found], [place, place], color=MUTED, lw=1.6)
                axes.plot([leak.guessed], [place], marker="|", ms=12, mew=2, color=MUTED)
            axes.plot([leak.found], [place], marker="o", ms=7, color=SERIES[1])
        width = 24 if narrow else 60
        axes.set_yticks(range(len(found)), [shortened(leak.label, width) for leak in found])
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("share found (dot) beside a guess (bar)")
        axes.grid(axis="y", visible=False)

    height = 0.9 + 0.3 * len(found)
    return drawn("attacks", "What attacks find", told, draw, (height, height))
