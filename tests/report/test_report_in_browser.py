"""Reports in a real browser: Chromium without a head, on a wide screen, on a phone, in light and in dark.

Pictures of every section are kept for people to look at: in the folder that ``TACIT_ARTEFACTS`` names, else
in pytest's own temporary folder. What no picture shows, ``accessibility.js`` checks in the page itself.
"""

import base64
import json
import os
import shutil
from pathlib import Path

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
CHECKS = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")
KINDS = ("fresh", "beside", "promised", "frontier")
SCREENS = {"wide": (1200, 900), "phone": (360, 740)}
COLOURS = ("light", "dark")


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("the browser test needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory):
    """Where pictures go."""
    asked = os.environ.get("TACIT_ARTEFACTS")
    folder = Path(asked) if asked else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def seen(browser, page, screen="wide", colours="light", media=""):
    """Open a page on a screen."""
    width, height = SCREENS[screen]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": colours}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    browser.get(page.as_uri())


def boxes(browser):
    """Where the head and each section are, by name."""
    return browser.execute_script(
        "return [...document.querySelectorAll('body > header, section')].map((part) => {"
        "const box = part.getBoundingClientRect();"
        "return [part.id || 'head', {x: 0, y: box.top + scrollY, width: innerWidth, height: box.height}]})"
    )


def pictured(browser, box):
    """A picture of a part of the page, as PNG."""
    options = {"captureBeyondViewport": True, "clip": {**box, "scale": 1}}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("colours", COLOURS)
def test_it_reads_well_and_is_pictured(browser, page_of, artefacts, kind, screen, colours):
    page = page_of(kind)
    for log in ("performance", "browser"):
        browser.get_log(log)  # what went before is forgotten
    seen(browser, page, screen, colours)
    for name, box in boxes(browser):
        picture = pictured(browser, box)
        assert len(picture) > 2000
        (artefacts / f"{kind}-{screen}-{colours}-{name}.png").write_bytes(picture)
    assert browser.execute_script(CHECKS) == []

    assert browser.get_log("browser") == []  # no errors, no warnings
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert page.as_uri() in asked  # the log does see requests
    assert [url for url in asked if url != page.as_uri() and not url.startswith("data:")] == []


FOCUS = """
const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
return [at.tagName, at.getAttribute("href") || at.getAttribute("aria-label") || at.textContent, seen, inside]
"""
REACHABLE = """
return [...document.querySelectorAll("a[href], summary, [tabindex='0']")]
  .filter((part) => part.checkVisibility({contentVisibilityAuto: true}) && part.getClientRects().length)
  .map((e) => [e.tagName, e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent])
"""


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser, page_of):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    seen(browser, page_of("beside"))
    every = browser.execute_script(REACHABLE)
    reached = []
    for _ in every:
        ActionChains(browser).send_keys(Keys.TAB).perform()
        tag, name, outlined, inside = browser.execute_script(FOCUS)
        assert outlined, f"{tag} {name} does not show that it has the focus"
        assert inside, f"{tag} {name} has the focus out of sight"
        reached.append([tag, name])
    assert reached == every
    assert every[0][1] == "#content"  # the first key press offers to skip the navigation

    seen(browser, page_of("beside"))
    ActionChains(browser).send_keys(Keys.TAB).send_keys(Keys.ENTER).perform()
    assert browser.execute_script("return document.activeElement.id") == "content"
    details = browser.find_element("css selector", "details")
    assert details.get_attribute("open") is None
    browser.execute_script("arguments[0].querySelector('summary').focus()", details)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert details.get_attribute("open") is not None


@pytest.mark.parametrize("kind", KINDS)
def test_on_paper_it_is_dark_on_white_and_whole(browser, page_of, artefacts, kind):
    seen(browser, page_of(kind), colours="dark", media="print")
    look = "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    assert browser.execute_script(look) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    hidden = "return [...document.querySelectorAll('nav, .skip')].every((e) => !e.checkVisibility())"
    assert browser.execute_script(hidden)
    folded = (
        "return [...document.querySelectorAll('details > :not(summary)')]"
        ".map((part) => part.checkVisibility({contentVisibilityAuto: true}))"
    )
    assert all(browser.execute_script(folded))  # paper cannot be unfolded
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "paperWidth": 8.27})
    paper = base64.b64decode(printed["data"])
    assert paper.startswith(b"%PDF")
    (artefacts / f"{kind}-paper.pdf").write_bytes(paper)


def test_the_checks_do_find_faults(browser, page_of, tmp_path):
    """The same page, spoilt in many ways: a check that cannot fail proves nothing."""
    whole = page_of("beside").read_text(encoding="utf-8")
    spoils = {
        "does not say its language": ('<html lang="en">', "<html>"),
        "times h1, not 1": ("<h2", "<h1>x</h1><h2"),
        "heading after level 2": ("<h3", "<h5>x</h5><h3"),
        "twice the id accuracy": ("<p", '<p id="accuracy"></p><p'),
        "aria-labelledby of nothing": ('aria-labelledby="privacy-title"', 'aria-labelledby="nobody"'),
        "a link to nothing": ('href="#privacy"', 'href="#nowhere"'),
        "a picture without words": ('role="img" aria-labelledby', 'role="img" data-was'),
        "a figure without a caption": ("<figcaption>", "<figcaption></figcaption><p>"),
        "a head without a scope": ('scope="row"', ""),
        "a table without a caption": ("<caption>", "<caption></caption><caption hidden>"),
        "not with the keyboard": ('class="scroll" role="region" tabindex="0"', 'class="scroll"'),
        "wide on a screen": ("<p", '<p style="width: 90rem">x</p><p'),
        "contrast 1.": ("--muted: #535c68", "--muted: #e5e5e5"),
        "outside": ("<footer>", "<p>lost</p><footer>"),
        "jumps the queue": ('tabindex="0"', 'tabindex="3"'),
        "cut off in a picture": ('<g id="accuracy-narrow-text_1"', '<g transform="translate(0 -999)" id="t"'),
    }
    for fault, (good, bad) in spoils.items():
        if fault.startswith("cut off"):
            spoilt = whole.replace(
                '<g id="accuracy-narrow-text_1"', '<g transform="translate(0 -999)" id="t"', 1
            )
        else:
            spoilt = whole.replace(good, bad)
        assert spoilt != whole, fault
        file = tmp_path / "spoilt.html"
        file.write_text(spoilt, encoding="utf-8")
        seen(browser, file, "phone")
        assert any(fault in line for line in browser.execute_script(CHECKS)), fault
