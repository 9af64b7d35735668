"""Definitions of tables: every cell of every table is a valid run, and equal runs are one job."""

from __future__ import annotations

import pytest
import yaml
from table_examples import content, table

from postmax.errors import DataError, InputError, UnknownNameError
from postmax.tables import catalogue
from postmax.tables.catalogue import load
from postmax.tables.jobs import jobs
from postmax.train.config import make_config


@pytest.mark.parametrize("name", catalogue.names())
def test_every_cell_of_every_table_is_a_run(name):
    found = load(name)
    for scale in found.scales:
        todo = jobs(found, scale, rows=["all"], columns=["all"])
        cells = {(place.panel, place.row, place.column) for job in todo for place in job.placements}
        rows, columns = found.scale(scale).rows or found.rows, found.scale(scale).columns or found.columns
        assert len(cells) == len(found.panels) * len(rows) * len(columns)
        assert len({job.run_id for job in todo}) == len(todo)
        assert len({job.label for job in todo}) == len(todo)


def test_a_cell_is_changed_by_scale_panel_row_column_and_overrides_in_this_order():
    todo = jobs(table(), "small", overrides=["batch_size=7", "optimiser.lr=1e-3"])
    cells = {(place.panel, place.row, place.column): job.config for job in todo for place in job.placements}
    config = cells["High", "SL", "forward"]
    expected = {
        "data": {"name": "digits"},
        "loss": {"name": "fpml", "floor": 0.1, "divergence": "sl", "correction": "forward"},
        "noise": "pair:0.4",
        "epochs": 5,
        "batch_size": 7,
        "optimiser": {"lr": 0.001},
        "seeds": config.seeds,
    }
    assert config == make_config(expected)
    assert cells["High", "SL", "plain"].epochs == 3
    assert cells["High", "SL", "clean"].noise == "none"


def test_what_parts_set_at_a_scale_or_for_a_group_of_columns_comes_after_what_they_always_set():
    rows = [
        {
            "name": "CE",
            "set": {"loss": {"name": "gce", "q": 0.5}, "epochs": 2},
            "at": {
                "small": {"epochs": 3, "loss.q": 0.6, "batch_size": 5},
                "digits": {"epochs": 4, "batch_size": 6},
                "small/a": {"batch_size": 7},
            },
        },
        {"name": "MAE", "set": {"loss": "mae"}},
    ]
    columns = [
        {"name": "a", "group": "digits", "set": {"data.name": "digits"}},
        {"name": "b", "set": {"data.name": "iris"}, "at": {"other": {"data.name": "wine", "batch_size": 9}}},
    ]
    panels = [{"name": "all", "at": {"other": {"noise": "symmetric:0.1"}}}]
    found = table(run={"data": {}}, rows=rows, columns=columns, panels=panels, reported={})

    def cells(scale):
        todo = jobs(found, scale, seeds=1)
        return {(place.row, place.column): job.config for job in todo for place in job.placements}

    small, other = cells("small"), cells("other")
    assert [small["CE", column].epochs for column in "ab"] == [4, 3]
    assert [other["CE", column].epochs for column in "ab"] == [4, 2]
    assert [small["CE", column].batch_size for column in "ab"] == [7, 5]
    assert other["CE", "a"].batch_size == 6
    assert [scale["CE", "b"].loss.options for scale in (small, other)] == [{"q": 0.6}, {"q": 0.5}]
    assert [(scale["MAE", "b"].data.name, scale["MAE", "b"].batch_size) for scale in (small, other)] == [
        ("iris", 128),
        ("wine", 9),
    ]
    assert (small["MAE", "a"].noise, other["MAE", "a"].noise) == ("none", "symmetric:0.1")
    # How a row is trained may be changed for all rows; what a heading says may not.
    assert {job.config.epochs for job in jobs(found, "small", rows=["MAE"], overrides=["epochs=1"])} == {1}
    for override in ("data.name=wine", "loss.name=ce", "loss=ce"):
        with pytest.raises(InputError, match="the table itself varies"):
            jobs(found, "other", overrides=[override])
    with pytest.raises(InputError, match="varies batch_size"):
        jobs(found, "other", overrides=["batch_size=3"])
    assert jobs(found, "small", overrides=["batch_size=3"])


