"""Settings are chosen by noisy validation accuracy alone, with the same budget for each row, and are then used."""

from __future__ import annotations

import json

import pytest
import yaml
from fake_runs import fake_result

from postmax.errors import DataError, InputError
from postmax.report.table.text import to_json
from postmax.report.table.tuned_text import tuned_to_markdown
from postmax.runs.folder import RunFolder
from postmax.sweep.sweep import sweep
from postmax.tables import catalogue
from postmax.tables.catalogue import make
from postmax.tables.jobs import jobs
from postmax.tables.tabulate import tabulate
from postmax.tables.trials import digest
from postmax.tables.tuned import Score, TunedRow, read_tuned
from postmax.train.settings import as_overrides, read_yaml
from postmax.tuning.choose import choose, nothing_chosen, trial_jobs, trials
from postmax.tuning.tuned_file import add_to_file, merged, rows_to_keep, write_tuned

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


# What is tried


def test_every_combination_with_the_tuning_columns_and_seeds_in_stacks():
    tried = trials(table(), "small")
    settings = [(0.1, 0.0), (0.1, 0.1), (0.01, 0.0), (0.01, 0.1)]
    expected = [{"optimiser.lr": lr, "optimiser.weight_decay": decay} for lr, decay in settings]
    assert [(trial.row, trial.settings) for trial in tried] == [("KL", one) for one in expected]
    for trial, (lr, decay) in zip(tried, settings, strict=True):
        found = {(job.config.noise, job.config.seeds) for job in trial.jobs}
        stacks = [(100, 101), (102,)]
        assert found == {(noise, stack) for noise in ("symmetric:0.2", "symmetric:0.6") for stack in stacks}
        for job in trial.jobs:  # also where row and column say otherwise
            assert (job.config.optimiser.lr, job.config.optimiser.weight_decay) == (lr, decay)
            assert job.label.endswith(f"optimiser.lr={lr} optimiser.weight_decay={decay}")
    todo = trial_jobs(tried)
    assert len(todo) == len({job.run_id for job in todo}) == len({job.label for job in todo}) == 16


def test_rows_are_chosen_as_for_a_table():
    assert {trial.row for trial in trials(table(), "small", ["all"])} == {"KL", "SL"}
    assert {trial.row for trial in trials(table(), "small", ["sl"])} == {"SL"}
    with pytest.raises(InputError, match="row 'CE' of test has no grid"):
        trials(table(), "small", ["kl", "ce"])
    with pytest.raises(InputError, match=r"unknown row 'kll'\. Did you mean 'kl'"):
        trials(table(), "small", ["kll"])
    with pytest.raises(InputError, match=r"how to tune at scale plain .*Scales that do: small"):
        trials(table(), "plain")
    with pytest.raises(InputError, match="no row has a grid"):
        trials(table(rows=[{"name": "CE"}]), "small")


def test_your_own_files_are_hashed_once():
    asked = []
    trials(table(), "small", ["all"], resolve=lambda config: asked.append(config) or config)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ["mid"]}, "scales.small.tuning: column 'mid' is not among low, high, clean"),
        ({"seeds": [1, 100]}, "scales.small.tuning: seed 1 is one of the table's own"),
        ({"budget": 3}, "row 'KL' has 4 settings, more than scales.small.tuning.budget"),
        ({"budgt": 3}, "unknown key 'scales.small.tuning.budgt'"),
        ({"seeds": []}, "scales.small.tuning.seeds"),
    ],
)
def test_tuning_that_is_not_fair_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        table(scales={"small": {"seeds": 2, "tuning": {**TUNING, **change}}})


def test_a_grid_without_values_is_refused():
    with pytest.raises(InputError, match=r"rows\.0\.grid"):
        table(rows=[{"name": "KL", "grid": {"optimiser.lr": []}}])


