"""What is drawn: the right numbers, in colours that can be seen, as well-formed files."""

from __future__ import annotations

import random
import re
import statistics
import xml.etree.ElementTree as ET
from importlib import resources

import pytest
from PIL import Image
from report_examples import metrics, reliability, small

from postmax.report.content import Group, NoiseMatrix, Series
from postmax.report.pictures.canvas import PALETTE, REFERENCE, colours, house_style, new_figure, short
from postmax.report.pictures.curves import curves_figure
from postmax.report.pictures.reliability import calibration_error, mean_error, pool
from postmax.report.pictures.svg import drawing, for_page
from postmax.report.pictures.traces import MEMORISED, NAMES, TEST, band, trace
from postmax.report.pictures.transition import transition_figure
from postmax.report.table.heat_figure import FAR
from postmax.report.table.page import write_table_page


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    return sum(weight * v for weight, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colours_are_seen_on_both_pages():
    css = resources.files("postmax.report").joinpath("templates", "page.css").read_text("utf-8")
    pages = re.findall(r"--page: (#\w{6})", css)
    assert len(set(pages)) == 2
    for colour in (*PALETTE, REFERENCE):
        for page in pages:
            high, low = sorted((luminance(colour), luminance(page)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 3, (colour, page)


def test_texts_are_legible_on_every_colour_of_the_heat_map():
    css = resources.files("postmax.report").joinpath("templates", "page.css").read_text("utf-8")
    found = {name: re.findall(rf"--{name}: (#\w{{6}});", css)[:2] for name in ("page", "ink", "far")}
    assert found["far"][0] == FAR  # the file and the light page have the same colours
    for page, ink, far in zip(*found.values(), strict=True):
        for share in range(101):
            mixed = [
                round(int(page[i : i + 2], 16) + share / 100 * (int(far[i : i + 2], 16) - int(page[i : i + 2], 16)))
                for i in (1, 3, 5)
            ]
            high, low = sorted((luminance("#" + bytes(mixed).hex()), luminance(ink)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (page, share)
        # The ends differ in brightness, so that they are told apart without seeing colours.
        high, low = sorted((luminance(page), luminance(far)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 2.3


def test_references_are_grey_and_take_no_colour():
    assert colours(("a", "no noise", "b"), frozenset({"no noise"})) == {
        "a": PALETTE[0],
        "no noise": REFERENCE,
        "b": PALETTE[1],
    }


def test_bands_are_mean_and_deviation_over_the_seeds():
    records = metrics(95.0, 3, 4, random.Random(0))
    found = band(Series("a", records), TEST)
    assert found.epochs == (1, 2, 3, 4)
    values = [100 * record["test_accuracy"] for record in records if record["epoch"] == 2]
    assert found.mean[1] == pytest.approx(statistics.fmean(values))
    assert found.std[1] == pytest.approx(statistics.stdev(values))
    other = band(Series("a", records, reading="uncorrected"), TEST)
    assert other.mean[1] == pytest.approx(found.mean[1] - 2.5)
    # Training is the same however the network is read.
    assert band(Series("a", records, reading="uncorrected"), MEMORISED) == band(Series("a", records), MEMORISED)


def test_missing_measures_and_nan_are_left_out():
    records = ({"epoch": 1, "seed": 0, "test_accuracy": float("nan")}, {"epoch": 2, "seed": 0, "test_accuracy": 0.5})
    assert band(Series("a", records), TEST).epochs == (2,)
    assert band(Series("a", records), MEMORISED) is None


def test_long_runs_are_thinned_to_what_can_be_seen():
    found = band(Series("a", metrics(95.0, 1, 1000, random.Random(0))), TEST)
    assert len(found.epochs) <= 121
    assert (found.epochs[0], found.epochs[-1]) == (1, 1000)


def test_calibration_error_is_that_of_the_definition():
    one = {"count": [2, 0, 8], "confidence": [0.5, 0.0, 0.9], "accuracy": [0.0, 0.0, 1.0]}
    assert calibration_error(one) == pytest.approx(0.2 * 0.5 + 0.8 * 0.1)
    sure = {"count": [0, 0, 10], "confidence": [0.0, 0.0, 1.0], "accuracy": [0.0, 0.0, 1.0]}
    series = Series("a", reliability=(one, sure))
    assert mean_error(series) == pytest.approx(9.0)
    pooled = pool(series)
    assert pooled.share == pytest.approx((10, 90))
    assert pooled.accuracy == pytest.approx((0, 100))
    assert pooled.confidence == pytest.approx((50, 100 * 17.2 / 18))
    assert pooled.enough == (False, True)


def test_a_second_reading_of_a_run_is_dashed():
    records = metrics(95.0, 2, 3, random.Random(0))
    group = Group("p", "r", (Series("a", records, reading="uncorrected"), Series("b", records)))
    with house_style():
        upper, lower = curves_figure(trace(group), [TEST, MEMORISED], colours(("a", "b"))).axes
    assert [line.is_dashed() for line in upper.lines] == [False, False]
    assert [line.is_dashed() for line in lower.lines] == [False, True]


def test_files_are_whole(tmp_path):
    write_table_page(small(), tmp_path)
    for path in tmp_path.glob("*.svg"):
        root = ET.fromstring(path.read_bytes())
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        references = re.findall(r'(?:href="#|url\(#)([^")]+)', path.read_text("utf-8"))
        assert set(references) <= set(ids)
        assert not re.search(r'href="(?!#|data:)', path.read_text("utf-8"))
    for path in tmp_path.glob("*.png"):
        with Image.open(path) as image:
            image.load()
            assert image.getpixel((0, 0)) == (255, 255, 255)
            assert not image.info.get("Software")
            assert max(image.size) < 8000


def test_page_pictures_take_the_colour_of_the_text():
    group = Group(
        "p", "r", (Series("a", metrics(95.0, 2, 3, random.Random(0)), reliability(2, 0.1, random.Random(0))),)
    )
    with house_style():
        figure = curves_figure(trace(group), list(NAMES)[:2], colours(("a",)))
        drawn = drawing(figure, "x")
    text = for_page(drawn, "x", "What it <shows>")
    assert text.startswith('<svg viewBox="0 23.04 ')
    assert '<title id="x-title">What it &lt;shows&gt;</title>' in text
    assert "currentColor" in text
    assert "#1c1e21" not in text
    assert "r, p" in drawn.body  # the file has a title
    assert "r, p" not in text  # the page says it itself
    assert text.count("<g") == text.count("</g>")


def test_many_classes_keep_their_matrix_but_not_their_names():
    k = 100
    rows = tuple(tuple(0.7 if i == j else 0.3 / (k - 1) for j in range(k)) for i in range(k))
    with house_style():
        body = drawing(transition_figure(NoiseMatrix("m", tuple(f"class {i}" for i in range(k)), rows)), "x").body
    assert "class 1" not in body
    assert len(body) < 200_000


def test_names_are_one_printable_line():
    assert short("a\nb\0c") == "a�b�c"
    assert short("x" * 50, 10) == "x" * 9 + "…"
    with house_style():
        body = drawing(new_figure(1, "$\\alpha$ <b> 猫"), "x").body
    assert "$\\alpha$ &lt;b&gt; 猫" in body
