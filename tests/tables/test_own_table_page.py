"""docs/own-table.md: its example runs as it is, its tables name every key, and the error on it is the real one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from postmax.cli import main
from postmax.errors import InputError
from postmax.tables import load
from postmax.tables.parts import Column, Part, Row, Scale, Tuning
from postmax.tables.spec import TableSpec

PAGE = (Path(__file__).parents[2] / "docs" / "own-table.md").read_text("utf-8")
EXAMPLE = re.search(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[1]


@pytest.fixture
def example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text(EXAMPLE, "utf-8")
    return path


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert not stop.value.code


@pytest.mark.thorough
def test_the_example_runs(example, capsys):
    run("reproduce", "mine.yaml", "--scale", "quick", "--workers", "1", "--json")
    found = json.loads(capsys.readouterr().out)["tables"][0]
    cells = {(cell["row"], cell["column"]): cell for cell in found["panels"][0]["cells"]}
    assert {row for row, _ in cells} == {"CE", "GCE", "SL"}  # MAE is optional
    assert {column for _, column in cells} == {"20 %", "40 %", "no noise"}
    assert all(cell["n"] == 2 and not cell["failed"] and cell["mean"] > 30 for cell in cells.values())
    assert cells["CE", "20 %"]["paper"] == 93.0
    assert cells["CE", "20 %"]["difference"] is None  # the scale quick is not comparable
    page = (example.parent / "postmax-results" / "mine-quick" / "report.html").read_text("utf-8")
    assert "Five epochs, to see that everything runs." in page


@pytest.mark.thorough
def test_the_example_can_be_tuned(example, capsys):
    # Fewer epochs, but otherwise the commands of the page.
    example.write_text(EXAMPLE.replace("epochs: 20", "epochs: 1"), "utf-8")
    run("tune", "mine.yaml", "--workers", "1")
    assert "GCE" in capsys.readouterr().out
    run("reproduce", "mine.yaml", "--tuned", "postmax-results/mine-cpu-tuned.yaml", "--dry-run", "--json")
    run("reproduce", "mine.yaml", "--scale", "quick", "--rows", "all", "--dry-run", "--json")


def test_the_tables_name_every_key():
    sections = re.split(r"^\*\*", PAGE[PAGE.index("## Every key") :], flags=re.MULTILINE)[1:]
    first_cells = [" ".join(re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)) for text in sections]
    named = [set(re.findall(r"`(\w+)`", text)) for text in first_cells]
    parts = set(Part.model_fields) | set(Row.model_fields) | set(Column.model_fields)
    assert named == [set(TableSpec.model_fields), parts, set(Scale.model_fields), set(Tuning.model_fields)]
    needed = {name for name, field in TableSpec.model_fields.items() if field.is_required()} - {"name"}
    assert set(re.findall(r"^\| `(\w+)` \|.*\| needed \|$", sections[0], re.MULTILINE)) == needed


def test_the_error_on_the_page_is_the_real_one(example):
    content = yaml.safe_load(EXAMPLE)
    content["titel"] = "more"
    del content["columns"], content["scales"]["cpu"]["seeds"]
    content["rows"][0]["sett"] = content["rows"][0].pop("set")
    example.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    with pytest.raises(InputError) as error:
        load("mine.yaml")
    shown = re.search(r"^postmax: (mine\.yaml: .*?)\n```", PAGE, flags=re.DOTALL | re.MULTILINE)[1]
    assert str(error.value).startswith(shown)


def test_the_command_line_says_what_is_wrong_and_its_hints_work(example, capfd):
    def refused(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["reproduce", *arguments, "--dry-run"])
        assert stop.value.code == 2
        return capfd.readouterr().err

    example.write_text(EXAMPLE.replace("title:", "titel:", 1), "utf-8")
    text = refused("mine.yaml", "--scale", "quick")
    assert "title is missing: the heading of the table." in text
    assert "unknown key 'titel'. Did you mean 'title'?" in text
    assert "pydantic" not in text
    example.write_text(EXAMPLE, "utf-8")
    assert re.search(r"give the whole name of the file: (\S+)\.\n", refused("mine"))[1] == "mine.yaml"
    hint = re.search(r"such as (--scale) (\w+)\.", refused("mine.yaml", "--scale", "small"))
    assert "'CEE' (did you mean 'CE'?), 'x'" in refused("mine.yaml", "--scale", "quick", "--rows", "CEE,GCE,x")
    run("reproduce", "mine.yaml", hint[1], hint[2], "--rows", "ce", "--columns", "40 %", "--dry-run", "--json")
