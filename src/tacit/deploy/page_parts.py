"""Small pieces of HTML, every text escaped; no script, no style of its own, nothing from elsewhere."""

import time
from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

TABS = (
    ("/", "My list"),
    ("/have", "What I have"),
    ("/learned", "What was learned"),
    ("/sent", "What left"),
    ("/settings", "Limits, pause, forget"),
)


class Row(NamedTuple):
    """One row of a table: cells that are HTML already."""

    cells: Sequence[str]


def page(title: str, here: str, who: str, body: str, said: str = "") -> str:
    """A whole document."""
    tabs = "".join(
        f'<li><a href="{path}"{" aria-current=page" if path == here else ""}>{escape(name)}</a></li>'
        for path, name in TABS
    )
    nav = f'<nav aria-label="Pages"><ul>{tabs}</ul></nav>' if here else ""
    told = f'<p class="said" role="status">{escape(said)}</p>' if said else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Tacit</title>"
        '<link rel="stylesheet" href="/style.css"><link rel="icon" href="data:,"></head><body>'
        '<a class="skip" href="#main">To the content</a>'
        f'<header><p class="name">Tacit on this device</p><p class="who">{escape(who)}</p>{nav}</header>'
        f'<main id="main"><h1>{escape(title)}</h1>{told}{body}</main>'
        "<footer><p>This page is served by this device to this device. It loads nothing from anywhere else, "
        "and nothing on it leaves.</p></footer></body></html>"
    )


def card(title: str, body: str, kind: str = "") -> str:
    """A framed part with a heading."""
    return f'<section class="card {kind}"><h2>{escape(title)}</h2>{body}</section>'


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and large values (values are HTML already)."""
    told = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{told}</dl>'


def table(
    caption: str, names: Sequence[str], rows: Sequence[Row], numbers: Sequence[int] = (), kind: str = ""
) -> str:
    """A table whose first column names the row; it scrolls sideways where it must."""
    mark = dict.fromkeys(numbers, ' class="n"')
    head = "".join(f'<th scope="col"{mark.get(at, "")}>{escape(name)}</th>' for at, name in enumerate(names))
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{cell}</th>' if at == 0 else f"<td{mark.get(at, '')}>{cell}</td>"
            for at, cell in enumerate(row.cells)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def form(action: str, token: str, inside: str, kind: str = "") -> str:
    """A form that posts, with the token that proves it came from this page."""
    return (
        f'<form method="post" action="{action}" class="{kind}">'
        f'<input type="hidden" name="token" value="{escape(token)}">{inside}</form>'
    )


def when(seconds: int | None) -> str:
    """A time, for people; empty where nobody knows.

    Example:
        >>> when(1_700_000_000)
        '2023-11-14 22:13'
    """
    if not seconds:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return ""


def bars(pairs: Sequence[tuple[str, int, int]], label: str) -> str:
    """A small chart of bytes sent and received, one pair of bars per round.

    Example:
        >>> bars([("round 0", 10, 5)], "bytes").count("<rect")
        2
    """
    width, height, most = 720, 120, max((max(up, down) for _, up, down in pairs), default=0)
    each = min(24.0, width / max(1, len(pairs)))
    drawn = []
    for place, (name, up, down) in enumerate(pairs):
        for kind, value, shift in (("up", up, 0.0), ("down", down, 0.42)):
            tall = (height - 6) * value / most if most else 0
            left = place * each + shift * each
            drawn.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{height - tall:.1f}" width="{0.38 * each:.1f}" '
                f'height="{tall:.1f}"><title>{escape(name)}: {value} bytes {kind}</title></rect>'
            )
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height + 2}" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="0" y1="{height}" x2="{width}" y2="{height}"/>{"".join(drawn)}</svg>'
        '<p class="key"><span class="up">sent</span><span class="down">received</span></p>'
    )


def further_links(path: str, query: str, start: int, total: int, shown: int) -> str:
    """Links to the parts of a long list before and after this one."""
    links = []
    if start > 0:
        links.append(f'<a href="{path}?q={quote(query)}&amp;from={max(0, start - shown)}">Newer</a>')
    if start + shown < total:
        links.append(f'<a href="{path}?q={quote(query)}&amp;from={start + shown}">Older</a>')
    return f"<p>{' · '.join(links)}</p>" if links else ""
