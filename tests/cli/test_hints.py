"""Messages about a person's own table end with a line to copy. Here each such line is followed to the end."""

import datetime as dt
import re
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postmax.cli import main

ROWS = 60
COMMANDS = {
    "train": ("train", "{file}", "epochs=1", "model.hidden=[4]", "accelerator=cpu"),
    "estimate": ("noise", "estimate", "{file}", "--replicates", "2", "--method", "confident-joint", "--force"),
    "inject": ("noise", "inject", "{file}", "--noise", "instance:0.2", "--force"),
}


def table(columns, *, delimiter=",", encoding="utf-8"):
    """A CSV file with the columns x and label, and more: each is a name and a function of the row."""
    every = {"x": lambda i: i % 3 + i % 7 / 10, **columns}
    every.setdefault("label", lambda i: "abc"[i % 3])
    lines = [delimiter.join(every), *(delimiter.join(str(cell(i)) for cell in every.values()) for i in range(ROWS))]
    return ("\n".join(lines) + "\n").encode(encoding)


def follow(capsys, command, steps=1):
    """Run a command, and run it again with the hint of its message, until it works; return the messages."""
    said = []
    for _ in range(steps + 1):
        try:
            main(command)
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        messages = capsys.readouterr().err
        if code == 0:
            return said
        assert code == 2, messages
        assert not re.search(r"\b(label|drop|missing|decimal|encoding)=", messages), "words of Python"
        said.append(messages)
        hints = re.findall(r"^Try: (.+)$", messages, re.MULTILINE)
        assert len(hints) == 1, messages
        command = [*command, *shlex.split(hints[0])]
    pytest.fail(f"the hint did not help: {said}")


CASES = {
    "no label": table({"species": lambda i: "uv"[i % 2], "label": lambda i: i / 7}).replace(b"label", b"size"),
    "label misspelt": table({}),
    "no values": table({"empty": lambda i: ""}),
    "missing numbers": table({"age": lambda i: "" if i in (3, 5) else i}),
    "decimal commas": table({"x": lambda i: f"{i % 3},{i % 7}"}, delimiter=";"),
    "cp1252": table({"label": lambda i: ["für", "nö"][i % 2]}, encoding="cp1252"),
    "utf-16 without a mark": table({}, encoding="utf-16-le"),
    "odd names": table({"-a": lambda i: "", "b c": lambda i: "", "d'e": lambda i: "", "ü$(x)": lambda i: ""}),
    "a name with a comma": table({"q": lambda i: ""}).replace(b"q,", b'"q, r",', 1),
    "columns without a name": table({}).replace(b"\n", b",,\n"),
    "all at once": table(
        {"x": lambda i: f"{i % 3},{i % 7}", "empty": lambda i: "", "age": lambda i: "" if i == 4 else i},
        delimiter=";",
    ).replace(b"label", b"kind"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_following_the_hint_makes_the_command_work(tmp_path, monkeypatch, capsys, command, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(CASES[case])
    more = ["--label", "labell"] if case == "label misspelt" else []
    said = follow(capsys, [part.format(file="t.csv") for part in COMMANDS[command]] + more)
    assert len(said) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_text_that_names_rows(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"row {i},{i % 3},{'ab'[i % 2]}\n" for i in range(150))
    (tmp_path / "t.csv").write_text("name,x,label\n" + rows)
    said = follow(capsys, [part.format(file="t.csv") for part in COMMANDS[command]])
    assert "column 'name' is text with 150 different values" in said[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_parquet(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    columns = {
        "when": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * ROWS,
        "x": [None if i == 4 else float(i % 3) for i in range(ROWS)],
        "list": [[1]] * ROWS,
        "kind": ["ab"[i % 2] for i in range(ROWS)],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    said = follow(capsys, [part.format(file="t.parquet") for part in COMMANDS[command]])
    for part in (
        "column 'when' is of type timestamp",
        "column 'list' is of type list",
        "in the 5th row",
        "which column",
    ):
        assert part in said[0]


def test_a_column_that_is_not_there_names_the_nearest(tmp_path, monkeypatch, capsys):
    """Columns to drop add up, so a wrong name must be replaced and not only be followed by the right one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(table({"number": lambda i: i}))
    with pytest.raises(SystemExit):
        main(["train", "t.csv", "--drop", "numbr"])
    said = capsys.readouterr().err
    assert "there is no column 'numbr', which --drop names. Did you mean 'number'?" in said
    assert not follow(capsys, [*(part.format(file="t.csv") for part in COMMANDS["train"]), "--drop", "number"])


def test_notes_name_an_option_that_silences_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(table({"id": lambda i: i + 1, "code": lambda i: f"c{i}"}))
    command = [part.format(file="t.csv") for part in COMMANDS["inject"]]
    hint = ""
    for notes in (1, 0):
        command += shlex.split(hint)
        with pytest.raises(SystemExit):
            main(command)
        said = capsys.readouterr()
        assert said.err.count("postmax: note: ") == notes
        assert "note" not in said.out
        hint = said.err.partition("out: ")[2]
