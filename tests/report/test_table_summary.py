"""The sentence on top says what the table says, no more."""

from __future__ import annotations

from dataclasses import replace

from postmax.report.table.summary import summary
from postmax.tables.table import Cell, Panel, Table


def made(cells, selection="last"):
    keys = {(name, "c"): cell for name, cell in cells.items()}
    return Table("t", "T", "cpu", selection, "rows", (Panel("p", tuple(cells), ("c",), keys),))


def test_the_largest_shortfall_is_named():
    text = summary(
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


def test_what_rounds_to_the_reported_value_is_not_below_it():
    assert summary(made({"a": Cell((95.56, 95.57), paper=95.6), "b": Cell((96.0, 96.0), paper=95.6)})).startswith(
        "Not below the paper in any of the 2 cells"
    )


def test_without_reported_values():
    text = summary(made({"a": Cell((95.0,)), "b": Cell((96.25,))}, "oracle"))
    assert text.startswith("The highest mean is 96.25 %, in b, c, p (one seed")
    assert (
        "(one seed, cpu scale, oracle, best epoch on the test set: it cannot be chosen without the true labels)."
        in text
    )


def test_failures_and_gaps_are_not_hidden():
    text = summary(made({"a": Cell((95.0, 96.0, 97.0), paper=95.6, failed=1), "b": Cell((90.0,)), "d": Cell(failed=1)}))
    assert "mean of 1–3 seeds" in text
    assert text.endswith("2 seeds failed and are not part of any mean. 1 of 3 cells has no result.")


def test_reported_values_that_cannot_be_compared_are_not_counted():
    cells = {
        (row, column): Cell((90.0, 91.0 + place), paper=99.0, best=column == best)
        for row, best in (("KL", "a"), ("SL", "b"), ("GAN", "b"))
        for place, column in enumerate("ab")
    }
    panels = tuple(Panel(title, ("KL", "SL", "GAN"), ("a", "b"), cells) for title in ("low", "high"))
    along = Table("t", "T", "cpu", "last", "columns", panels, comparable=False)
    assert summary(along) == "Best in each row: b in 4 of 6, a in 2 of 6 (mean of 2 seeds, cpu scale, last epoch)."
    one_each = {key: replace(cell, best=key in (("KL", "a"), ("SL", "b"))) for key, cell in cells.items()}
    down = replace(along, compare="rows", panels=(replace(panels[0], cells=one_each),))
    assert summary(down).startswith("Best in each column: KL in 1 of 2, SL in 1 of 2 (")
    assert summary(replace(made({"a": Cell((95.0,), paper=99.0), "b": Cell((96.0,))}), comparable=False)).startswith(
        "The highest mean is 96.0 %, in b, c, p; the paper reports no comparable value"
    )


def test_the_highest_mean_is_not_one_of_the_seeds_that_were_left():
    text = summary(made({"a": Cell((95.0, 95.0)), "b": Cell((99.0,), failed=1)}))
    assert text.startswith("The highest mean is 95.00 %, in a, c, p (mean of 1–2 seeds")
