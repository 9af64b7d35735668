"""The heat map of a large table: its numbers against a plain computation, its marks, its scale, its files."""

from __future__ import annotations

import math
import random
import re
import statistics
from pathlib import Path

import pytest
from PIL import Image
from report_examples import large, realistic
from results_pictures import RESULTS, draw, shipped

from postmax.report.pictures.canvas import house_style
from postmax.report.pictures.svg import drawing
from postmax.report.table.distances import MOST_CELLS, MOST_COLUMNS, heat_maps, is_large
from postmax.report.table.heat_figure import heat_figure
from postmax.report.table.heat_view import heat_view
from postmax.report.table.page import write_table_page
from postmax.tables.table import Cell, Panel, Table


def made(cells, compare="rows", rows=None, columns=None):
    rows = rows or tuple(dict.fromkeys(row for row, _ in cells))
    columns = columns or tuple(dict.fromkeys(column for _, column in cells))
    return Table("t", "T", "cpu", "last", compare, (Panel("", rows, columns, cells),))


def random_cells(rows, columns, seed=0, spread=3.0):
    rng = random.Random(seed)
    return {
        (f"r{i}", f"c{j}"): Cell(tuple(rng.gauss(80, spread) for _ in range(4)))
        for i in range(rows)
        for j in range(columns)
    }


@pytest.mark.parametrize("compare", ["rows", "columns"])
def test_distances_and_marks_are_those_of_a_plain_computation(compare):
    cells = random_cells(5, 4, spread=0.8)
    (heat,) = heat_maps(made(cells, compare))
    within = set()
    for row, column in cells:
        line = [
            cell.values
            for (other_row, other_column), cell in cells.items()
            if (other_column == column if compare == "rows" else other_row == row)
        ]
        best = max(line, key=statistics.fmean)
        expected = statistics.fmean(best) - statistics.fmean(cells[row, column].values)
        found = heat.cells[row, column]
        assert found.points == pytest.approx(expected, abs=1e-8)
        assert found.best == (cells[row, column].values == best)
        assert found.as_good == (expected <= statistics.stdev(best) / math.sqrt(len(best)))
        within.add(found.as_good and not found.best)
    assert within == {True, False}  # the example has both
    for name in heat.rows if compare == "rows" else heat.columns:
        own = [one.points for (row, column), one in heat.cells.items() if name in (row, column)]
        assert heat.means[name] == pytest.approx(statistics.fmean(own))


def test_overlapping_splits_make_the_standard_error_larger():
    best, near = Cell((90.0, 91.0, 92.0), overlap=0.25), Cell((90.3, 90.3, 90.3), overlap=0.25)
    (heat,) = heat_maps(made({("a", "c"): best, ("b", "c"): near}))
    assert heat.cells["b", "c"].points == pytest.approx(0.7)
    assert 1 / math.sqrt(3) < 0.7 < math.sqrt(1 / 3 + 0.25)
    assert heat.cells["b", "c"].as_good


def test_only_complete_cells_are_the_best():
    cells = {
        ("a", "c"): Cell((99.0,), failed=1),
        ("b", "c"): Cell((90.0, 92.0)),
        ("d", "c"): Cell((), failed=2),
        ("e", "c"): Cell((), missing=2),
    }
    (heat,) = heat_maps(made(cells))
    assert [heat.cells[row, "c"].points for row in "abde"] == [-8.0, 0.0, None, None]
    assert [heat.cells[row, "c"].best for row in "abde"] == [False, True, False, False]
    assert heat.means == {"a": -8.0, "b": 0.0, "d": None, "e": None}
    view = heat_view(made(cells))
    shown = [[(cell.text, cell.kind) for cell in line] for _, line in view.grids[0].rows]
    assert shown == [
        [("+8.0†", "partial"), ("+8.0", "mean")],
        [("0.0", "best"), ("0.0", "mean")],
        [("✕", "diverged"), ("–", "mean")],
        [("–", "missing"), ("–", "mean")],
    ]
    assert "does not compete" in view.caption
    assert [row for row, _ in view.ranked[0].rows] == ["a", "b", "d", "e"]


def test_a_marked_best_counts_and_references_are_above_it():
    cells = {("r", "ours"): Cell((95.0, 96.0), best=True), ("r", "no noise"): Cell((98.0, 98.0))}
    (heat,) = heat_maps(made(cells, "columns"))
    assert [heat.cells["r", column].points for column in ("ours", "no noise")] == [0.0, -2.5]
    assert heat.shade(-2.5) == 0