@pytest.mark.parametrize("share", [{"data.validation_share": 0.0}, {"data": {"validation_share": 0}}])
def test_without_validation_rows_there_is_nothing_to_choose_by(share):
    message = r"scales\.small\.tuning chooses by validation rows; set data\.validation_share"
    with pytest.raises(InputError, match=message):
        table(scales={"small": {"seeds": 2, "tuning": TUNING, "set": share}})
    with pytest.raises(InputError, match=message):
        table(run={"data": {"name": "digits"}})
    later = {"small": {"seeds": 2, "tuning": TUNING, "set": {"data.validation_share": 0.1}}}
    assert table(run={"data": {"name": "digits"}}, scales=later).scale("small").tuning is not None


@pytest.mark.parametrize("part", ["rows", "panels", "columns"])
def test_validation_rows_that_a_part_takes_away_are_missed_before_anything_is_run(part):
    base = content()
    parts = [dict(one) for one in base[part]]
    changed = next(one for one in parts if one["name"] in ("KL", "all", "high"))
    changed["set"] = {**changed.get("set", {}), "data.validation_share": 0.0}
    with pytest.raises(InputError, match=r"test, all, KL, (low|high): data\.validation_share must not be 0 where"):
        trials(table(**{part: parts}), "small")


# What is chosen


def test_the_best_relative_to_the_row_in_each_column_wins(tmp_path):
    """In raw accuracy the first would win, by what it has in the easy column."""
    values = {
        (0.1, 0.0): {"low": 0.9, "high": 0.1},
        (0.1, 0.1): {"low": 0.6, "high": 0.2},
        (0.01, 0.0): {"low": 0.5, "high": 0.4},
        (0.01, 0.1): {"low": 0.1, "high": 0.4},
    }

    def accuracy(settings, column, seed):
        return values[tuple(settings.values())][column] + {100: 0.01, 101: -0.01, 102: 0.0}[seed]

    tried = trials(table(), "small")
    fill(tried, tmp_path, accuracy)
    tuned = choose(table(), "small", tried, tmp_path)
    assert tuned.settings == {"KL": {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.0}}
    row = tuned.rows["KL"]
    expected = [(1 + 1 / 4) / 2, (2 / 3 + 1 / 2) / 2, (5 / 9 + 1) / 2, (1 / 9 + 1) / 2]
    assert [score.score for score in row.scores] == pytest.approx(expected)
    assert row.scores[0].accuracy == pytest.approx({"low": 0.9, "high": 0.1})
    assert [score.settings for score in row.scores] == [trial.settings for trial in tried]
    assert (tuned.budget, tuned.columns, tuned.seeds) == (4, ("low", "high"), (100, 101, 102))


def test_every_seed_counts_the_same_however_they_are_stacked(tmp_path):
    tried = trials(table(), "small")
    fill(tried, tmp_path, lambda settings, column, seed: {100: 0.1, 101: 0.2, 102: 0.9}[seed])
    tuned = choose(table(), "small", tried, tmp_path)
    assert tuned.rows["KL"].scores[0].accuracy["low"] == pytest.approx(0.4)
    assert tuned.settings["KL"] == tried[0].settings  # the first of equals
    assert {score.score for score in tuned.rows["KL"].scores} == {1.0}


def test_a_setting_that_diverged_has_nothing_there(tmp_path):
    def accuracy(settings, column, seed):
        if settings["optimiser.lr"] == 0.1:  # one stack of the column is enough
            return None if column == "high" and seed == 102 else 0.9
        return 0.5 if settings["optimiser.weight_decay"] else None

    tried = trials(table(), "small")
    fill(tried, tmp_path, accuracy)
    tuned = choose(table(), "small", tried, tmp_path)
    scores = tuned.rows["KL"].scores
    assert [score.score for score in scores] == pytest.approx([0.5, 0.5, 0.0, (0.5 / 0.9 + 1) / 2])
    assert scores[0].accuracy == {"low": pytest.approx(0.9), "high": None}
    assert tuned.settings["KL"] == {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}


def test_where_everything_diverged_the_first_is_taken(tmp_path):
    tried = trials(table(), "small")
    fill(tried, tmp_path, lambda *_: None)
    tuned = choose(table(), "small", tried, tmp_path)
    assert tuned.settings["KL"] == tried[0].settings
    assert {score.score for score in tuned.rows["KL"].scores} == {0.0}


