"""benchmarks/memorised.py shows what the finished runs of a table recorded."""

import json

import memorised

from postmax import tables
from postmax.tables.jobs import jobs


def _finished_run(folder, config, epochs):
    run = folder / "runs" / config.run_id
    run.mkdir(parents=True)
    (run / "done").touch()
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in epochs))


def test_finished_cells_are_shown_and_others_are_not(tmp_path):
    job = next(job for job in jobs(tables.load("memorising"), "pixels", seeds=1) if job.placements[0].row == "GCE")
    place = job.placements[0]
    _finished_run(
        tmp_path,
        job.config,
        [
            {"epoch": 1, "wrong_labels_learnt": 0.125, "seconds": 60.0, "operations": 3e12},
            {"epoch": 2, "wrong_labels_learnt": 0.25, "seconds": 120.0, "operations": 4e12, "test_accuracy": 0.5},
        ],
    )
    cells = list(memorised.finished("memorising", tmp_path, 1, None, None))
    assert [(cell.row, cell.column) for cell in cells] == [(place.row, place.column)]
    assert memorised.summary(cells).split("\n")[-1] == (
        f"| {place.column} | GCE | 1 | 50.0 % | 25.0 % | – | – | – | 7.0e+12 | 3 |"
    )
    assert memorised.curves(cells, "wrong_labels_learnt").split("\n")[-1] == f"| {place.column} | GCE | 12 | 25 |"


def test_several_seeds_have_a_mean_and_a_deviation():
    assert memorised.per_cent([0.5, 0.7]) == "60.0 ± 14.1 %"
    assert memorised.per_cent([]) == memorised.UNKNOWN
