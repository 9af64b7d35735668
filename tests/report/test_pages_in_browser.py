"""Both pages in a real browser: quiet, offline, readable on a phone, light and dark."""

from __future__ import annotations

import base64
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from headless import Browser, browser_path
from report_examples import finished, large, realistic

from postmax.report.run_page import write_run_page
from postmax.report.table.page import write_table_page

# Contrast of every text with what is behind it, as the accessibility guidelines define it; also the smallest font.
MEASURE = """
(() => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const parse = text => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(srgb') ? numbers.map((v, i) => i < 3 ? 255 * v : v) : numbers;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  let worst = {ratio: 99}, smallest = 99, texts = 0;
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const style = getComputedStyle(e), svg = e.closest('svg');
    if (!own || !e.checkVisibility() || e.matches('title, .unseen')) continue;
    // Numbers inside the opaque cells of a heat map keep their own colour.
    if (svg && style.fill !== getComputedStyle(svg).color) continue;
    const [a, b] = [light(parse(svg ? style.fill : style.color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst.ratio) worst = {ratio, text: e.textContent.slice(0, 40), color: style.color};
    if (!svg) smallest = Math.min(smallest, parseFloat(style.fontSize));
    texts += 1;
  }
  return {worst, smallest, texts};
})()
"""
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"
OPEN_ALL = "document.querySelectorAll('details').forEach(d => { d.open = true }); 0"


HEADINGS = {
    "table": [
        "Breast cancer with binary label noise",
        "Results",
        "Accuracy",
        "Learning curves",
        "Label noise",
        "Calibration",
        "Run it again",
    ],
    "large": ["A large table", "Results", "Distance from the best", "Learning curves", "Calibration", "Run it again"],
    "run": [
        "breast-cancer: standard with fpml (correction=posterior)",
        "Results",
        "Results for each class",
        "Data and training",
        "Label noise",
        "Learning curves",
        "Calibration",
        "Run it again",
    ],
}
PICTURES = {"table": 2 + 2 + 2 + 2 + 2, "large": 6 + 6 + 6, "run": 3 + 1}


def table_page(folder):
    return write_table_page(realistic(seeds=4, epochs=12, rows=("KL",)), folder)


def large_page(folder):
    return write_table_page(large(), folder)


def run_page(folder):
    loss = {"name": "fpml", "correction": "posterior"}
    return write_run_page(*finished(folder / "run", readings=("model", "uncorrected"), loss=loss))