def test_panels_are_columns_of_their_own(tmp_path):
    panels = [{"name": "A"}, {"name": "B", "set": {"batch_size": 7}}]
    spec = table(panels=panels)
    tried = trials(spec, "small")
    fill(tried, tmp_path, lambda settings, column, seed: settings["optimiser.lr"])
    tuned = choose(spec, "small", tried, tmp_path)
    assert set(tuned.rows["KL"].scores[0].accuracy) == {"A · low", "A · high", "B · low", "B · high"}


def test_runs_that_are_not_done_and_runs_without_validation_are_named(tmp_path):
    tried = trials(table(), "small")
    with pytest.raises(DataError, match=r"KL · low · seeds 100–101 · optimiser.lr=0.1 .* is not done"):
        choose(table(), "small", tried, tmp_path)
    fill(tried, tmp_path, lambda *_: 0.5)
    path = tmp_path / tried[0].jobs[0].run_id / "metrics.jsonl"
    path.write_text(path.read_text().replace("val_accuracy", "other"))
    with pytest.raises(InputError, match=r"seed 100 has no validation accuracy in epoch 2; data.validation_share"):
        choose(table(), "small", tried, tmp_path)


# The file


def a_tuned(rows=("KL",), **changes):
    settings = {"KL": {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}, "SL": {"loss.floor": 0.2}}
    found = {
        row: TunedRow(
            chosen=settings[row],
            scores=(Score(settings=settings[row], score=1.0, accuracy={"low": 0.5, "high": None}),),
        )
        for row in rows
    }
    return nothing_chosen(table(), "small").model_copy(update={"rows": found, **changes})


