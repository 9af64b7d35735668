"""The sentence on top says what the table says, no more."""

from __future__ import annotations

from postmax.bench.report.answer import answer
from postmax.bench.table import Cell, Panel, Table


def made(cells, selection="last"):
    keys = {(name, "c"): cell for name, cell in cells.items()}
    return Table("t", "T", "cpu", selection, "rows", (Panel("p", tuple(cells), ("c",), keys),))


def test_the_largest_shortfall_is_named():
    text = answer(
        made(
            {
                "a": Cell((95.0, 96.0), paper=95.6),
                "b": Cell((90.0, 91.0), paper=92.0),
                "d": Cell((99.0, 99.0), paper=98.0),
            }
        )
    )
    assert text == (
        "At or above the paper in 1 of 3 cells; the largest shortfall is −1.5 points in b, c, p: 90.5 against 92.0 "
        "(mean of 2 seeds, cpu scale, last epoch)."
    )


def test_what_rounds_to_the_figure_is_not_below_it():
    assert answer(made({"a": Cell((95.56, 95.57), paper=95.6), "b": Cell((96.0, 96.0), paper=95.6)})).startswith(
        "Not below the paper in any of the 2 cells"
    )


def test_without_figures_of_the_paper():
    text = answer(made({"a": Cell((95.0,)), "b": Cell((96.25,))}, "oracle"))
    assert text.startswith("The highest mean is 96.25 %, in b, c, p; the paper has no figure")
    assert "(one seed, cpu scale, best epoch on the test set: nobody can choose it without the truth)." in text


def test_failures_and_gaps_are_not_hidden():
    text = answer(made({"a": Cell((95.0, 96.0, 97.0), paper=95.6, failed=1), "b": Cell((90.0,)), "d": Cell(failed=1)}))
    assert "mean of 1–3 seeds" in text
    assert text.endswith("2 runs failed and are in no mean. 1 of 3 cells has no result.")
