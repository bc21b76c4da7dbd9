"""What can be checked of a report without a browser: structure, colours, and that it asks for nothing."""

import itertools
import re
from html.parser import HTMLParser

import pytest

from tacit.report.markup import STYLE

KINDS = ("fresh", "beside", "promised", "frontier")


class Outline(HTMLParser):
    """The elements of a page in order, each with its attributes, its parents' names and its text."""

    VOID = ("meta", "br", "link", "img", "path", "use", "rect", "line", "wbr")

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "at": dict(attributes), "in": [one["tag"] for one in self._open], "text": ""}
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


def named(at):
    return at.get("aria-label") or at.get("aria-labelledby")


def pictured(at):
    return at.get("role") == "img" and named(at)


def scrolls(tag, at):
    return tag == "pre" or at.get("class") == "scroll"


def faults(text):
    """One line per fault."""
    page = Outline(text)
    found = [
        f"{len(page.all(tag))} of {tag}" for tag in ("h1", "main", "nav", "title") if len(page.all(tag)) < 1
    ]
    found += [f"several of {tag}" for tag in ("h1", "main") if len(page.all(tag)) > 1]
    (root,) = page.all("html")
    found += [] if root["at"].get("lang") else ["no language"]
    found += ["a script"] if page.all("script", "iframe", "object", "embed", "base", "form") else []
    ids = [element["at"]["id"] for element in page.elements if "id" in element["at"]]
    found += [f"twice the id {name}" for name in ids if ids.count(name) > 1]
    levels = [0, *(int(head["tag"][1]) for head in page.all("h1", "h2", "h3", "h4", "h5", "h6"))]
    found += [
        f"heading {below} after {above}" for above, below in itertools.pairwise(levels) if below > above + 1
    ]
    for element in page.elements:
        at, tag = element["at"], element["tag"]
        for name in ("aria-labelledby", "aria-describedby"):
            found += [f"{name} of nothing" for one in at.get(name, "").split() if one not in ids]
        for name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            link = at.get(name, "")
            if link and not link.startswith("data:") and link.removeprefix("#") not in ids:
                found.append(f"{tag} leads to {link}")
        wanted = {
            "a picture without a name": tag == "svg" and "svg" not in element["in"] and not pictured(at),
            "an image without words": tag == "img" and not at.get("alt"),
            "a head without scope": tag == "th" and not (at.get("scope") and element["text"].strip()),
            "a region without a name": (at.get("role") == "region" or tag == "nav") and not named(at),
            "scrolls without the keyboard": scrolls(tag, at) and at.get("tabindex") != "0",
        }
        found += [fault for fault, is_so in wanted.items() if is_so]
        found += ["jumps the queue"] if int(at.get("tabindex", 0)) > 0 else []
        found += ["an inline handler"] if any(name.startswith("on") for name in at) else []
    for tag, inner in (("table", "caption"), ("figure", "figcaption")):
        found += [] if len(page.all(tag)) == len(page.all(inner)) else [f"a {tag} without a {inner}"]
    found += [f"the style fetches: {url}" for url in re.findall(r"@import[^;]*|url\((?!#)[^)]*\)", text)]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_well_built_and_asks_for_nothing(page_of, kind):
    text = page_of(kind).read_text(encoding="utf-8")
    assert faults(text) == []
    assert len(text) < 1_500_000
    assert text.count("<svg") >= 2


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ('<html lang="en">', "<html>", "no language"),
        ("</main>", "</main><script></script>", "a script"),
        ("<h2", "<h1>x</h1><h2", "several of h1"),
        ("<h3", "<h5>x</h5><h3", "heading 5 after 2"),
        ('id="accuracy"', 'id="privacy"', "twice the id privacy"),
        ('href="#privacy"', 'href="https://example.org"', "a leads to https://example.org"),
        ('scope="row"', "", "a head without scope"),
        ('role="img"', "", "a picture without a name"),
        ("<caption>", "<p>", None),
        ("* {", "@import 'x.css'; * {", "the style fetches: @import 'x.css'"),
        ('tabindex="0"', 'tabindex="2"', "jumps the queue"),
        ("<footer>", '<footer onclick="x">', "an inline handler"),
    ],
)
def test_a_page_that_is_badly_built_is_noticed(page_of, good, bad, fault):
    text = page_of("fresh").read_text(encoding="utf-8")
    assert good in text
    if fault is None:  # not even balanced
        with pytest.raises(AssertionError):
            faults(text.replace(good, bad))
    else:
        assert fault in faults(text.replace(good, bad))


def test_everything_that_was_asked_for_is_there(page_of):
    """Each part that a reader of a whole report looks for."""
    text = page_of("beside").read_text(encoding="utf-8")
    titles = [element["text"] for element in Outline(text).all("h2")]
    assert titles == [
        "Accuracy", "Learning curve", "Privacy over the whole run", "Attacks, beside the claims",
        "What left the devices", "For whom it works", "Beside other methods", "Configuration and versions",
    ]  # fmt: skip
    for part in (
        "central twin", "local twin", "user-mean", "95 % bootstrap intervals", "light users", "rare items",
        "in each of 12 rounds", "Bytes by kind", "config.toml", "numpy", "The paper says", "ε = ∞", "2 seeds",
    ):  # fmt: skip
        assert part in text, part
    promised = page_of("promised").read_text(encoding="utf-8")
    for part in (
        "they may guess right",
        "It rests on:",
        "collude with the server",
        "No measurement exceeds",
        "δ",
    ):
        assert part in promised, part
    assert "--beside" in page_of("fresh").read_text(encoding="utf-8")


def palettes():
    """The colours of the page by scheme; paper takes what it does not name from the light one."""
    dark, paper = STYLE.index("@media (prefers-color-scheme: dark)"), STYLE.index("@media print")
    cut = {"light": STYLE[:dark], "dark": STYLE[dark : STYLE.index("* {")], "paper": STYLE[paper:]}
    told = {name: dict(re.findall(r"--([\w-]+): (#\w+)", part)) for name, part in cut.items()}
    return {**told, "paper": {**told["light"], **told["paper"]}}


def light(color):
    """Relative luminance, as WCAG 2 defines it."""
    wide = color.removeprefix("#") if len(color) == 7 else "".join(2 * letter for letter in color[1:])
    parts = [int(wide[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    parts = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_colours_stand_out_from_what_is_behind_them(scheme):
    assert contrast("#000000", "#fff") == pytest.approx(21)
    colors = palettes()[scheme]
    for behind in ("paper", "raised"):
        for words in ("ink", "muted", "link", "bad", "good"):
            assert contrast(colors[words], colors[behind]) >= 4.5, (words, behind)
        for series in range(1, 7):
            assert contrast(colors[f"s{series}"], colors[behind]) >= 3, (series, behind)
    assert contrast(colors["ink"], colors["soft"]) >= 4.5
    assert contrast(colors["ink"], colors.get("bad-soft", "#fbe9e7")) >= 4.5
    assert contrast(colors["ink"], colors.get("good-soft", "#e4f3ec")) >= 4.5


def test_every_attack_is_explained():
    from tacit.audit.suite import ATTACKS, RETRAINED
    from tacit.report.attacks import DOES

    assert list(DOES) == [*ATTACKS, *RETRAINED]