def test_what_is_written_is_read_back_and_says_what_it_is(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(a_tuned(), path)
    assert read_tuned(path) == a_tuned()
    assert path.read_text().startswith("# Chosen by `postmax tune test --scale small` on noisy validation labels")
    assert read_yaml(path)["rows"]["KL"]["chosen"] == {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}
    path.write_text(path.read_text().replace("budget: 4", "budgt: 4"))
    with pytest.raises(InputError, match=r"tuned\.yaml: .*budg.* `postmax tune` writes such files"):
        read_tuned(path)


def test_other_rows_stay_where_some_are_tuned_again():
    old = a_tuned(("KL", "SL"))
    new = nothing_chosen(table(), "small").model_copy(
        update={"rows": {"SL": TunedRow(chosen={"loss.floor": 0.1}, scores=())}}
    )
    assert merged(new, old).settings == {**old.settings, "SL": {"loss.floor": 0.1}}
    for key, value in {"seeds": (7,), "columns": ("low",), "budget": 9, "scale": "x", "table": "y"}.items():
        with pytest.raises(InputError, match=f"tuned with another {key}"):
            merged(new, a_tuned(**{key: value}))


@pytest.mark.parametrize(
    ("tuned", "message"),
    [
        (a_tuned(scale="cpu"), "for test at scale cpu, not for test at small"),
        (a_tuned(table="other"), "for other at scale small, not for test at small"),
        (a_tuned().model_copy(update={"rows": {"KK": a_tuned().rows["KL"]}}), "row in the tuned settings 'KK'"),
        (
            a_tuned().model_copy(update={"rows": {"KL": TunedRow(chosen={"optimiser.lr": 3}, scores=())}}),
            r"row 'KL', \{'optimiser.lr': 3\}, are not in its grid any more: run `postmax tune test --scale small`",
        ),
    ],
)
def test_settings_of_something_else_are_refused(tuned, message):
    with pytest.raises(InputError, match=message):
        jobs(table(), "small", tuned=tuned)


def a_digested(rows=("KL",)):
    plain = a_tuned(rows)
    found = {
        name: row.model_copy(update={"digest": digest(table(), "small", name)}) for name, row in plain.rows.items()
    }
    return plain.model_copy(update={"rows": found})


def test_what_is_chosen_says_which_runs_tried_it(tmp_path):
    tried = trials(table(), "small", ["all"])
    fill(tried, tmp_path, lambda *_: 0.5)
    tuned = choose(table(), "small", tried, tmp_path)
    for name, row in tuned.rows.items():
        assert row.digest == digest(table(), "small", name)
    assert tuned.rows["KL"].digest != tuned.rows["SL"].digest
    assert tuned.checked(table(), "small") is tuned
    with pytest.raises(InputError, match="unknown row 'KK'"):
        digest(table(), "small", "KK")


def other_tables():
    """The table after a change that leaves what was chosen in the grid."""
    base = content()
    columns = [{**base["columns"][0], "set": {"noise": "symmetric:0.3"}}, *base["columns"][1:]]
    rows = [base["rows"][0], {**base["rows"][1], "set": {"loss": {"divergence": "js"}}}, base["rows"][2]]
    wider = {**base["rows"][1], "grid": {"optimiser.lr": [0.2, 0.01], "optimiser.weight_decay": [0.0, 0.1]}}
    return {
        "epochs": table(run={**base["run"], "epochs": 3}),
        "decay": table(run={**base["run"], "optimiser": {"weight_decay": 0.3, "momentum": 0.5}}),
        "noise of a tuning column": table(columns=columns),
        "loss": table(rows=rows),
        "grid": table(rows=[base["rows"][0], wider, base["rows"][2]]),
    }


@pytest.mark.parametrize("change", other_tables())
def test_settings_that_were_chosen_for_another_training_are_refused(change):
    jobs(table(), "small", tuned=a_digested())
    other = other_tables()[change]
    with pytest.raises(InputError, match=r"row 'KL' was tuned when .*: run `postmax tune test --scale small` again"):
        jobs(other, "small", tuned=a_digested())
    jobs(other, "small", tuned=a_tuned())  # files that are older than the digest are taken at their word


@pytest.mark.parametrize("change", [{"columns": ["low"]}, {"seeds": [100]}, {"budget": 5}])
def test_settings_that_were_chosen_in_another_way_are_refused(change):
    other = table(scales={"small": {"seeds": 2, "stack": 2, "tuning": {**TUNING, **change}}})
    with pytest.raises(InputError, match=f"tuned with another {next(iter(change))} .* `postmax tune test .* again"):
        jobs(other, "small", tuned=a_tuned())


def test_a_file_keeps_the_rows_that_are_not_tried_now(tmp_path):
    path = tmp_path / "tuned.yaml"
    assert rows_to_keep(path, a_digested(), table()).rows == {}
    add_to_file(a_digested(("SL",)), path, table())
    add_to_file(a_digested(("KL",)), path, table())
    assert set(read_tuned(path).rows) == {"KL", "SL"}
    assert set(rows_to_keep(path, a_digested(("KL",)), table()).rows) == {"SL"}


def test_rows_that_cannot_stay_are_not_mixed_with_others(tmp_path):
    path = tmp_path / "tuned.yaml"
    add_to_file(a_digested(("SL",)), path, table())
    before = path.read_bytes()
    other = table(run={**content()["run"], "epochs": 3})
    with pytest.raises(InputError, match="row 'SL' was tuned when"):
        add_to_file(a_tuned(("KL",)), path, other)
    with pytest.raises(InputError, match=r"rows that the file has already \(SL\) were tuned with another seeds"):
        add_to_file(a_tuned(("KL",), seeds=(7,)), path, table())
    assert path.read_bytes() == before
    add_to_file(a_tuned(("SL",), seeds=(7,)), path, table())  # nothing has to stay
    assert read_tuned(path).seeds == (7,)


# Use in a table


def test_tuned_settings_come_after_row_and_column():
    todo = jobs(table(), "small", rows=["all"], tuned=a_tuned())
    rates = {(place.row, place.column): job.config.optimiser.lr for job in todo for place in job.placements}
    assert {rates["KL", column] for column in ("low", "high", "clean")} == {0.01}
    assert (rates["CE", "low"], rates["CE", "high"]) == (0.02, 0.7)
    assert rates["SL", "low"] == 0.02  # it has no entry
    for job in todo:
        for place in job.placements:
            assert place.tuned == (a_tuned().settings["KL"] if place.row == "KL" else {})


def test_keys_of_a_grid_cannot_be_overridden():
    for text in ("optimiser.weight_decay=1", "optimiser=adam"):
        with pytest.raises(InputError, match="the table itself varies optimiser"):
            jobs(table(), "plain", rows=["KL"], columns=["low"], overrides=[text])
    jobs(table(), "plain", rows=["CE"], columns=["low"], overrides=["optimiser.weight_decay=1"])


def test_a_seed_that_chose_does_not_judge():
    with pytest.raises(InputError, match="seed 100 chose the settings"):
        jobs(table(), "small", seeds=101, tuned=a_tuned())
    jobs(table(), "small", seeds=101)  # nothing was chosen


@pytest.fixture
def our_tables(tmp_path, monkeypatch):
    """A folder of tables as if they came with postmax, with settings that were tuned for one of them."""
    monkeypatch.setattr(catalogue, "_SHIPPED", tmp_path)
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content()))
    (tmp_path / "tuned").mkdir()
    write_tuned(a_tuned(), tmp_path / "tuned" / "test-small.yaml")
    return tmp_path


