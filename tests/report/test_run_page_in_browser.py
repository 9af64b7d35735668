"""Pages of runs of many kinds in a real browser: nothing sticks out of a phone, and every cell can be read."""

from __future__ import annotations

import pytest
from headless import Browser, browser_path
from report_examples import finished
from small_runs import estimate_of

from postmax.report.run_page import write_run_page
from postmax.transition import Transition

LONG = "household & garden <b>equipment</b>, Donaudampfschifffahrtsgesellschaftskapitän"
TABLE = {
    "label": "kind",
    "dropped": ["id"],
    "missing": {"mass": 3},
    "columns": [
        {"name": "mass", "fill": "keep"},
        *({"name": f"a_column_with_a_long_name_{i}", "fill": None} for i in range(9)),
        {"name": "colour", "categories": ["red", "green", "blue"]},
    ],
}

# The smallest contrast of the text of coloured cells with the mixture of the page and their colour.
CELLS = """
(() => {
  const channel = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const rgb = text => {
    const n = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(') ? n : [n[0] / 255, n[1] / 255, n[2] / 255, ...n.slice(3)];
  };
  const page = rgb(getComputedStyle(document.body).backgroundColor);
  const over = (c, below, alpha) => below.slice(0, 3).map((v, i) => alpha * c[i] + (1 - alpha) * v);
  let worst = 99, cells = 0;
  for (const cell of document.querySelectorAll('.matrix td')) {
    const colour = rgb(getComputedStyle(cell).backgroundColor);
    const behind = over(colour, page, colour.length > 3 ? colour[3] : 1);
    for (const e of [cell, ...cell.querySelectorAll('small')]) {
      const style = getComputedStyle(e);
      const ink = over(rgb(style.color), behind, Number(style.opacity));
      const [a, b] = [light(ink), light(behind)].sort((x, y) => y - x);
      worst = Math.min(worst, (a + 0.05) / (b + 0.05));
      cells += 1;
    }
  }
  return {worst, cells};
})()
"""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => { d.open = true }); 0"
# Boxes that hide something without saying so, and boxes that say so though nothing is hidden.
DISHONEST = """
[...document.querySelectorAll('.scrolls')].filter(box => box.checkVisibility()).filter(box =>
  (box.scrollWidth > box.clientWidth) !== (parseFloat(getComputedStyle(box, '::before').paddingBottom) > 0)).length
"""
# Names that reach into the next cell.
OVERLAPPING = """
[...document.querySelectorAll('.class')].filter(name =>
  name.getBoundingClientRect().right > name.parentElement.getBoundingClientRect().right).length
"""


def cells(classes):
    """Most rows are right, and some are taken for the next class."""
    return sorted([(i, i, 40) for i in range(classes)] + [(i, (i + 1) % classes, 1 + i % 9) for i in range(classes)])


def estimated(folder):
    """Two classes, a table of one's own and an estimate."""
    settings = {"noise": "none", "rate": None, "wrong": False, "transition": None, "seeds": (0,), "table": TABLE}
    noise = estimate_of(Transition.binary(0.1, 0.3), ["malignant", "benign"])
    data, loss = {"path": "/data/mine.csv"}, {"name": "fpml", "correction": "forward"}
    made, run = finished(folder, data=data, loss=loss, estimate=lambda _: noise, **settings)
    return made.model_copy(update={"transition": "estimated"}), run


def many(folder, classes):
    names = [f"{i} {LONG}" for i in range(classes)]
    noise = Transition.pair(classes, 0.3).matrix.tolist() if classes <= 100 else None
    return finished(folder, classes=names, cells=cells(classes), noise="pair:0.3", transition=noise)


KINDS = {
    "two classes, estimated": estimated,
    "ten classes": lambda folder: many(folder, 10),
    "a hundred classes": lambda folder: many(folder, 100),
    "a thousand classes": lambda folder: many(folder, 1000),
    "an older version": lambda folder: finished(folder, cells=None),
}


@pytest.fixture(scope="module", params=KINDS)
def browser(tmp_path_factory, request):
    path = browser_path()
    page = write_run_page(*KINDS[request.param](tmp_path_factory.mktemp("report") / "run"))
    found = Browser(path)
    try:
        found.window(390, 800, mobile=True)
        found.open(page.as_uri())
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out(browser, width):
    browser.window(width, 800, mobile=width < 500)
    browser.run(OPEN_ALL)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(DISHONEST) == 0
    assert browser.run(OVERLAPPING) == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_coloured_cells_can_be_read(browser, dark):
    browser.window(1400, 800, dark=dark)
    found = browser.run(CELLS)
    if found["cells"]:
        assert found["worst"] >= 4.5, found


def test_names_are_text(browser):
    assert browser.run("document.querySelectorAll('b').length") == 0
    assert not browser.of("Runtime.exceptionThrown")
