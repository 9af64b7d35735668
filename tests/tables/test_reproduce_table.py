"""A table from beginning to end: definition, real training, results, text."""

from __future__ import annotations

import json

from postmax.report.table.text import to_json
from postmax.runs.folder import RunFolder
from postmax.sweep.plan import plan
from postmax.sweep.sweep import sweep
from postmax.tables import load
from postmax.tables.jobs import jobs
from postmax.tables.tabulate import tabulate


def test_a_small_breast_cancer_table(tmp_path):
    spec = load("breast-cancer")
    todo = jobs(spec, "quick", seeds=2, rows=["kl"], overrides=["epochs=2", "save_model=false"])
    assert len(todo) == 7  # no correction and posterior share a run, and so does no noise in both panels
    kinds = []
    report = sweep(todo, tmp_path, watch=lambda event: kinds.append(event.kind))
    assert report.done == [job.run_id for job in todo]
    assert kinds.count("progress") == 2 * len(todo)
    for job in todo:
        assert RunFolder(tmp_path / job.run_id).config() == job.config

    table = tabulate(spec, "quick", todo, tmp_path)
    assert [panel.title for panel in table.panels] == [part.name for part in spec.panels]
    for panel in table.panels:
        assert len(panel.cells) == len(spec.columns)
        for cell in panel.cells.values():
            assert cell.seeds == (0, 1)
            assert all(20 < value <= 100 for value in cell.values)
    first, second = (panel.cells["KL", "no noise"] for panel in table.panels)
    assert (first.values, first.run_ids) == (second.values, second.run_ids)
    json.dumps(to_json(table), allow_nan=False)

    assert sweep(todo, tmp_path).skipped == report.done
    more = plan(jobs(spec, "quick", seeds=[2, 3], rows=["kl"], overrides=["epochs=2"]) + todo, tmp_path)
    assert (len(more.done), len(more.new), more.unknown) == (7, 7, 0)