def test_a_scale_may_have_only_some_rows_and_columns():
    scales = {"all": {"seeds": 1}, "some": {"seeds": 1, "rows": ["SL", "Pearson"], "columns": ["plain", "clean"]}}
    found = table(scales=scales)

    def cells(scale, **chosen):
        return {(place.row, place.column) for job in jobs(found, scale, **chosen) for place in job.placements}

    assert cells("some") == {("SL", "plain"), ("SL", "clean")}
    assert {row for row, _ in cells("some", rows=["all"])} == {"SL", "Pearson"}
    assert {column for _, column in cells("some", columns=["all"])} == {"plain", "clean"}
    assert len(cells("all", rows=["all"], columns=["all"])) == 12
    with pytest.raises(InputError, match="there is no row 'KL' at scale some; there are SL, Pearson"):
        cells("some", rows=["kl", "sl"])
    with pytest.raises(InputError, match="there is no column 'forward' at scale some; there are plain, clean"):
        cells("some", columns=["Forward"])


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({"name": "gce", "preset": "cifar11"}, "test, Low, KL, plain: unknown preset 'cifar11'. Did you mean 'cifar10"),
        ({"name": "gcee"}, "test, Low, KL, plain: unknown loss 'gcee'. Did you mean 'gce'"),
        ({"name": "gce", "r": 1}, "unknown option of the loss gce 'r'"),
        ({"name": "gce", "q": -1}, "q"),
    ],
)
def test_a_loss_that_cannot_be_made_is_named_before_anything_runs(loss, message):
    rows = [{"name": "KL", "set": {"loss": loss}}]
    columns = [{"name": "plain"}]
    with pytest.raises(InputError, match=message):
        jobs(table(run={"data": {"name": "digits"}}, rows=rows, columns=columns, reported={}), "small")


def test_equal_runs_are_one_job():
    todo = jobs(table(), "small", rows=["kl"])
    assert [(job.label, len(job.placements)) for job in todo if job.config.seeds == (0, 1)] == [
        ("KL · plain/posterior · Low · seeds 0–1", 2),
        ("KL · forward · Low · seeds 0–1", 1),
        ("KL · clean · seeds 0–1", 2),
        ("KL · plain/posterior · High · seeds 0–1", 2),
        ("KL · forward · High · seeds 0–1", 1),
    ]
    assert [place.reading for place in todo[0].placements] == ["uncorrected", "model"]


def test_seeds_are_stacked_so_that_fewer_are_part_of_more():
    few, many = jobs(table(), "small", seeds=4), jobs(table(), "small", seeds=7)
    assert {job.run_id for job in few} < {job.run_id for job in many}
    assert sorted({job.config.seeds for job in many}) == [(0, 1), (2, 3), (4, 5), (6,)]
    assert {job.config.seeds for job in jobs(table(), "other")} == {(5,), (7,)}
    assert {job.config.seeds for job in jobs(table(), "small", seeds=[8, 3, 1])} == {(8, 3), (1,)}
    for bad in (0, [], [1, 1]):
        with pytest.raises(InputError, match="seeds"):
            jobs(table(), "small", seeds=bad)


def test_a_method_that_trains_one_seed_at_a_time_has_a_run_for_each_seed():
    rows = [{"name": "CE", "set": {"loss": "ce"}}, {"name": "SOP", "set": {"loss": "ce", "method": "sop"}}]
    columns = [{"name": "a"}, {"name": "b", "set": {"noise": "none"}}]
    found = table(rows=rows, columns=columns, panels=[{"name": "all"}], reported={})
    todo = jobs(found, "small", seeds=2, columns=["a"])
    assert [(job.config.method.name, job.config.seeds) for job in todo] == [
        ("standard", (0, 1)),
        ("sop", (0,)),
        ("sop", (1,)),
    ]
    assert [job.label for job in todo] == ["CE", "SOP · seed 0", "SOP · seed 1"]


