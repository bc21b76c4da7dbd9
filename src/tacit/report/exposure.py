"""The pictures of what observers get: what was proved against them, and what attacks find."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.report.drawing import INK, MUTED, SERIES, drawn
from tacit.report.figures import shortened, written
from tacit.report.words import of_100


@dataclass(frozen=True)
class Scale:
    """How many of an observer's guesses may be right at most, as a share; 1 where nothing was proved."""

    label: str
    most: float
    bounded: bool
    weak: bool = False


def scales(found: Sequence[Scale], told: str) -> str:
    """What was proved, on a scale from tossing a coin to certainty."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        axes = figure.subplots()
        for place, scale in enumerate(found):
            color = SERIES[5] if scale.weak else SERIES[2]
            style = {"color": color} if scale.bounded else {"color": "none", "hatch": "///", "ec": MUTED}
            axes.barh(place, 100 * scale.most - 50, left=50, height=0.55, **style)
            label = of_100(scale.most) if scale.bounded else "∞"
            written(axes, label, 100 * scale.most, place)
            if narrow:
                axes.text(50, place - 0.42, scale.label, fontsize=8, color=INK, va="center")
        names = [] if narrow else [shortened(scale.label, 56) for scale in found]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(found) - 0.5, -0.7)
        axes.set_xlim(50, 106)
        axes.set_xticks([50, 60, 70, 80, 90, 100])
        axes.set_xlabel(
            "right guesses of 100, at most" if narrow else "right guesses of 100, at most (50: a coin)"
        )
        axes.grid(axis="y", visible=False)

    return drawn("promises", "What was proved", told, draw, (0.8 + 0.36 * len(found), 0.9 + 0.5 * len(found)))


@dataclass(frozen=True)
class Leak:
    """What an attack found, beside what a guess from public knowledge finds, and what a claim allows."""

    label: str
    found: float
    guessed: float | None
    allowed: float | None = None


def leaks(found: Sequence[Leak], told: str) -> str:
    """Attacks as dumbbells: the guess, and what was found with the observer's own eyes."""

    def draw(figure: Any, narrow: bool) -> None:  # noqa: FBT001 - the drawing's own signature
        axes, keys = figure.subplots(), {}
        for place, leak in enumerate(found):
            if leak.guessed is not None:
                axes.plot([leak.guessed, leak.found], [place, place], color=MUTED, lw=1.6)
                bar = axes.plot([leak.guessed], [place], marker="|", ms=12, mew=2, color=MUTED, ls="")
                keys["guessed from what is public"] = bar[0]
            if leak.allowed is not None:
                mark = axes.plot([leak.allowed], [place], marker="<", ms=7, color=SERIES[2], ls="")
                keys["the most that the claim allows"] = mark[0]
            dot = axes.plot([leak.found], [place], marker="o", ms=7, color=SERIES[1], ls="")
            keys["found by the attack"] = dot[0]
            if narrow:
                axes.text(-0.02, place - 0.36, leak.label, fontsize=8, color=INK, va="center")
        names = [] if narrow else [shortened(leak.label, 60) for leak in found]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(found) - 0.4, -0.7)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("share (1: all)")
        axes.grid(axis="y", visible=False)
        figure.legend([*keys.values()], [*keys], loc="outside lower left", ncols=1 if narrow else 3)

    return drawn(
        "attacks", "What attacks find", told, draw, (1.1 + 0.3 * len(found), 1.4 + 0.46 * len(found))
    )