def test_one_awful_row_does_not_decide_the_scale():
    cells = random_cells(20, 10, spread=0.5)
    usual = heat_maps(made(cells))[0].end
    cells |= {("r19", f"c{j}"): Cell((10.0, 10.0)) for j in range(10)}
    table = made(cells)
    (heat,) = heat_maps(table)
    assert heat.end == usual < 5
    assert heat.shade(70) == 1
    beyond = sum(one.points > heat.end for one in heat.cells.values())
    assert beyond >= 10
    assert f"The colours end at {heat.end:g} points" in heat_view(table).caption
    assert f"{beyond} cells are farther away" in heat_view(table).caption
    assert heat_view(table).end.endswith("or more")


def test_rows_are_sorted_by_their_mean_distance():
    view = heat_view(made(random_cells(6, 9)))
    assert [row for row, _ in view.grids[0].rows] == [f"r{i}" for i in range(6)]
    means = [float(cells[-1].text) for _, cells in view.ranked[0].rows]
    assert means == sorted(means)
    assert {row for row, _ in view.ranked[0].rows} == {f"r{i}" for i in range(6)}
    by_column = heat_view(made(random_cells(6, 9), "columns"))
    assert not by_column.ranked
    assert len(by_column.grids[0].last) == 9


def test_the_size_decides():
    assert not is_large(made(random_cells(4, MOST_COLUMNS)))
    assert is_large(made(random_cells(4, MOST_COLUMNS + 1)))
    assert not is_large(made(random_cells(MOST_CELLS // 5, 5)))
    assert is_large(made(random_cells(MOST_CELLS // 5 + 1, 5)))


def test_the_file_shows_the_same_numbers():
    table = large().tables[0]
    (heat,) = heat_maps(table)
    with house_style():
        body = drawing(heat_figure(heat, "How to read it."), "x").body
    drawn = re.findall(r"<text[^>]*>\s*([^<]*?)\s*</text>", body)
    shown = [cell.text for _, cells in heat_view(table).grids[0].rows for cell in cells if cell.text]
    for text in set(shown):
        assert drawn.count(text) >= shown.count(text), text
    assert "How to read it." in drawn


def test_a_large_table_has_a_heat_map_and_a_small_one_has_dots(tmp_path):
    page = write_table_page(large(), tmp_path / "large").read_text("utf-8")
    assert '<h2 id="distances">' in page
    assert '<h2 id="accuracy">' not in page
    assert page.count('<table class="heat">') == 2  # in the order of the table, and sorted
    assert (tmp_path / "large" / "distances.svg").exists()
    assert (tmp_path / "large" / "distances.png").exists()
    assert not (tmp_path / "large" / "accuracy.svg").exists()
    # Curves are drawn for the nearest rows only; method 1 and 2 lack a value, so their mean is not known.
    assert "Drawn for the 6 rows that are nearest to the best, in the first 8 columns." in page
    curves = page[page.index('id="curves"') : page.index('id="reliability"')]
    titles = re.findall(r"<strong>([^<]+)</strong>", curves)
    assert len(titles) == 12  # two kinds of curves
    assert "method 0" in titles
    assert "method 1" not in titles
    assert "method 13" not in titles  # the awful one
    small = write_table_page(realistic(seeds=2, epochs=2, rows=("KL",)), tmp_path / "small").read_text("utf-8")
    assert '<h2 id="distances">' not in small
    assert '<h2 id="accuracy">' in small


def test_a_large_table_without_results(tmp_path):
    empty = made({(f"r{i}", f"c{j}"): Cell(missing=1) for i in range(3) for j in range(12)})
    content = large()
    page = write_table_page(type(content)("Nothing", (empty,)), tmp_path).read_text("utf-8")
    assert '<h2 id="distances">' not in page
    assert not list(tmp_path.glob("*.png"))


def test_the_picture_of_the_shipped_results_has_their_numbers(tmp_path):
    """What docs/results/embeddings.md says about the table is what the heat map marks."""
    table = shipped("embeddings")
    (heat,) = heat_maps(table)
    noisy = [column for column in heat.columns if column != "clean"]
    first = {row: sum(heat.cells[row, column].as_good for column in noisy) for row in heat.rows}
    text = Path(RESULTS / "embeddings.md").read_text("utf-8")
    claims = re.findall(
        r"^\| ([^|]+) \| (\d+)(?: of 12)? \| ([\d.]+) \| ([\d.]+) \| ([^|]+) \|$", text, flags=re.MULTILINE
    )
    assert len(claims) == len(heat.rows)
    for row, wins, mean, largest, where in claims:
        points = {column: heat.cells[row, column].points for column in noisy}
        assert first[row] == int(wins), row
        assert round(statistics.fmean(points.values()), 1) == float(mean), row
        assert round(max(points.values()), 1) == float(largest), row
        assert max(points, key=points.get) == where, row
    with Image.open(draw("embeddings", tmp_path)) as drawn, Image.open(RESULTS / "embeddings.png") as kept:
        assert drawn.size == kept.size
