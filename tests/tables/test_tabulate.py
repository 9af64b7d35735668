"""Tables from finished, failed and missing runs."""

from __future__ import annotations

import json
import random

import pytest
from fake_runs import finish
from table_examples import table as spec

from postmax.errors import DataError, InputError
from postmax.report.table.text import caption, to_json, to_markdown
from postmax.report.table.views import table_view
from postmax.runs.folder import RunFolder
from postmax.tables.jobs import jobs
from postmax.tables.statistics import holm, paired_test
from postmax.tables.table import Cell, Panel, Table
from postmax.tables.tabulate import _overlap, tabulate
from postmax.train.config import DataConfig

READINGS = ("model", "uncorrected")


@pytest.fixture
def store(tmp_path):
    """All runs of the test table are done; "model" is ten points above "uncorrected", and SL above KL."""
    rng = random.Random(0)
    for job in jobs(spec(), "small"):
        better = 0.05 if job.config.loss.options["divergence"] == "sl" else 0.0
        values = {seed: 0.8 + better + rng.randrange(20) / 1000 for seed in job.config.seeds}
        finish(job.config, tmp_path, accuracy=values.get, readings=READINGS)
    return tmp_path


def filling(todo, cell):
    """The jobs that fill a cell."""
    return [job for job in todo if any((at.panel, at.row, at.column) == cell for at in job.placements)]


def values_of(store, job, reading="model", rule="last"):
    result = RunFolder(store / job.run_id).result()
    return [100 * seed["readings"][reading][rule]["accuracy"] for seed in result["seeds"]]


def test_values_come_from_the_right_runs_readings_and_rules(store):
    todo = jobs(spec(), "small")
    shared = [
        job
        for job in todo
        if any((place.panel, place.row, place.column) == ("Low", "KL", "plain") for place in job.placements)
    ]
    for rule in ("last", "oracle"):
        panel = tabulate(spec(), "small", todo, store, rule).panels[0]
        for column, reading in (("plain", "uncorrected"), ("posterior", "model")):
            cell = panel.cells["KL", column]
            assert cell.values == pytest.approx([v for job in shared for v in values_of(store, job, reading, rule)])
            assert cell.seeds == (0, 1, 2, 3)
            assert cell.run_ids == tuple(job.run_id for job in shared)
    assert panel.title == "Low"
    assert (panel.rows, panel.columns) == (("KL", "SL"), ("plain", "posterior", "forward", "clean"))
    assert panel.cells["KL", "plain"].paper == 90.0
    assert panel.cells["SL", "plain"].paper is None


def test_the_best_of_each_column_and_how_sure_it_is(store):
    found = tabulate(spec(), "small", jobs(spec(), "small"), store)
    for panel in found.panels:
        for column in ("plain", "posterior", "forward"):
            best, other = panel.cells["SL", column], panel.cells["KL", column]
            assert (best.best, best.p_value, other.best) == (True, None, False)
            expected = paired_test(dict(enumerate(best.values)), dict(enumerate(other.values))).p_value
            assert other.p_value == pytest.approx(expected)
        for row in ("KL", "SL"):
            assert not panel.cells[row, "clean"].best
            assert panel.cells[row, "clean"].p_value is None


def test_the_best_of_each_row_with_holm(store):
    along = spec(compare="columns")
    panel = tabulate(along, "small", jobs(along, "small"), store).panels[0]
    for row in panel.rows:
        cells = {column: panel.cells[row, column] for column in ("plain", "posterior", "forward")}
        best = max(cells, key=lambda column: cells[column].mean)
        assert [column for column in cells if cells[column].best] == [best]
        others = [column for column in cells if column != best]
        raw = [
            paired_test(dict(enumerate(cells[best].values)), dict(enumerate(cells[o].values))).p_value for o in others
        ]
        assert [cells[other].p_value for other in others] == pytest.approx(holm(raw))
        assert not panel.cells[row, "clean"].best


def test_a_tie_has_two_best(tmp_path):
    for job in jobs(spec(), "small"):
        finish(job.config, tmp_path, readings=READINGS)
    panel = tabulate(spec(), "small", jobs(spec(), "small"), tmp_path).panels[0]
    assert panel.cells["KL", "posterior"].best
    assert panel.cells["SL", "posterior"].best


def test_failed_and_missing_runs_leave_a_partial_table(tmp_path):
    todo = jobs(spec(), "small")
    cell = ("Low", "KL", "forward")
    first, second = (
        job for job in todo if any((place.panel, place.row, place.column) == cell for place in job.placements)
    )
    finish(first.config, tmp_path)
    folder = RunFolder(tmp_path / second.run_id)
    with folder.lock():
        folder.write("config.yaml", second.config.to_yaml().encode())
        folder.write_json("failure.json", {"error": "diverged"})
    found = tabulate(spec(), "small", todo, tmp_path)
    partial = found.panels[0].cells["KL", "forward"]
    assert (partial.n, partial.failed, partial.missing, partial.best) == (2, 2, 0, False)  # a stack of two
    empty = found.panels[0].cells["SL", "forward"]
    assert (empty.n, empty.failed, empty.missing, empty.best) == (0, 0, 4, False)
    assert "90.00 ± 0.00 (2 seeds failed)" in to_markdown(without_reported_values(found))
    json.dumps(to_json(found), allow_nan=False)


