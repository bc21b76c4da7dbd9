"""The bricks of a page: escaped text, tables with captions and scopes, sections, and the style sheet."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STYLE = """
:root { color-scheme: light dark;
  --paper: #fbfaf7; --raised: #ffffff; --ink: #1c2128; --muted: #535c68; --line: #d5d3cc; --soft: #efede6;
  --s1: #0b5cad; --s2: #b4490c; --s3: #0f7357; --s4: #80459b; --s5: #5b6470; --s6: #8c6d00;
  --bad: #a3231a; --bad-soft: #fbe9e7; --good: #0f6b45; --good-soft: #e4f3ec; --link: #0b5cad;
  --shade: rgb(0 0 0 / .22); }
@media (prefers-color-scheme: dark) { :root {
  --paper: #15181d; --raised: #1c2027; --ink: #e8eaed; --muted: #a9b1bc; --line: #3a414b; --soft: #242a32;
  --s1: #6cb6ff; --s2: #ffa06a; --s3: #52d2a7; --s4: #d3a8ff; --s5: #a8b0ba; --s6: #e3c04f;
  --bad: #ff9a8f; --bad-soft: #3a1f1d; --good: #6fdcae; --good-soft: #16322a; --link: #8cc4ff;
  --shade: rgb(0 0 0 / .6); } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
.skip { position: absolute; left: -999rem; top: 0; background: var(--raised); color: var(--link);
  padding: .6rem 1rem; z-index: 2; } .skip:focus { left: .5rem; top: .5rem; }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 0 0 .6rem; } h3 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; }
h1, h4, li, p, dd, figcaption { overflow-wrap: anywhere; }
p { margin: .4rem 0 .8rem; max-width: 46rem; } .muted, caption, figcaption { color: var(--muted); }
nav ul { list-style: none; padding: 0; margin: 1rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem .4rem; }
nav a { display: inline-block; padding: .3rem .7rem; border: 1px solid var(--line); border-radius: 99rem;
  text-decoration: none; font-size: .9rem; background: var(--raised); }
a { color: var(--link); } a:focus-visible, summary:focus-visible, [tabindex]:focus-visible {
  outline: 3px solid var(--s1); outline-offset: 2px; border-radius: .3rem; }
section { margin: 2.2rem 0; padding-top: 1.4rem; border-top: 1px solid var(--line); }
.figures { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  margin: 1.2rem 0 0; padding: 0; list-style: none; }
.figures li { background: var(--raised); border: 1px solid var(--line); border-radius: .6rem;
  padding: .7rem .9rem; }
