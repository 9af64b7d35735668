"""Settings are chosen by noisy validation accuracy alone, with the same budget for each row."""

from __future__ import annotations

import pytest
from tuning_examples import content, fill, table

from postmax.errors import DataError, InputError
from postmax.runs.folder import RunFolder
from postmax.sweep.sweep import sweep
from postmax.tuning.choose import choose, trial_jobs, trials


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
    with pytest.raises(InputError, match=r"unknown row 'kll' \(did you mean 'KL'\?\)"):
        trials(table(), "small", ["kll"])
    with pytest.raises(InputError, match=r"how to tune at scale plain .*Scales that do: small"):
        trials(table(), "plain")
    with pytest.raises(InputError, match="no row has a grid"):
        trials(table(rows=[{"name": "CE"}]), "small")


def test_your_own_files_are_hashed_once():
    asked = []
    trials(table(), "small", ["all"], resolve=lambda config: asked.append(config) or config)
    assert len(asked) == 1


@pytest.mark.parametrize("part", ["rows", "panels", "columns"])
def test_validation_rows_that_a_part_takes_away_are_missed_before_anything_is_run(part):
    base = content()
    parts = [dict(one) for one in base[part]]
    changed = next(one for one in parts if one["name"] in ("KL", "all", "high"))
    changed["set"] = {**changed.get("set", {}), "data.validation_share": 0.0}
    with pytest.raises(InputError, match=r"test, all, KL, (low|high): data\.validation_share must not be 0 where"):
        trials(table(**{part: parts}), "small")


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
