"""Pages to draw: of tables and of a run, made of random numbers that are the same every time."""

from __future__ import annotations

import hashlib
import json
import math
import random

from postmax.report.content import Group, NoiseMatrix, Series
from postmax.report.table.content import Run, TableContent
from postmax.runs.folder import RunFolder
from postmax.tables.table import Cell, Panel, Table
from postmax.train.config import make_config

CLASSES = ["malignant", "benign"]
MATRIX = [[0.7, 0.3], [0.1, 0.9]]
# label, predicted class, rows
CELLS = [(0, 0, 36), (0, 1, 6), (1, 0, 2), (1, 1, 70)]
PANELS = ("[e0, e1] = [0.1, 0.3]", "[e0, e1] = [0.2, 0.4]")
ROWS = ("KL", "SL", "GAN", "JS")
COLUMNS = ("no correction", "objective", "posterior", "forward", "no noise")
LEVELS = {"no correction": 93.0, "objective": 95.6, "posterior": 96.0, "forward": 96.6, "no noise": 98.0}
PAPER = {"no correction": 92.1, "objective": 95.6, "posterior": 95.6, "no noise": 98.2}


def metrics(level, seeds, epochs, rng, memorised=0.15):
    records = []
    for seed in range(seeds):
        shift = rng.gauss(0, 0.012)
        for epoch in range(1, epochs + 1):
            progress = 1 - math.exp(-epoch / (0.12 * epochs))
            test = min(1.0, 0.6 + (level / 100 - 0.6) * progress + shift + rng.gauss(0, 0.004))
            learnt = max(0.0, memorised * epoch / epochs + rng.gauss(0, 0.01))
            records.append(
                {
                    "epoch": epoch,
                    "seed": seed,
                    "loss": 0.5,
                    "lr": 0.02,
                    "train_accuracy": 0.8,
                    "test_accuracy": test,
                    "uncorrected_test_accuracy": test - 0.025,
                    "right_labels_learnt": min(1.0, test - 0.01),
                    "wrong_labels_learnt": learnt,
                    "wrong_labels_recovered": 1 - learnt,
                    "seconds": 0.01,
                }
            )
    return tuple(records)


def reliability(seeds, gap, rng, bins=15):
    result = []
    for _ in range(seeds):
        count = [0] * bins
        for _ in range(114):
            count[min(bins - 1, int(bins * (1 - 0.5 * rng.random() ** 3)))] += 1
        middle = [(b + 0.5) / bins for b in range(bins)]
        accuracy = [min(1.0, max(0.0, x + gap * (1 - x) + rng.gauss(0, 0.01))) for x in middle]
        result.append(
            {
                "count": count,
                "confidence": [x if n else 0.0 for x, n in zip(middle, count, strict=True)],
                "accuracy": [x if n else 0.0 for x, n in zip(accuracy, count, strict=True)],
            }
        )
    return tuple(result)


def table(selection, rng, seeds, panels=PANELS, rows=ROWS, columns=COLUMNS, lift=0.0):
    made = []
    for p, panel in enumerate(panels):
        cells = {}
        for row in rows:
            for column in columns:
                centre = LEVELS.get(column, 95.0) - 1.5 * p * (column != "no noise") + lift + rng.gauss(0, 0.25)
                values = tuple(min(100.0, rng.gauss(centre, 1.3)) for _ in range(seeds))
                paper = PAPER.get(column) if row != "JS" or p else None
                p_value = {"posterior": 0.21, "objective": 0.004, "no correction": 1e-9}.get(column)
                cells[row, column] = Cell(values, paper=paper, best=column == "forward", p_value=p_value)
        made.append(Panel(panel, tuple(rows), tuple(columns), cells))
    return Table("breast-cancer", "Breast cancer", "cpu", selection, "columns", tuple(made))