@pytest.fixture(scope="module", params=["table", "large", "run"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def browser(tmp_path_factory, kind):
    path = browser_path()
    page = {"table": table_page, "large": large_page, "run": run_page}[kind](tmp_path_factory.mktemp("report"))
    found = Browser(path)
    try:
        found.window(1200, 900)
        found.open(page.as_uri())
        yield found
    finally:
        found.close()


def test_the_page_is_quiet_and_asks_for_nothing(browser):
    assert not browser.of("Log.entryAdded")
    assert not browser.of("Runtime.consoleAPICalled")
    assert not browser.of("Runtime.exceptionThrown")
    requested = [one["request"]["url"] for one in browser.of("Network.requestWillBeSent")]
    others = [url for url in requested if not url.startswith(("data:", "file:"))]
    assert not others
    assert len([url for url in requested if url.startswith("file:")]) == 1


def test_headings_are_in_order(browser, kind):
    headings = browser.run("[...document.querySelectorAll('h1, h2')].map(h => h.textContent)")
    assert headings == HEADINGS[kind]
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
    assert all(below <= above + 1 for above, below in pairwise(levels))
    ids = browser.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_every_picture_and_table_has_a_name(browser, kind):
    nameless = (
        "[...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('title').textContent).length"
    )
    assert browser.run("document.querySelectorAll('svg[role=img]').length") == PICTURES[kind]
    assert browser.run(nameless) == 0
    assert browser.run("document.querySelectorAll('th:not([scope])').length") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_is_legible(browser, kind, width, dark):
    browser.window(width, 800, dark=dark, mobile=width < 500)
    browser.run(OPEN_ALL)
    content, window = browser.run(WIDTHS)
    assert window == width
    assert content <= width
    found = browser.run(MEASURE)
    assert found["texts"] > {"table": 150, "large": 500, "run": 60}[kind]
    assert found["worst"]["ratio"] >= 4.5, found["worst"]
    assert found["smallest"] >= 14
    # For those who want to look: POSTMAX_SCREENSHOTS=folder
    if folder := os.environ.get("POSTMAX_SCREENSHOTS"):
        shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        name = f"{kind}-{width}-{'dark' if dark else 'light'}.png"
        (Path(folder) / name).write_bytes(base64.b64decode(shot))


def test_tables_scroll_in_their_own_frame(browser):
    browser.window(360, 800, mobile=True)
    frame = "document.querySelector('.scrolls, .scroll')"
    assert browser.run(f"{frame}.scrollWidth > {frame}.clientWidth")
    browser.run(f"{frame}.scrollLeft = 200")
    left = browser.run(f"{frame}.querySelector('tbody th').getBoundingClientRect().left")
    assert left == pytest.approx(browser.run(f"{frame}.getBoundingClientRect().left"), abs=2)


# What a box that scrolls shows: whether something is hidden, the height of its hint and the width of its fading edge.
HINTS = """
[...document.querySelectorAll('.scrolls')].filter(box => box.checkVisibility()).map(box => ({
  hidden: box.scrollWidth > box.clientWidth,
  hint: parseFloat(getComputedStyle(box, '::before').paddingBottom),
  edge: parseFloat(getComputedStyle(box, '::after').width),
  words: getComputedStyle(box, '::before').content,
  named: box.tabIndex === 0 && box.getAttribute('role') === 'region'
    && !!(box.getAttribute('aria-label') || document.getElementById(box.getAttribute('aria-labelledby')).textContent),
}))
"""


@pytest.mark.parametrize("width", [390, 1400])
def test_a_box_says_that_it_scrolls_only_where_something_is_hidden(browser, kind, width):
    browser.window(width, 800, mobile=width < 500)
    browser.run(OPEN_ALL)
    boxes = browser.run(HINTS)
    assert boxes
    for box in boxes:
        assert (box["hint"], box["edge"]) == ((26, 28) if box["hidden"] else (0, 0)), box
        assert "scroll sideways" in box["words"]
        assert box["named"]
    if kind != "run":
        assert {box["hidden"] for box in boxes} >= ({True} if width < 500 else {False})


HEAT = """
[...document.querySelectorAll('table.heat')[0].rows].slice(1).map(row => [...row.cells].slice(1).map(cell => ({
  text: cell.textContent, kind: cell.className, colour: getComputedStyle(cell).backgroundColor,
  hatched: getComputedStyle(cell).backgroundImage !== 'none',
})))
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_heat_map_has_a_stronger_colour_where_the_distance_is_larger(browser, kind, dark):
    if kind != "large":
        pytest.skip("only a large table has a heat map")
    browser.window(1400, 900, dark=dark)
    cells = [cell for row in browser.run(HEAT) for cell in row]
    assert {cell["kind"] for cell in cells if cell["hatched"]} == {"diverged", "missing"}
    far = {}
    for cell in cells:
        if cell["kind"] in ("", "best", "as-good") and cell["text"]:
            red, green, _ = (float(part) for part in re.findall(r"[\d.]+", cell["colour"])[:3])
            far[float(cell["text"])] = green - red if not dark else red
    # On a light page the colour gets less green, on a dark one more red.
    ordered = [far[points] for points in sorted(far)]
    assert ordered[0] != ordered[-1]
    assert ordered == sorted(ordered, reverse=not dark)


def test_a_heat_map_fits_into_a_wide_window_and_keeps_its_row_names_on_a_phone(browser, kind):
    if kind != "large":
        pytest.skip("only a large table has a heat map")
    box = "document.querySelector('table.heat').parentElement"
    browser.window(1400, 900)
    assert browser.run(f"{box}.scrollWidth <= {box}.clientWidth")
    browser.window(390, 844, mobile=True)
    assert browser.run(f"{box}.scrollWidth > {box}.clientWidth")
    browser.run(f"{box}.scrollLeft = 300")
    left = browser.run(f"{box}.querySelector('tbody th').getBoundingClientRect().left")
    assert left == pytest.approx(browser.run(f"{box}.getBoundingClientRect().left"), abs=2)
    assert browser.run("[document.documentElement.scrollWidth, innerWidth]") == [390, 390]


def test_dark_is_dark_in_the_pictures_too(browser):
    colour = "getComputedStyle(document.querySelector('figure svg text')).fill"
    browser.window(1200, 900)
    light = browser.run(colour)
    browser.window(1200, 900, dark=True)
    assert browser.run(colour) != light
