"""The pictures of a report: learning curves, accuracy with intervals, bytes by kind, groups, attacks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tacit.evaluate.intervals import Interval
from tacit.report.drawing import INK, MUTED, SERIES, drawn
from tacit.report.words import sized

LOWER_IS_BETTER = ("rmse", "mae")
FEW = 25  # rounds that are drawn as dots too


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
        panels = _panels(figure, len(found), narrow=narrow)
        for axes, curve in zip(panels, found, strict=True):
            style = {"color": SERIES[0], "marker": _dot(curve.rounds), "ms": 3.5, "lw": 2}
            axes.plot(curve.rounds, curve.values, label=label, **style)
            for number, (name, value) in enumerate(curve.beside.items()):
                color = SERIES[1 + number % (len(SERIES) - 1)]
                axes.axhline(value, color=color, lw=1.6, ls=_DASHES[number % len(_DASHES)], label=name)
            axes.set_title(titled(curve.metric))
            axes.set_xlabel("round")
            axes.margins(x=0.02, y=0.12)
        handles, labels = panels[0].get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 3)

    beside = max((len(curve.beside) for curve in found), default=0)
    extra = 0.2 * math.ceil((beside + 1) / 3) if beside else 0.0
    height = 2.4 * len(found) + (0.22 * (beside + 1) if beside else 0.0)
    return drawn("curve", "Learning curve", told, draw, (2.9 * math.ceil(len(found) / 2) + extra, height))


def titled(metric: str) -> str:
    """A panel's title: the metric, and which way is better.

    Example:
        >>> titled("rmse"), titled("hr@10")
        ('RMSE   ← better', 'HR@10   better →')
    """
    return f"{metric.upper()}   {'← better' if metric in LOWER_IS_BETTER else 'better →'}"


def _panels(figure: Any, many: int, *, narrow: bool) -> list[Any]:
    """So many axes: one below the other on narrow pictures, two abreast on wide ones."""
    across = 1 if narrow else min(2, many)
    grid = figure.subplots(math.ceil(many / across), across, squeeze=False)
    places = [axes for row in grid for axes in row]
    for axes in places[many:]:
        axes.set_visible(False)
    return places[:many]


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
        for axes, (metric, marks) in zip(
            _panels(figure, len(panels), narrow=narrow), panels.items(), strict=True
        ):
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
    axes.set_title(titled(metric))
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


def flow(rounds: Sequence[int], sent: Sequence[float], received: Sequence[float], told: str) -> str:
    """Bytes of all people in each round, and so far."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        panels = _panels(figure, 2, narrow=narrow)
        for axes, title, summed in zip(panels, ("in each round", "so far"), (False, True), strict=True):
            for name, values, color, dashes in (
                ("received by everybody", received, SERIES[4], "--"),
                ("sent by everybody", sent, SERIES[1], "-"),
            ):
                shown = list(accumulate(values)) if summed else values
                axes.plot(
                    rounds, shown, color=color, ls=dashes, lw=2, label=name, marker=_dot(rounds), ms=3.5
                )
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: sized(value).replace(".00", ""))
            axes.set_title(title)
            axes.set_xlabel("round")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=1 if narrow else 2)

    return drawn("flow", "Bytes by round", told, draw, (2.7, 4.9))


def _dot(rounds: Sequence[int]) -> str:
    return "o" if len(rounds) <= FEW else ""


def groups(panels: Mapping[str, Sequence[Mark]], told: str) -> str:
    """A metric for groups of people and of items, with standard errors."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        for axes, (metric, marks) in zip(
            _panels(figure, len(panels), narrow=narrow), panels.items(), strict=True
        ):
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
            axes.set_title(titled(metric))
            axes.grid(axis="y", visible=False)

    lines = max(len(marks) for marks in panels.values())
    each = 0.85 + 0.3 * lines
    wide = each * math.ceil(len(panels) / 2)
    return drawn("groups", "Accuracy by group", told, draw, (wide, each * len(panels)))


@dataclass(frozen=True)
class Leak:
    """What an attack found, beside what a guess from public knowledge finds."""

    label: str
    found: float
    guessed: float | None


def leaks(found: Sequence[Leak], told: str) -> str:
    """Attacks as dumbbells: the guess, and what was found with the observer's own eyes."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        axes, keys = figure.subplots(), {}
        for place, leak in enumerate(found):
            if leak.guessed is not None:
                axes.plot([leak.guessed, leak.found], [place, place], color=MUTED, lw=1.6)
                bar = axes.plot([leak.guessed], [place], marker="|", ms=12, mew=2, color=MUTED, ls="")
                keys["guessed from what is public"] = bar[0]
            dot = axes.plot([leak.found], [place], marker="o", ms=7, color=SERIES[1], ls="")
            keys["found by the attack"] = dot[0]
            if narrow:
                axes.text(-0.02, place - 0.36, leak.label, fontsize=8, color=INK, va="center")
        names = [] if narrow else [shortened(leak.label, 60) for leak in found]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(found) - 0.4, -0.7)
        axes.set_xlim(-0.03, 1.03)
        axes.grid(axis="y", visible=False)
        figure.legend([*keys.values()], [*keys], loc="outside lower left", ncols=1 if narrow else 2)

    return drawn("attacks", "What attacks find", told, draw, (0.9 + 0.3 * len(found), 1 + 0.46 * len(found)))