.figures .name { display: block; color: var(--muted); font-size: .85rem; }
.figures .big { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.figures .small { display: block; color: var(--muted); font-size: .82rem; }
.cards { display: grid; gap: .9rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.card { background: var(--raised); border: 1px solid var(--line); border-left: .35rem solid var(--s5);
  border-radius: .6rem; padding: .9rem 1rem; }
.card.open { border-left-color: var(--bad); } .card.bound { border-left-color: var(--good); }
.card.weak { border-left-color: var(--s6); } .weak .epsilon { color: var(--s6); }
.card h3, .card h4 { margin: 0; font-size: 1.05rem; }
.card p { margin: .35rem 0; } .card ul { margin: .3rem 0; padding-left: 1.2rem; }
.card dl { margin: .5rem 0 0; display: grid; grid-template-columns: auto 1fr; gap: .1rem .8rem;
  font-size: .9rem; }
dd .muted { white-space: nowrap; } .card dt { color: var(--muted); } .card dd { margin: 0; }
.epsilon { font-size: 1.6rem; font-variant-numeric: tabular-nums; line-height: 1.2; }
.open .epsilon { color: var(--bad); } .bound .epsilon { color: var(--good); }
.alarm { background: var(--bad-soft); border: 1px solid var(--bad); color: var(--ink); border-radius: .6rem;
  padding: .7rem 1rem; } .calm { background: var(--good-soft); border: 1px solid var(--good);
  border-radius: .6rem; padding: .7rem 1rem; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; background:
  linear-gradient(90deg, var(--paper) 30%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(270deg, var(--paper) 30%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(90deg, var(--shade), transparent) 0 0 / .8rem 100% no-repeat scroll,
  linear-gradient(270deg, var(--shade), transparent) 100% 0 / .8rem 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
caption { text-align: left; padding: .2rem 0 .4rem; font-size: .9rem; }
caption span { display: inline-block; max-width: calc(100vw - 2.4rem); }
th, td { text-align: left; padding: .38rem 1rem .38rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } thead th { color: var(--muted); font-weight: 600; } tbody th { font-weight: 500; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: .8rem 0 1.2rem; } figure svg { display: block; width: 100%; height: auto; }
.plot { background: var(--raised); border: 1px solid var(--line); border-radius: .6rem; padding: .6rem; }
figcaption { font-size: .9rem; margin-top: .5rem; }
.narrow { display: none; } @media (max-width: 38rem) { .wide { display: none; } .narrow { display: block; }
  h1 { font-size: 1.5rem; } table { font-size: .86rem; } th, td { padding-right: .5rem; } }
details { margin: .6rem 0; } summary { cursor: pointer; padding: .3rem 0; }
pre { overflow-x: auto; background: var(--soft); border-radius: .5rem; padding: .8rem; margin: .4rem 0; }
code, pre { font-family: ui-monospace, "SF Mono", Consolas, monospace; font-size: .86rem; }
footer { color: var(--muted); font-size: .88rem; padding: 1.2rem 1.1rem 2.5rem; }
@media print { :root {
  --paper: #fff; --raised: #fff; --ink: #000; --muted: #444; --line: #bbb; --soft: #f4f4f4;
  --s1: #0b5cad; --s2: #b4490c; --s3: #0f7357; --s4: #80459b; --s5: #5b6470; --s6: #8c6d00;
  --bad: #a3231a; --good: #0f6b45; --link: #000; }
  nav, .skip { display: none; } header, main, footer { max-width: none; }
  details::details-content { content-visibility: visible; height: auto; }
  section { break-inside: auto; } figure, .card, tr { break-inside: avoid; } .scroll { overflow: visible; }
  table { font-size: .8rem; } td.number, th.number { white-space: normal; } thead { break-after: avoid; } }
"""


def text(value: object) -> str:
    """Escaped for a page.

    Example:
        >>> text("<b>")
        '&lt;b&gt;'
    """
    return html.escape(str(value))


@dataclass(frozen=True)
class Column:
    """A column's head, and whether it holds numbers."""

    name: str
    number: bool = False


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> str:
    """A table that says what it is; a row's first cell is its head; it scrolls alone on narrow screens."""
    marks = [' class="number"' if column.number else "" for column in columns]
    head = "".join(
        f'<th scope="col"{mark}>{text(column.name)}</th>' for mark, column in zip(marks, columns, strict=True)
    )
    body = ""
    for row in rows:
        first, *rest = row
        cells = "".join(f"<td{mark}>{text(cell)}</td>" for mark, cell in zip(marks[1:], rest, strict=True))
        body += f'<tr><th scope="row"{marks[0]}>{text(first)}</th>{cells}</tr>'
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table>'
        f"<caption><span>{text(caption)}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


@dataclass(frozen=True)
class Section:
    """A part of a page, which the navigation can jump to."""

    anchor: str
    title: str
    body: str

    def to_html(self) -> str:
        """The section's HTML."""
        return (
            f'<section id="{self.anchor}" aria-labelledby="{self.anchor}-title">'
            f'<h2 id="{self.anchor}-title">{text(self.title)}</h2>{self.body}</section>'
        )


def document(title: str, head: str, sections: Sequence[Section], foot: str) -> str:
    """The whole page: one file, no script, nothing fetched."""
    links = "".join(f'<li><a href="#{part.anchor}">{text(part.title)}</a></li>' for part in sections)
    body = "".join(part.to_html() for part in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#content">Skip to the results</a>'
        f'<header>{head}<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="content" tabindex="-1">{body}</main><footer>{foot}</footer></body></html>\n'
    )
