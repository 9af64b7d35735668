"""From a store of finished, failed and missing runs to a page."""

from __future__ import annotations

import json
import random
import re

import pytest
from report_examples import metrics, reliability

from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.report.table.collect import collect, tabulate_all
from postmax.report.table.page import write_table_page
from postmax.runs.folder import RunFolder
from postmax.tables import load
from postmax.tables.jobs import jobs
from postmax.tables.tabulate import tabulate

MATRICES = {"binary:0.1,0.3": [[0.7, 0.3], [0.1, 0.9]], "binary:0.2,0.4": [[0.6, 0.4], [0.2, 0.8]]}


def finish(job, store, rng):
    """Put a run into the store that looks as if it had been trained."""
    folder = RunFolder(store / job.run_id)
    folder.path.mkdir(parents=True)
    folder.write("config.yaml", job.config.to_yaml().encode())
    records = [{**one, "seed": job.config.seeds[one["seed"]]} for one in metrics(95.0, len(job.config.seeds), 3, rng)]
    folder.write("metrics.jsonl", "".join(f"{json.dumps(record)}\n" for record in records).encode())
    seeds = []
    for seed, bins in zip(job.config.seeds, reliability(len(job.config.seeds), 0.1, rng), strict=True):
        look = {"epoch": 3, "accuracy": 0.9 + 0.01 * seed, "calibration_error": 0.02}
        reading = {"last": look, "oracle": {**look, "accuracy": look["accuracy"] + 0.01}, "reliability": bins}
        if job.config.data.validation_share:
            reading["noisy_val"] = look
        readings = {"model": reading}
        if job.config.loss.options.get("correction") == "posterior":
            readings["uncorrected"] = reading
        noise = {"rows": 455, "rate": 0.2, "sha256": f"{hash((job.config.noise, seed)) % 16**8:064x}"}
        transition = MATRICES.get(job.config.noise)
        seeds.append({"seed": seed, "noise": noise, "transition": transition, "readings": readings})
    folder.finish(
        {
            "format": 1,
            "run_id": job.run_id,
            "classes": ["malignant", "benign"],
            "parameters": 266,
            "train_rows": 455,
            "test_rows": 114,
            "epochs": 3,
            "steps": 45,
            "selection": "last",
            "seconds": 2.5,
            "seeds": seeds,
            "environment": {"torch": "2.13.0", "threads": str(1 + job.config.seeds[0] % 2)},
        }
    )


def page_of(spec, scale, todo, store, folder):
    """The page of a table, as text."""
    tables = tabulate_all(spec, scale, todo, store)
    return write_table_page(collect(spec, todo, store, tables), folder).read_text("utf-8")


@pytest.fixture
def table():
    spec = load("breast-cancer")
    return spec, jobs(spec, "quick", seeds=4, rows=["kl"])


def test_everything_is_found(table, tmp_path):
    spec, todo = table
    for job in todo:
        finish(job, tmp_path, random.Random(0))
    content = collect(spec, todo, tmp_path, [tabulate(spec, "quick", todo, tmp_path)], command="again")
    assert content.title == spec.title
    assert [(group.panel, group.row) for group in content.groups] == [(one.name, "KL") for one in spec.panels]
    labels = {series.label: series for series in content.groups[0].series}
    assert list(labels) == [column.name for column in spec.columns]
    assert labels["no correction"].reading == "uncorrected"
    assert labels["no noise"].reference
    # All seeds, from however many runs they come.
    assert {record["seed"] for record in labels["objective"].metrics} == {0, 1, 2, 3}
    assert len(labels["objective"].reliability) == 4
    assert [one.title for one in content.matrices] == [one.name for one in spec.panels]
    assert content.matrices[0].matrix == ((0.7, 0.3), (0.1, 0.9))
    assert content.seeds == (0, 1, 2, 3)
    assert content.seconds == pytest.approx(2.5 * len(todo))
    assert "epochs: 100" in content.configuration
    assert "noise" not in content.configuration.split("\n")
    assert any("noise=binary:0.1,0.3" in run.settings for run in content.runs)
    assert all("epochs" not in run.settings for run in content.runs)


def test_runs_that_failed_or_are_missing_are_named(table, tmp_path):
    spec, todo = table
    for job in todo[2:]:
        finish(job, tmp_path, random.Random(0))
    failed = RunFolder(tmp_path / todo[0].run_id)
    failed.path.mkdir()
    failed.write_json("failure.json", {"error": "the loss is NaN in epoch 3 <b>"})
    page = page_of(spec, "quick", todo, tmp_path, tmp_path / "report")
    assert "the loss is NaN in epoch 3 &lt;b&gt;" in page
    assert "(not done)" in page
    assert " failed" in page


def test_estimated_matrices_are_averaged(table, tmp_path):
    spec, todo = table
    for job in todo:
        finish(job, tmp_path, random.Random(0))
    results = RunFolder(tmp_path / todo[0].run_id).result()
    results["seeds"][0]["transition"] = [[0.5, 0.5], [0.3, 0.7]]
    RunFolder(tmp_path / todo[0].run_id).finish(results)
    content = collect(spec, todo, tmp_path, [tabulate(spec, "quick", todo, tmp_path)])
    assert content.matrices[0].title.endswith(", mean of 2 estimates")
    assert 0.5 < content.matrices[0].matrix[0][0] < 0.7


@pytest.mark.parametrize(
    ("overrides", "rules"),
    [
        ((), ["last", "oracle"]),
        (("selection=oracle",), ["oracle", "last"]),
        (("selection=noisy-val", "data.validation_share=0.1"), ["noisy-val", "last", "oracle"]),
    ],
)
def test_the_rule_the_runs_ask_for_is_the_headline(tmp_path, overrides, rules):
    spec = load("breast-cancer")
    todo = jobs(spec, "quick", seeds=2, rows=["kl"], columns=["forward"], overrides=overrides)
    for job in todo:
        finish(job, tmp_path, random.Random(0))
    assert [table.selection for table in tabulate_all(spec, "quick", todo, tmp_path)] == rules
    page = page_of(spec, "quick", todo, tmp_path, tmp_path / "report")
    headings = [
        ("Oracle, " if rule == "oracle" else "Selection: ") + SELECTION_IN_WORDS[rule].removeprefix("oracle, ")
        for rule in rules
    ]
    places = [page.index(f"<h3>{heading}</h3>") for heading in headings]
    assert places == sorted(places)
    assert SELECTION_IN_WORDS[rules[0]] in re.search(r'class="answer">(.*?)</p>', page)[1]
    assert page.count("it is too good for every method") == 1


def test_runs_that_disagree_about_the_rule_have_no_say(tmp_path):
    spec = load("breast-cancer")
    todo = [
        job
        for rule in ("oracle", "last")
        for job in jobs(spec, "quick", seeds=2, rows=["kl"], overrides=[f"selection={rule}"])
    ]
    assert [table.selection for table in tabulate_all(spec, "quick", todo, tmp_path)] == ["last", "oracle"]


def test_a_store_with_nothing_in_it(table, tmp_path):
    spec, todo = table
    page = page_of(spec, "quick", todo, tmp_path / "runs", tmp_path / "report")
    assert "Nothing has been measured yet." in page