def test_what_comes_with_a_table_is_used_for_it_alone(our_tables):
    def rate(spec, scale="small"):
        return jobs(spec, scale, rows=["KL"], columns=["low"])[0].config.optimiser.lr

    assert catalogue.names() == ("test",)
    assert rate(catalogue.load("test")) == 0.01
    assert rate(catalogue.load("test"), "plain") == 0.5
    assert rate(table(title="Another table of this name")) == 0.5
    # While settings are tried, none that were chosen before play a part.
    assert {job.config.optimiser.lr for job in trial_jobs(trials(catalogue.load("test"), "small"))} == {0.1, 0.01}


def a_borrower(lender="test", name="borrower", **changes):
    base = content()
    scales = {"small": {"seeds": 2, "stack": 2, "tuned_by": lender}, "plain": {"seeds": 2, "stack": 2}}
    rows = [{key: value for key, value in row.items() if key != "grid"} for row in base["rows"]]
    parts = {"scales": scales, "rows": rows[:2], "columns": base["columns"][:1]}
    return make({**base, **parts, **changes}, name=name)


def test_a_table_borrows_what_was_chosen_for_another(our_tables):
    borrower = a_borrower()
    assert [job.config.optimiser.lr for job in jobs(borrower, "plain")] == [0.02, 0.5]
    borrowed = {job.run_id: {place.row for place in job.placements} for job in jobs(borrower, "small")}
    lent = {job.run_id for job in jobs(catalogue.load("test"), "small", rows=["CE", "KL"], columns=["low"])}
    assert set(borrowed) == lent  # the same runs, which are run once
    assert sorted(map(sorted, borrowed.values())) == [["CE"], ["KL"]]
    (our_tables / "tuned" / "test-small.yaml").unlink()
    assert [job.config.optimiser.lr for job in jobs(borrower, "small")] == [0.02, 0.5]


def test_what_was_borrowed_cannot_be_overridden(our_tables):
    for text in ("optimiser.weight_decay=1", "optimiser=adam"):
        with pytest.raises(InputError, match="the table itself varies optimiser"):
            jobs(a_borrower(), "small", rows=["KL"], overrides=[text])
    jobs(a_borrower(), "small", rows=["CE"], overrides=["optimiser.weight_decay=1"])  # nothing was tuned for it
    jobs(a_borrower(), "plain", rows=["KL"], overrides=["optimiser.weight_decay=1"])


def test_a_file_of_the_lender_counts_for_the_borrower(our_tables):
    (our_tables / "tuned" / "test-small.yaml").unlink()
    todo = jobs(a_borrower(), "small", tuned=a_digested(("KL", "SL")))  # it has no row SL
    assert {place.row: place.tuned for job in todo for place in job.placements} == {
        "CE": {},
        "KL": a_tuned().settings["KL"],
    }
    with pytest.raises(InputError, match="for borrower at scale small, not for test at small"):
        jobs(a_borrower(), "small", tuned=a_tuned(table="borrower"))


def test_a_borrower_is_not_tuned(our_tables):
    with pytest.raises(InputError, match="borrower takes its settings from test at scale small: tune that"):
        trials(a_borrower(), "small")


