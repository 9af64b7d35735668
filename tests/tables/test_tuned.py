"""Tuned settings of a table: they are checked, used and shown, and can be borrowed from another table."""

from __future__ import annotations

import pytest
import yaml
from tuning_examples import TUNING, a_digested, a_tuned, content, fill, finish, table

from postmax.errors import InputError
from postmax.report.table.text import to_json
from postmax.tables import catalogue
from postmax.tables.catalogue import make
from postmax.tables.jobs import jobs
from postmax.tables.tabulate import tabulate
from postmax.tables.trials import digest
from postmax.tables.tuned import TunedRow
from postmax.tuning.choose import choose, trial_jobs, trials
from postmax.tuning.tuned_file import write_tuned


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ["mid"]}, "scales.small.tuning: column 'mid' is not among low, high, clean"),
        ({"seeds": [1, 100]}, "scales.small.tuning: seed 1 is one of the table's own"),
        ({"budget": 3}, "row 'KL' has 4 settings, more than scales.small.tuning.budget"),
        ({"budgt": 3}, "unknown key 'scales.small.tuning.budgt'"),
        ({"seeds": []}, "scales.small.tuning.seeds"),
        ({"set": {"seeds": [7]}}, r"tuning.set: seeds are not a setting here; give scales.small.tuning.seeds"),
        ({"set": {"optimiser.lr": 1}}, r"tuning.set: optimiser.lr is chosen for row 'KL' by its grid; leave it out of"),
        ({"set": {"optimiser": {"lr": 1}}}, r"tuning.set: optimiser.lr is chosen for row 'KL' by its grid"),
        ({"set": {"loss.floor": 0}}, r"tuning.set: loss.floor is chosen for row 'SL' by its grid"),
    ],
)
def test_tuning_that_is_not_fair_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        table(scales={"small": {"seeds": 2, "tuning": {**TUNING, **change}}})


def with_trials(**settings):
    return {"small": {"seeds": 2, "stack": 2, "tuning": {**TUNING, "set": settings}}, "plain": {"seeds": 1}}


def test_a_grid_without_values_is_refused():
    with pytest.raises(
        InputError, match=r"rows\.KL\.grid\.optimiser\.lr must be a list of one or more entries, not \[\]"
    ):
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


def test_what_the_trials_may_set_beside_a_grid():
    whole = [{"name": "KL", "grid": {"model": [{"hidden": [4]}, {"hidden": [9]}], "loss": ["ce", "mae"]}}]
    for refused in ("model.hidden", "loss", "loss.name"):
        with pytest.raises(InputError, match=r"is chosen for row 'KL' by its grid"):
            table(scales=with_trials(**{refused: "mlp"}), rows=whole)
    table(scales=with_trials(**{"model.dropout": 0.5, "model": "mlp", "optimiser": "adam"}), rows=whole)
    # Validation rows that only the trials hold out are enough.
    table(run={"data": {"name": "digits"}}, scales=with_trials(**{"data.validation_share": 0.2}))
    with pytest.raises(InputError, match=r"scales\.small\.tuning chooses by validation rows"):
        table(scales=with_trials(**{"data.validation_share": 0}))


def test_what_only_the_trials_have_wins_over_everything_but_the_grid():
    short = table(scales=with_trials(epochs=1, **{"model.hidden": [3], "optimiser.momentum": 0.5, "noise": "pair:0.1"}))
    for trial in trials(short, "small"):
        for job in trial.jobs:
            config = job.config
            assert (config.epochs, config.model.options["hidden"], config.optimiser.momentum) == (1, [3], 0.5)
            assert config.noise == "pair:0.1"  # the columns say otherwise
            assert config.optimiser.lr == trial.settings["optimiser.lr"]
            assert set(trial.settings) == {"optimiser.lr", "optimiser.weight_decay"}
    # The table itself is the same as without them.
    assert [job.run_id for job in jobs(short, "small")] == [job.run_id for job in jobs(table(), "small")]


def test_settings_are_out_of_date_once_the_trials_change():
    short = table(scales=with_trials(epochs=1))
    tuned = a_digested(spec=short)
    assert tuned.set == {"epochs": 1}
    assert tuned.rows["KL"].digest != a_digested().rows["KL"].digest
    assert {job.config.epochs for job in jobs(short, "small", tuned=tuned)} == {2}
    with pytest.raises(InputError, match=r"tuned with another set \(\{'epochs': 1\}, now \{\}\): run `postmax tune"):
        jobs(table(), "small", tuned=tuned)
    # Epochs of the table itself do not matter, because no trial has them.
    longer = table(scales=with_trials(epochs=1), run={**content()["run"], "epochs": 9})
    assert {job.config.epochs for job in jobs(longer, "small", tuned=tuned)} == {9}


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