def finish_all(todo, store, cell, accuracy):
    """Finish all runs at 90 %, but the given one with `accuracy`; gives its jobs, the first of which is not run."""
    own = filling(todo, cell)
    for job in todo:
        if job is not own[0]:
            share = accuracy if job in own else 0.9
            finish(job.config, store, readings=READINGS, accuracy=lambda seed, share=share: share + seed / 1000)
    return own


@pytest.mark.parametrize("state", ["failed", "missing"])
def test_a_cell_without_all_of_its_seeds_does_not_compete(tmp_path, state):
    todo = jobs(spec(), "small")
    gap = finish_all(todo, tmp_path, ("Low", "KL", "forward"), accuracy=0.97)[0]
    if state == "failed":
        RunFolder(tmp_path / gap.run_id).path.mkdir()
        RunFolder(tmp_path / gap.run_id).write_json("failure.json", {"error": "diverged"})
    found = tabulate(spec(), "small", todo, tmp_path)
    partial, other = (found.panels[0].cells[row, "forward"] for row in ("KL", "SL"))
    assert partial.mean > other.mean
    assert getattr(partial, state) == 2  # seeds, not runs
    for cell in (partial, other):  # alone, the other one is not the best of anything
        assert (cell.best, cell.p_value) == (False, None)
    assert "Cells with failed or missing seeds do not compete." in to_markdown(found)
    assert all("do not compete" not in part for part in to_markdown(found).split("## ")[2:])


@pytest.mark.parametrize(("split", "overlap"), [("random", 0.25), ("official", 0.0)])
def test_overlapping_splits_are_tested_as_such(tmp_path, split, overlap):
    made = spec(run={"data": {"name": "digits", "split": split}, "loss": {"name": "fpml", "floor": 0.1}})
    todo = jobs(made, "small")
    rng = random.Random(0)
    for job in todo:
        values = {seed: 0.8 + rng.randrange(100) / 1000 for seed in job.config.seeds}
        finish(job.config, tmp_path, accuracy=values.get, readings=READINGS)
    found = tabulate(made, "small", todo, tmp_path)
    for panel in found.panels:
        cells = [panel.cells[row, "forward"] for row in ("KL", "SL")]
        best, other = sorted(cells, key=lambda cell: -cell.mean)
        assert best.overlap == overlap
        values = (dict(zip(cell.seeds, cell.values, strict=True)) for cell in (best, other))
        assert other.p_value == pytest.approx(paired_test(*values, overlap=overlap).p_value)
        test = (
            "paired t-test corrected for overlapping splits (Nadeau–Bengio), Holm" if overlap else "paired t-test, Holm"
        )
        assert f"({test})" in caption(found, panel)
        assert f"({test}, p ≥ 0.05)" in table_view(found).caption


def test_a_test_set_of_its_own_does_not_overlap():
    result = {"test_rows": 1, "train_rows": 4}
    assert _overlap(DataConfig(path="a.csv", split="random"), result) == 0.25
    assert _overlap(DataConfig(path="a.csv", split="random", test_path="b.csv"), result) == 0.0


def without_reported_values(found: Table) -> Table:
    panels = tuple(
        Panel(p.title, p.rows, p.columns, {key: Cell(c.values, c.failed) for key, c in p.cells.items()})
        for p in found.panels
    )
    return Table(found.name, found.title, found.scale, found.selection, found.compare, panels)


def test_what_was_not_recorded_is_said(store):
    todo = jobs(spec(), "small")
    with pytest.raises(InputError, match=r"noisy-val needs data.validation_share"):
        tabulate(spec(), "small", todo, store, "noisy-val")
    with pytest.raises(InputError, match="unknown selection 'best'"):
        tabulate(spec(), "small", todo, store, "best")
    other = spec(columns=[{"name": "x", "set": {"loss.correction": "posterior"}, "reading": "shadow"}], reported={})
    with pytest.raises(DataError, match="no reading 'shadow', only model, uncorrected"):
        tabulate(other, "small", jobs(other, "small"), store)


def test_a_changed_result_is_noticed(store):
    job = jobs(spec(), "small")[0]
    path = store / job.run_id / "result.json"
    path.write_text(path.read_text().replace("0.8", "0.9"))
    with pytest.raises(DataError, match="changed or damaged"):
        tabulate(spec(), "small", [job], store)
