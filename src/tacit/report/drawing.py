"""Plots as inline SVG in the page's colours: real text, a title, a description, two widths."""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.report.markup import text

# The page's light colours: a picture file keeps them, a picture on a page gets the page's own in their place.
INK, MUTED, LINE = "#1c2128", "#535c68", "#d5d3cc"
SERIES = ("#0b5cad", "#b4490c", "#0f7357", "#80459b", "#5b6470", "#8c6d00")
_MEANT: Mapping[str, str] = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    **{color: f"var(--s{number})" for number, color in enumerate(SERIES, 1)},
}
Draw = Callable[[Any, bool], None]
WIDE, NARROW = 7.6, 3.7


def drawn(name: str, title: str, told: str, draw: Draw, heights: tuple[float, float] = (3.0, 3.2)) -> str:
    """A figure of a page: the picture twice (for wide and narrow screens) and its words below.

    Args:
        name: Unique on the page; ids inside the picture begin with it.
        title: The picture's accessible name.
        told: What it shows, in words, for those who do not see it; also its caption.
        draw: Draws on a matplotlib figure; the second argument says whether it is the narrow one.
        heights: Of the wide and the narrow picture, in inches.

    Returns:
        The figure's HTML; without matplotlib only the words.
    """
    caption = f"<figcaption>{text(told)}</figcaption>"
    try:
        pictures = [
            _svg(f"{name}-{kind}", title, told, draw, (width, height), narrow=kind == "narrow")
            for kind, width, height in (("wide", WIDE, heights[0]), ("narrow", NARROW, heights[1]))
        ]
    except ImportError:
        missing = 'Pictures need the plotting extra: pip install "tacit[plot]".'
        return f'<figure>{caption}<p class="muted">{text(missing)}</p></figure>'
    wide, narrow = pictures
    both = f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
    return f'<figure class="plot">{both}{caption}</figure>'


STYLE: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "hatch.color": MUTED,
}


def _svg(name: str, title: str, told: str, draw: Draw, size: tuple[float, float], *, narrow: bool) -> str:
    from matplotlib import rc_context  # an extra, and slow to load
    from matplotlib.figure import Figure

    settings: Any = {**STYLE, "svg.hashsalt": name}
    with rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure, narrow)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    return _themed(out.getvalue(), name, title, told)


def saved(draw: Draw, target: Path, size: tuple[float, float]) -> Path:
    """The same drawing as a picture file (SVG or PNG, by its name), in light colours on white."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {**STYLE, "svg.hashsalt": target.stem}
    with rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure, size[0] <= NARROW)
        target.parent.mkdir(parents=True, exist_ok=True)
        dated = {"Date": None} if target.suffix == ".svg" else {}
        figure.savefig(target, dpi=160, facecolor="white", metadata=dated)
    return target


def _themed(svg: str, name: str, title: str, told: str) -> str:
    """The picture with the page's colours and fonts, ids of its own, a title and a description."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{name}-\1"', svg)
    svg = re.sub(r"font-family: [^;\"]+;? ?", "", svg)  # the page's own letters
    svg = svg.replace("<!-- ", "<!--")
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    for color, meant in _MEANT.items():
        svg = svg.replace(color, meant)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    named = f'<title id="{name}-title">{text(title)}</title><desc id="{name}-desc">{text(told)}</desc>'
    labels = f' role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc">'
    return re.sub(r"\s*\n\s*", " ", head + labels + named + rest)