def realistic(seeds=20, epochs=100, rows=ROWS):
    """Two panels of four rows and five columns, as `postmax reproduce breast-cancer` has them."""
    rng = random.Random(0)
    groups, runs = [], []
    for panel in PANELS:
        for row in rows:
            posterior = metrics(96.0, seeds, epochs, rng, 0.3)
            made = []
            for column in COLUMNS:
                own = (
                    posterior
                    if column in ("no correction", "posterior")
                    else metrics(LEVELS[column], seeds, epochs, rng)
                )
                if column == "no noise":
                    own = tuple({k: v for k, v in record.items() if "wrong" not in k} for record in own)
                bins = reliability(
                    seeds, {"no correction": 0.8, "objective": -0.2, "forward": 0.2}.get(column, 0.0), rng
                )
                reading = "uncorrected" if column == "no correction" else "model"
                made.append(Series(column, own, bins, reading, column == "no noise"))
                if column != "no correction":
                    name = hashlib.sha256(f"{panel}{row}{column}".encode()).hexdigest()[:16]
                    noise = {
                        seed: {
                            "rows": 455,
                            "rate": 0.0 if column == "no noise" else 0.224,
                            "sha256": hashlib.sha256(
                                f"{panel if column != 'no noise' else ''}{seed}".encode()
                            ).hexdigest(),
                        }
                        for seed in range(seeds)
                    }
                    settings = f"noise=binary:0.1,0.3 loss.divergence={row.lower()} loss.correction={column}"
                    runs.append(Run(name, f"{row} · {column} · {panel}", settings, f"runs/{name}", 7.3, noise))
            groups.append(Group(panel, row, tuple(made)))
    matrices = tuple(
        NoiseMatrix(panel, ("malignant", "benign"), matrix)
        for panel, matrix in zip(PANELS, (((0.7, 0.3), (0.1, 0.9)), ((0.6, 0.4), (0.2, 0.8))), strict=True)
    )
    return TableContent(
        title="Breast cancer with binary label noise",
        about="Test accuracy on the Wisconsin breast-cancer table (569 rows, 30 features). A label of class 0 is "
        "flipped with probability e1, one of class 1 with e0; the columns say what is done about it.",
        source="Tables 2 and 8 of the paper: [e0, e1] = [0.1, 0.3] and [0.2, 0.4]",
        tables=(table("oracle", rng, seeds, rows=rows, lift=0.9), table("last", rng, seeds, rows=rows)),
        groups=tuple(groups),
        matrices=matrices,
        configuration="data:\n  name: breast-cancer\n  split: random\n  test_share: 0.2\nmodel:\n  name: mlp\n"
        "  hidden:\n  - 8\noptimiser:\n  name: sgd\n  lr: 0.02\n  momentum: 0.9\n  weight_decay: 0.05\n"
        "epochs: 100\nbatch_size: 32\n",
        runs=tuple(runs),
        environment={"postmax": "0.1.0", "python": "3.11.9", "torch": "2.13.0", "platform": "Linux x86_64"},
        command="postmax reproduce breast-cancer --scale cpu --seeds 20",
        seconds=151.0,
    )


def small(**changes):
    """One panel, one row, two columns, two seeds: quick to draw."""
    rng = random.Random(1)
    columns = ("no correction", "posterior")
    one = metrics(95.0, 2, 5, rng)
    series = tuple(
        Series(name, one, reliability(2, 0.1, rng), reading)
        for name, reading in zip(columns, ("uncorrected", "model"), strict=True)
    )
    noise = {seed: {"rows": 9, "rate": None, "sha256": f"{seed:064x}"} for seed in (0, 1)}
    values = {
        "title": "A small table",
        "tables": (table("last", rng, 2, PANELS[:1], ROWS[:1], columns),),
        "groups": (Group(PANELS[0], ROWS[0], series),),
        "matrices": (NoiseMatrix(PANELS[0], ("no", "yes"), ((0.7, 0.3), (0.1, 0.9))),),
        "runs": (Run("0123456789abcdef", "KL", "", "runs/0123456789abcdef", 1.0, noise),),
        "command": "postmax reproduce small",
        **changes,
    }
    return TableContent(**values)