def test_who_cannot_lend(our_tables):
    with pytest.raises(InputError, match=r"scales\.small\.tuned_by: a table cannot borrow from itself"):
        a_borrower(lender="test", name="test")
    with pytest.raises(InputError, match=r"scales\.small\.tuned_by: there is no table 'tset', only test"):
        a_borrower(lender="tset")
    (our_tables / "second.yaml").write_text(yaml.safe_dump(content(scales={"small": {"seeds": 1, "tuned_by": "test"}})))
    with pytest.raises(InputError, match=r"borrower, scales\.small\.tuned_by: second .* takes them from test"):
        jobs(a_borrower(lender="second"), "small")
    (our_tables / "third.yaml").write_text(yaml.safe_dump(content(scales={"large": {"seeds": 1}})))
    with pytest.raises(InputError, match=r"borrower, scales\.small\.tuned_by: third has no scale small, only large"):
        jobs(a_borrower(lender="third"), "small")
    mine = our_tables / "mine.yaml"
    mine.write_text(yaml.safe_dump(content(scales={"small": {"seeds": 1, "tuned_by": str(mine)}})))
    with pytest.raises(InputError, match=r"mine, scales\.small\.tuned_by: .* takes them from"):
        jobs(catalogue.load(mine), "small")


def test_rows_for_which_nothing_was_tuned_are_named(our_tables, tmp_path):
    def note(spec, scale="small", **options):
        return tabulate(spec, scale, jobs(spec, scale, **options), tmp_path / "runs").note

    assert note(a_borrower()) == "Not tuned, but trained as the table says: CE."
    assert note(a_borrower(), rows=["KL"]) == note(a_borrower(), "plain") == ""
    assert note(catalogue.load("test"), rows=["all"]) == "Not tuned, but trained as the table says: SL."
    assert note(table(title="Another"), rows=["all"]) == "Not tuned, but trained as the table says: KL, SL."


def test_tables_show_what_was_chosen(tmp_path):
    todo = jobs(table(), "small", tuned=a_tuned())
    for job in todo:
        finish(job, tmp_path, lambda seed: 0.5)
    found = tabulate(table(), "small", todo, tmp_path)
    assert found.tuned == {"KL": {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}}
    assert to_json(found)["tuned"] == found.tuned
    assert tabulate(table(), "small", jobs(table(), "small"), tmp_path).tuned == {}


def test_settings_as_text_stay_in_their_cell():
    assert tuned_to_markdown({}) == ""
    text = tuned_to_markdown({"a|b\nc": {"loss": {"name": "x`|y"}, "noise": "n"}})
    assert text.splitlines()[0] == "## Settings chosen on noisy validation"
    assert text.splitlines()[-1] == r"| a\|b c | `" + r"""loss={"name": "x'\|y"} noise=n` |"""
    assert as_overrides({"a.b": None, "c": [1, 2.5], "d": True}) == "a.b=null c=[1, 2.5] d=true"


# For real


def test_a_learning_rate_that_learns_nothing_loses(tmp_path):
    rows = [{"name": "CE", "set": {"loss": "ce"}, "grid": {"optimiser.lr": [1e-6, 0.1]}}]
    tuning = {"columns": ["low"], "seeds": [8, 9], "budget": 2}
    scales = {"small": {"seeds": 2, "tuning": tuning}}
    spec = table(rows=rows, scales=scales)
    tried = trials(spec, "small")
    report = sweep(trial_jobs(tried), tmp_path)
    assert len(report.done) == 4
    tuned = choose(spec, "small", tried, tmp_path)
    assert tuned.settings == {"CE": {"optimiser.lr": 0.1}}
    low, high = (score.accuracy["low"] for score in tuned.rows["CE"].scores)
    assert low < 0.4 < high < 0.85  # a fifth of the validation labels are wrong
    records = [RunFolder(tmp_path / job.run_id).metrics()[-1] for job in tried[1].jobs]
    assert [(r["epoch"], r["seed"]) for r in records] == [(2, 8), (2, 9)]
    assert high == pytest.approx(sum(r["val_accuracy"] for r in records) / 2)
    assert sweep(trial_jobs(tried), tmp_path).skipped == report.done