def test_rows_and_columns_are_chosen_without_regard_to_case():
    def names(**chosen):
        todo = jobs(table(), "small", seeds=1, columns=["Clean"], **chosen)
        return [job.placements[0].row for job in todo]

    assert names() == ["KL", "SL"]
    assert names(rows=["all"]) == ["KL", "SL", "Pearson"]
    assert names(rows=["PEARSON", "kl"]) == ["KL", "Pearson"]
    with pytest.raises(UnknownNameError, match=r"unknown row 'pearsen' \(did you mean 'Pearson'\?\)\. Known: KL, SL"):
        names(rows=["pearsen"])
    with pytest.raises(InputError, match="no row"):
        names(rows=[])
    with pytest.raises(UnknownNameError, match=r"unknown columns 'foward' \(did you mean 'forward'\?\), 'x'\."):
        jobs(table(), "small", columns=["foward", "plain", "x"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss.divergence=gan", "varies loss.divergence"),
        ("loss=ce", "varies loss.correction"),
        ("noise=none", "varies noise"),
        ("seeds=[1]", "its own seeds"),
        ("epochz=3", "test, Low, KL, plain: unknown key 'epochz'. Did you mean 'epochs'"),
        ("batch_size", "not of the form key=value"),
    ],
)
def test_overrides_that_would_make_the_table_lie_are_refused(override, message):
    with pytest.raises(InputError, match=message):
        jobs(table(), "small", overrides=[override])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"panles": []}, "unknown key 'panles'. Did you mean 'panels'"),
        ({"rows": [{"name": "KL", "sett": {}}]}, "unknown key 'rows.KL.sett'. Did you mean 'rows.KL.set'"),
        (
            {"scales": {"cpu": {"seeds": 1, "stak": 1}}},
            "unknown key 'scales.cpu.stak'. Did you mean 'scales.cpu.stack'",
        ),
        ({"scales": {}}, "scales must be one or more keys with values, not {}"),
        (
            {"scales": {"cpu": {"seeds": 0}}},
            "scales.cpu.seeds must be a whole number of at least 1 or a list of whole numbers, not 0",
        ),
        ({"scales": {"cpu": {"seeds": "many"}}}, "scales.cpu.seeds must be a whole number .* not 'many'"),
        ({"rows": [{"name": 5}]}, "rows.5.name must be a text, not 5"),
        ({"run": "digits"}, "run must be keys with values, not 'digits'"),
        ({"reported": {"Low": {"KL": {"plain": "high"}}}}, "reported.Low.KL.plain must be a number, not 'high'"),
        ({"title": None}, "title must be a text, but it is empty"),
        ({"rows": [{"name": "KL"}, {"name": "kl"}]}, "rows: 'kl' is there twice"),
        ({"reported": {"Lo": {}}}, "reported: panel 'Lo' is not among Low, High"),
        ({"reported": {"Low": {"KL": {"plane": 1}}}}, "reported: column 'plane' is not among plain"),
        ({"compare": "cells"}, "compare must be one of rows, columns, not 'cells'"),
        (
            {"rows": [{"name": "KL", "at": {"smal": {}}}], "reported": {}},
            "row 'KL', at: 'smal' is not among small, other",
        ),
        (
            {"rows": [{"name": "KL", "at": {"small/plane": {}}}], "reported": {}},
            "row 'KL', at: 'small/plane' is not among small, other, nor a column at a scale, such as 'small/plain'",
        ),
        (
            {"panels": [{"name": "Low", "at": {"small/plain": {}}}], "reported": {}},
            "panel 'Low', at: 'small/plain' is not among small, other",
        ),
        (
            {"columns": [{"name": "a", "group": "g", "at": {"g": {}}}], "reported": {}},
            "column 'a', at: 'g' is not among small, other",
        ),
        (
            {"columns": [{"name": "a", "group": "small"}], "reported": {}},
            "'small' is a scale and a group of columns",
        ),
        ({"scales": {"cpu": {"seeds": 1, "rows": ["LK"]}}}, "scales.cpu: row 'LK' is not among KL"),
        ({"scales": {"cpu": {"seeds": 1, "columns": ["x"]}}}, "scales.cpu: column 'x' is not among plain"),
    ],
)
def test_mistakes_in_a_protocol_are_named(change, message):
    with pytest.raises(InputError, match=message):
        table(**change)


