"""Tables by name: those of postmax, and those that other packages register."""

from __future__ import annotations

import json

import pytest
import yaml
from table_examples import content

from postmax import tables
from postmax.cli import main
from postmax.errors import DataError, InputError
from postmax.registry import Registry
from postmax.tables import catalogue
from postmax.tables.jobs import jobs


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A table of another package, registered for the time of a test."""
    monkeypatch.setattr(catalogue, "_registered", Registry("table"))
    path = tmp_path / "package" / "Theirs.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(content(title="A table of theirs")))
    assert tables.register(path) == "theirs"
    return path


def test_a_registered_table_is_found_like_one_of_postmax(registered, capsys):
    assert {"theirs", "breast-cancer"} < set(tables.names())
    assert list(tables.names()) == sorted(tables.names())
    assert tables.load("THEIRS").title == tables.summary("theirs") == "A table of theirs"
    assert jobs(tables.load("theirs"), "small")
    with pytest.raises(SystemExit) as stop:
        main(["list", "tables", "--json"])
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["theirs"] == "A table of theirs"


def test_settings_tuned_for_a_registered_table_are_found_beside_it(registered):
    spec = tables.load("theirs")
    assert catalogue.shipped_settings_file(spec, "small") is None
    file = registered.parent / "tuned" / "Theirs-small.yaml"
    file.parent.mkdir()
    file.touch()
    assert catalogue.shipped_settings_file(spec, "small") == file
    assert catalogue.shipped_settings_file(spec.model_copy(update={"title": "Another"}), "small") is None


def test_a_name_is_taken_once(registered, tmp_path):
    assert tables.register(registered) == "theirs"  # importing the package again changes nothing
    for name in ("theirs", "breast-cancer"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content()))
        with pytest.raises(InputError, match=f"table name '{name}' is taken by .*; give .* another file name"):
            tables.register(path)
    with pytest.raises(DataError, match=r"missing\.yaml: there is no such file"):
        tables.register(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match=r"ends in \.yaml"):
        tables.register(tmp_path / "table.txt")


def test_a_table_may_borrow_from_a_registered_one(registered):
    scales = {"small": {"seeds": 1, "tuned_by": "theirs"}}
    assert catalogue.make(content(scales=scales), name="mine").scale("small").tuned_by == "theirs"


def test_a_scale_takes_the_run_of_another_table(registered):
    scales = {"other": {"seeds": [5, 7], "run_of": "theirs"}}
    mine = catalogue.make(content(run={}, scales=scales), name="mine")
    assert {job.run_id for job in jobs(mine, "other")} == {job.run_id for job in jobs(tables.load("theirs"), "other")}


def test_what_the_scale_sets_itself_wins_over_the_run_it_takes(registered):
    scales = {"other": {"seeds": 1, "run_of": "theirs", "set": {"epochs": 4, "loss.floor": 0.2}}}
    columns = [{"name": "plain", "set": {"loss.correction": "posterior"}}]
    mine = catalogue.make(content(run={}, scales=scales, columns=columns), name="mine")
    for job in jobs(mine, "other"):
        assert job.config.epochs == 4
        assert job.config.data.name == "digits"
        assert job.config.loss.options["floor"] == 0.2


def test_the_table_that_lends_its_run_must_exist():
    scales = {"small": {"seeds": 1, "run_of": "nowhere"}}
    with pytest.raises(InputError, match=r"scales\.small\.run_of: there is no table 'nowhere', only"):
        catalogue.make(content(scales=scales), name="mine")


def test_tables_that_take_the_run_of_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, other in (("a", "b"), ("b", "a")):
        scales = {"small": {"seeds": 1, "run_of": f"./{other}.yaml"}}
        changed = {"data": {"name": "digits"}, "epochs": 3 if name == "a" else 4}
        (tmp_path / f"{name}.yaml").write_text(
            yaml.safe_dump(content(run=changed, scales=scales, columns=[{"name": "x"}], reported={}))
        )
    assert {job.config.epochs for job in jobs(tables.load("./a.yaml"), "small")} == {4}
    assert {job.config.epochs for job in jobs(tables.load("./b.yaml"), "small")} == {3}


def test_a_validation_share_may_be_lent(registered):
    lender = content(run={"data": {"name": "digits", "validation_share": 0.2}, "epochs": 2})
    registered.write_text(yaml.safe_dump(lender))
    tuning = {"columns": ["plain"], "seeds": [9], "budget": 2}
    scales = {"small": {"seeds": 1, "run_of": "theirs", "tuning": tuning}}
    assert catalogue.make(content(scales=scales), name="mine").scale("small").tuning is not None


@pytest.mark.parametrize("scales", [None, [], {"small": None}, {"small": {"seeds": 1, "run_of": 3}}])
def test_scales_that_are_none_are_named(scales):
    with pytest.raises(InputError, match="scales"):
        catalogue.make(content(scales=scales), name="mine")
