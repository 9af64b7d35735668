"""A table with grids, its tuned settings, and runs that look as if they had tried them."""

from __future__ import annotations

import json

from fake_runs import fake_result

from postmax.runs.folder import RunFolder
from postmax.tables.catalogue import make
from postmax.tables.trials import digest
from postmax.tables.tuned import Score, TunedRow
from postmax.tuning.choose import nothing_chosen

TUNING = {"columns": ["low", "high"], "seeds": [100, 101, 102], "budget": 4}


def content(**changes):
    base = {
        "title": "A table",
        "run": {"data": {"name": "digits", "validation_share": 0.2}, "model": {"hidden": [8]}, "epochs": 2},
        "scales": {"small": {"seeds": 2, "stack": 2, "tuning": TUNING}, "plain": {"seeds": 1}},
        "panels": [{"name": "all"}],
        "rows": [
            {"name": "CE", "set": {"loss": "ce"}},
            {
                "name": "KL",
                "set": {"loss": {"divergence": "kl"}, "optimiser.lr": 0.5},
                "grid": {"optimiser.lr": [0.1, 0.01], "optimiser.weight_decay": [0.0, 0.1]},
            },
            {"name": "SL", "set": {"loss": {"divergence": "sl"}}, "grid": {"loss.floor": [0.1, 0.2]}, "optional": True},
        ],
        "columns": [
            {"name": "low", "set": {"noise": "symmetric:0.2"}},
            {"name": "high", "set": {"noise": "symmetric:0.6", "optimiser.lr": 0.7}},
            {"name": "clean", "reference": True},
        ],
    }
    return {**base, **changes}


def table(**changes):
    return make(content(**changes), name="test")


def finish(job, store, accuracy):
    """A run that is done, with validation accuracies by seed; its test accuracies say the opposite."""
    run = RunFolder(store / job.run_id)
    with run.lock():
        run.write("config.yaml", job.config.to_yaml().encode())
        lines = []
        for epoch in (1, 2):
            for seed in job.config.seeds:
                value = accuracy(seed) if epoch == 2 else 1 - accuracy(seed)
                lines.append({"epoch": epoch, "seed": seed, "val_accuracy": value, "test_accuracy": 1 - value})
        run.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
        run.finish(fake_result(job.config, accuracy=lambda seed: 1 - accuracy(seed)))


def fail(job, store):
    run = RunFolder(store / job.run_id)
    with run.lock():
        run.write("config.yaml", job.config.to_yaml().encode())
        run.write_json("failure.json", {"error": "the loss is not finite"})


def fill(tried, store, accuracy):
    """Finish all runs; None is a run that diverged."""
    for trial in tried:
        for job in trial.jobs:
            column = job.placements[0].column
            if accuracy(trial.settings, column, job.config.seeds[0]) is None:
                fail(job, store)
            else:
                finish(job, store, lambda seed, t=trial, c=column: accuracy(t.settings, c, seed))


def a_tuned(rows=("KL",), spec=None, **changes):
    settings = {"KL": {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}, "SL": {"loss.floor": 0.2}}
    found = {
        row: TunedRow(
            chosen=settings[row],
            scores=(Score(settings=settings[row], score=1.0, accuracy={"low": 0.5, "high": None}),),
        )
        for row in rows
    }
    return nothing_chosen(spec or table(), "small").model_copy(update={"rows": found, **changes})


def a_digested(rows=("KL",), spec=None):
    plain, spec = a_tuned(rows, spec), spec or table()
    found = {name: row.model_copy(update={"digest": digest(spec, "small", name)}) for name, row in plain.rows.items()}
    return plain.model_copy(update={"rows": found})
