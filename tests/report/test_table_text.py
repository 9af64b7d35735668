"""Tables as text: Markdown, JSON and the terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from postmax.report.table.terminal import print_table
from postmax.report.table.text import from_json, to_json, to_markdown
from postmax.report.table.tuned_text import tuned_to_markdown
from postmax.tables import load
from postmax.tables.table import Cell, Panel, Table
from postmax.tables.tabulate import tabulate
from postmax.train.settings import as_overrides


def small_table() -> Table:
    cells = {
        ("KL", "none"): Cell((90.0, 92.0), paper=92.1, p_value=0.01),
        ("KL", "forward"): Cell((95.0, 96.0), paper=95.4, best=True),
        ("a | b", "none"): Cell(failed=2),
    }
    panel = Panel("[e0, e1] = [0.1, 0.3]", ("KL", "a | b"), ("none", "forward"), cells)
    return Table("t", "Title", "cpu", "oracle", "columns", (panel,), note="Fewer images.")


def test_markdown():
    assert to_markdown(small_table()).splitlines() == [
        "# Title",
        "",
        "Scale: cpu. Fewer images.",
        "",
        "## [e0, e1] = [0.1, 0.3]",
        "",
        "|  | none | forward |",
        "| --- | ---: | ---: |",
        r"| KL | 91.0 ± 1.4\*<br>paper 92.1 (−1.1) | **95.5 ± 0.7**<br>paper 95.4 (+0.1) |",
        r"| a \| b | 2 seeds failed |  |",
        "",
        (
            "Test accuracy in per cent, mean ± std of n = 2 seeds (oracle, best epoch on the test set: it cannot be "
            "chosen without the true labels). Bold: the best of its row, where cells compete. *: below it with "
            "p < 0.05 (paired t-test, Holm)."
        ),
    ]


def test_json_holds_everything_and_no_nan():
    found = json.loads(json.dumps(to_json(small_table()), allow_nan=False))
    first, second, third = found["panels"][0]["cells"]
    assert (first["mean"], first["paper"], first["p_value"], second["best"]) == (91.0, 92.1, 0.01, True)
    assert first["difference"] == pytest.approx(-1.1)
    assert (third["row"], third["mean"], third["std"], third["failed"]) == ("a | b", None, None, 2)


@pytest.mark.parametrize("width", [120, 40])
def test_no_difference_to_values_that_cannot_be_compared(width):
    apart = replace(small_table(), comparable=False)
    file = io.StringIO()
    print_table(apart, Console(file=file, width=width))
    for text in (file.getvalue(), to_markdown(apart)):
        assert "92.1" in text
        assert "−1.1" not in text
        assert "+0.1" not in text
        assert "Fewer images." in text
    found = to_json(apart)
    assert found["comparable"] is False
    assert [cell["difference"] for cell in found["panels"][0]["cells"]] == [None] * 3
    assert tabulate(load("cifar10-correction"), "cpu", [], Path()).comparable is False
    assert tabulate(load("cifar10-correction"), "paper", [], Path()).comparable is True


@pytest.mark.parametrize("width", [120, 80, 40])
def test_the_terminal_shows_every_value_at_any_width(width):
    file = io.StringIO()
    print_table(small_table(), Console(file=file, width=width))
    text = file.getvalue()
    for part in (
        "91.0 ± 1.4*",
        "95.5 ± 0.7",
        "92.1",
        "−1.1",
        "+0.1",
        "2 seeds failed",
        "[e0, e1] = [0.1, 0.3]",
        "none",
    ):
        assert part in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_settings_as_text_stay_in_their_cell():
    assert tuned_to_markdown({}) == ""
    text = tuned_to_markdown({"a|b\nc": {"loss": {"name": "x`|y"}, "noise": "n"}})
    assert text.splitlines()[0] == "## Settings chosen on noisy validation"
    assert text.splitlines()[-1] == r"| a\|b c | `" + r"""loss={"name": "x'\|y"} noise=n` |"""
    assert as_overrides({"a.b": None, "c": [1, 2.5], "d": True}) == "a.b=null c=[1, 2.5] d=true"


def test_a_table_is_read_back_from_its_json():
    table = small_table()
    assert from_json(json.loads(json.dumps(to_json(table)))) == table
    old = to_json(table)
    del old["tuned"], old["panels"][0]["cells"][0]["overlap"]
    assert from_json(old) == table