def large(rows=14, columns=13, seeds=3, epochs=2):
    """A table of many cells: one diverged, one is missing, one has lost a seed, and one row is awful."""
    rng = random.Random(2)
    names = tuple(f"method {i}" for i in range(rows)), tuple(f"symmetric noise {j}" for j in range(columns))
    cells, groups = {}, []
    for i, row in enumerate(names[0]):
        for j, column in enumerate(names[1]):
            centre = 90 - j - 0.3 * i - (40 if i == rows - 1 else 0)
            cells[row, column] = Cell(tuple(rng.gauss(centre, 0.4) for _ in range(seeds)))
        series = (Series(name, metrics(90.0, seeds, epochs, rng), reliability(seeds, 0.1, rng)) for name in names[1])
        groups.append(Group("", row, tuple(series)))
    cells[names[0][1], names[1][0]] = Cell((), failed=seeds)
    cells[names[0][2], names[1][0]] = Cell((), missing=seeds)
    cells[names[0][3], names[1][0]] = Cell((85.0,), failed=1)
    del cells[names[0][4], names[1][1]]
    made = Table("large", "Large", "cpu", "last", "rows", (Panel("", *names, cells),))
    return TableContent(title="A large table", tables=(made,), groups=tuple(groups), command="postmax reproduce large")


def finished(
    folder,
    *,
    seeds=(0, 1, 2),
    readings=("model",),
    rate=0.2,
    transition=MATRIX,
    classes=CLASSES,
    wrong=True,
    more=None,
    cells=CELLS,
    table=None,
    estimate=None,
    shape=(30,),
    **config,
):
    """A run folder that looks as if its run had been trained. With cells=None it is of an older version of postmax."""
    rng = random.Random(0)
    content = {
        "data": {"name": "breast-cancer"},
        "noise": "binary:0.1,0.3",
        "seeds": list(seeds),
        "epochs": 5,
        **config,
    }
    made = make_config(content)
    run = RunFolder(folder)
    run.path.mkdir(parents=True)
    run.write("config.yaml", made.to_yaml().encode())
    records = [{**one, "seed": seeds[one["seed"]]} for one in metrics(95.0, len(seeds), 5, rng)]
    if not wrong:
        records = [{key: value for key, value in one.items() if "labels" not in key} for one in records]
    run.write("metrics.jsonl", "".join(f"{json.dumps(record)}\n" for record in records).encode())
    results = []
    for place, (seed, bins) in enumerate(zip(seeds, reliability(len(seeds), 0.1, rng), strict=True)):
        found = {}
        for step, name in enumerate(readings):
            last = {"epoch": 5, "accuracy": 0.9 + 0.01 * place - 0.1 * step, "calibration_error": 0.02}
            found[name] = {
                "last": last,
                "oracle": {**last, "epoch": 2 + place, "accuracy": last["accuracy"] + 0.05},
                "reliability": bins,
            }
            if made.data.validation_share:
                found[name]["noisy_val"] = {**last, "epoch": 4}
        noise = {"rows": 455, "rate": rate, "sha256": hashlib.sha256(str(seed).encode()).hexdigest()}
        matrix = transition(place) if callable(transition) else transition
        results.append({"seed": seed, "noise": noise, "transition": matrix, "readings": found})
    if cells is not None:
        rules = ("last", "oracle", *(("noisy_val",) if made.data.validation_share else ()))
        taken = {name: {rule: {"epoch": 5, "cells": cells} for rule in rules} for name in readings}
        confusions = [{"seed": seed, "readings": taken} for seed in seeds]
        counts = [sum(rows for label, _, rows in cells if label == i) for i in range(len(classes))]
        validation = [1] * len(classes) if made.data.validation_share else None
        rows = [
            {"seed": seed, "train": [5 * n + place for n in counts], "validation": validation, "test": counts}
            for place, seed in enumerate(seeds)
        ]
        about = {"format": "postmax data 1", "shape": shape, "table": table, "seeds": rows}
        run.write_json("data.json", about)
        run.write_json("confusions.json", {"format": "postmax confusions 1", "seeds": confusions})
    if estimate is not None:
        for place, seed in enumerate(seeds):
            name = "transition.json" if len(seeds) == 1 else f"transition-seed{seed}.json"
            estimate(place).save(run.path / name)
    run.finish(
        {
            "format": 1,
            "run_id": made.run_id,
            "classes": list(classes),
            "parameters": 12345,
            "train_rows": 1455,
            "test_rows": 114,
            "epochs": 5,
            "steps": 45,
            "selection": made.selection,
            "seconds": 62.0,
            "seeds": results,
            "environment": {"torch": "2.13.0", "python": "3.11"},
            **(more or {}),
        }
    )
    return made, run
