"""The person's page in a real browser: Chromium without a head, with and without scripts."""

import shutil
import threading

import pytest

from tacit.deploy.web import PageServer
from tacit.testing.device import device_of, simulated

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


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
    options.add_argument("--window-size=412,915")  # a phone's
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    # the page works without scripts; this switches them off
    options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    told = simulated("fedrec", rounds=3)
    store = device_of(tmp_path_factory.mktemp("browser") / "device", told, 8)
    with PageServer(store, "9", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server, store
        server.shutdown()
        thread.join()
    store.close()


def see(browser, css):
    return browser.find_elements("css selector", css)


def press(browser, css, then):
    """Click, and wait for the page that says so."""
    from selenium.webdriver.support.wait import WebDriverWait

    see(browser, css)[0].click()
    WebDriverWait(browser, 20).until(lambda page: then in page.page_source)


def test_a_person_looks_limits_deletes_pauses_and_is_forgotten(browser, page):
    server, store = page
    here = server.origin + server.at
    browser.get(server.origin)
    assert "Who is it?" in browser.page_source
    browser.get(server.link)
    assert browser.current_url == f"{here}/"  # the key is gone from the address
    assert len(see(browser, "ol.top li")) == 10
    assert browser.title == "My list · Tacit"

    for path, heading in (("/learned", "What was learned"), ("/sent", "What left this device")):
        browser.get(here + path)
        assert see(browser, "h1")[0].text == heading
        assert see(browser, "nav a[aria-current]")[0].text == heading.replace(" this device", "")
    assert "∞" in see(browser, ".none")[0].text

    browser.get(f"{here}/have")
    entries = len(see(browser, "tbody tr"))
    title = see(browser, "tbody th")[0].text
    see(browser, "input[type=search]")[0].send_keys(title.rsplit(" ", 1)[0][:12])
    press(browser, "form[role=search] button", "matching “")
    assert title in [cell.text for cell in see(browser, "tbody th")]
    see(browser, "tbody a")[[cell.text for cell in see(browser, "tbody th")].index(title)].click()
    press(browser, "main", "Delete this entry?")
    press(browser, "button.danger", "The entry is erased.")
    assert see(browser, "[role=status]")[0].text == "The entry is erased."
    assert len(see(browser, "tbody tr")) == entries - 1 == len(store.history("9"))

    browser.get(f"{here}/settings")
    see(browser, "#per_run")[0].send_keys("12")
    press(
        browser, "form[action$='/limits'] button", "Limits saved: at most 12 rounds per run; at most 1 run."
    )
    assert store.limits().per_run == 12
    press(browser, "button[value=pause]", "Paused: this device takes no part.")
    assert store.paused
    assert "paused" in see(browser, ".who")[0].text
    press(browser, "button[value=resume]", "This device takes part again when asked.")
    assert not store.paused

    press(browser, "a[href$='/forget']", "What is erased, and what is not")
    see(browser, "button.danger")[0].click()  # nothing filled in: the browser itself refuses
    assert store.people() == ("9",)
    see(browser, "input[type=checkbox]")[0].click()
    see(browser, "input[name=name]")[0].send_keys("9")
    press(browser, "button.danger", "You are forgotten on this device")
    assert see(browser, "h1")[0].text == "Goodbye"
    assert store.people() == ()

    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if 'requestWillBeSent"' in entry["message"]
    ]
    urls = {part.split('"')[0] for message in asked for part in message.split('"url":"')[1:]}
    foreign = [url for url in urls if not url.startswith((server.origin, "data:", "chrome"))]
    assert not foreign  # nothing was asked of anybody else
    complaints = [line for line in browser.get_log("browser") if "Content Security Policy" in line["message"]]
    assert not complaints