def test_all_that_is_missing_or_unknown_is_said_at_once():
    found = content(
        titel="A table",
        scales={"small": {"stak": 2, "tuning": {"columns": ["plain"]}}},
        rows=[{"name": "KL", "sett": {}}, {"set": {"loss": "ce"}}],
    )
    for key in ("title", "columns"):
        del found[key]
    with pytest.raises(InputError) as error:
        catalogue.make(found, name="mine", where="mine.yaml")
    first, *lines = str(error.value).splitlines()
    assert first == "mine.yaml: 9 problems"
    beginnings = [
        "title is missing: the heading of the table.",
        "scales.small.seeds is missing: how many seeds, counted from 0, or a list of seeds.",
        "scales.small.tuning.seeds is missing: the seeds with which settings are tried.",
        "scales.small.tuning.budget is missing: the most settings that a row may try",
        "unknown key 'scales.small.stak'. Did you mean 'scales.small.stack'?",
        "unknown key 'rows.KL.sett'. Did you mean 'rows.KL.set'?",
        "rows.#2.name is missing: the heading.",
        "columns is missing: the columns, from left to right.",
        "unknown key 'titel'. Did you mean 'title'?",
        "Every key of a table is explained in docs/own-table.md.",
    ]
    for line, beginning in zip(lines, beginnings, strict=True):
        assert line.strip().startswith(beginning)


def test_all_contradictions_are_said_at_once():
    reported = {"Low": {"LK": {"plain": 1.0, "plane": 2.0}}}
    panels = [{"name": "Low", "at": {"smal": {}}}]
    with pytest.raises(InputError) as error:
        table(reported=reported, panels=panels)
    assert str(error.value).splitlines()[:-1] == [
        "the table: 3 problems",
        "  reported: row 'LK' is not among KL, SL, Pearson.",
        "  reported: column 'plane' is not among plain, posterior, forward, clean.",
        "  panel 'Low', at: 'smal' is not among small, other.",
    ]


def test_a_table_of_your_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content()))
    found = load(path)
    assert (found.name, found.reported_value("Low", "KL", "plain")) == ("mine", 90.0)
    assert found.reported_value("High", "KL", "plain") is None
    with pytest.raises(UnknownNameError, match=r"unknown scale of mine 'smal'. Did you mean 'small'"):
        jobs(found, "smal")


def test_tables_that_do_not_exist():
    with pytest.raises(UnknownNameError, match=r"unknown table 'breastcancer'. Did you mean 'breast-cancer'"):
        load("breastcancer")
    with pytest.raises(DataError, match=r"no/such.yaml: there is no such file\.$"):
        load("no/such.yaml")
    with pytest.raises(DataError, match=r"there is no such file. The table .* is called breast-cancer\.$"):
        load("breast-cancer.yaml")


def test_a_file_of_your_own_that_is_nearly_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mytable.yaml"
    path.write_text(yaml.safe_dump(content()))
    with pytest.raises(UnknownNameError, match=r"unknown table 'mytable'.* whole name of the file: mytable\.yaml\."):
        load("mytable")
    with pytest.raises(DataError, match=r"Did you mean 'mytable.yaml'\?"):
        load("mytabel.yaml")
    assert load("mytable.yaml").name == "mytable"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"mine\.yaml is empty\."),
        (b"# only a comment", r"mine\.yaml is empty\."),
        (b"title: x\nrows: a: b", "not YAML: line 2, column 8: mapping values are not allowed here"),
        (b"title: x\nrows:\ntitle: y", "not YAML: line 3, column 1: the key 'title' is there twice"),
        (b"\xff\xfe\x00\x81", "is not a text file"),
        (b"- a\n- b", "should hold keys and values .*, but holds a list"),
        (b"a,b\n1,2", "should hold keys and values .*, but holds only 'a,b 1,2'"),
    ],
)
def test_files_that_are_not_tables(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text)
    with pytest.raises(DataError, match=message):
        load(path)


def test_your_own_files_are_hashed_once():
    asked = []

    def resolve(config):
        asked.append(config)
        return config.model_copy(update={"data": config.data.model_copy(update={"sha256": "ab"})})

    todo = jobs(table(run={"data": {"path": "x.csv", "labels": "y"}}), "small", resolve=resolve)
    assert len(asked) == 1
    assert {job.config.data.sha256 for job in todo} == {"ab"}
