"""Every nasty file is read right, or refused with one clear sentence, by every command; none ends in a traceback."""

import json
import re

import pytest
import torch
from nasty.corpus import CASES, ROWS

from postmax.cli import main
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading
from postmax.data.own import read_own

LONGEST = 1200


def run(capsys, *arguments):
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    said = capsys.readouterr()
    return code, said.out, said.err


def is_clear(err, refused):
    """One message of postmax: no traceback, no name of a Python error, and not a page of text."""
    assert err.startswith("postmax: "), err
    assert refused in err
    assert not re.search(r"Traceback|Error:|Exception|numpy\.|<class", err), err
    assert len(err) < LONGEST
    return True


def ids(case):
    return case.name.replace(" ", "-")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_check(case, tmp_path, capsys):
    code, out, err = run(capsys, "check", case.write(tmp_path), *case.options, "--json")
    if case.refused is not None and not case.checked:
        assert (code, out) == (2, "")
        assert is_clear(err, case.refused)
        return
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["rows"] == case.rows
    kinds = {finding["kind"] for finding in found["findings"]}
    assert {*case.kinds} <= kinds
    if case.refused is not None:
        assert kinds  # what other commands refuse is found


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_train(case, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = ("epochs=1", "model.hidden=[4]", "accelerator=cpu")
    code, out, err = run(capsys, "train", case.write(tmp_path), *case.options, *settings, "--dry-run", "--json")
    if case.refused is None:
        assert code == 0, err
        assert json.loads(out)["state"] == "new"
    else:
        assert (code, out) == (2, "")
        assert is_clear(err, case.refused)


@pytest.mark.parametrize("case", [case for case in CASES if case.refused is None], ids=ids)
def test_what_is_read(case, tmp_path):
    words = dict(zip(case.options[::2], case.options[1::2], strict=False))
    options = TableOptions(
        words.get("--label"),
        None,
        words.get("--missing"),
        words.get("--decimal"),
        words.get("--encoding"),
        "--merge-labels" in case.options,
    )
    reading = {("labels" if name == "label" else name): value for name, value in vars(as_reading(options)).items()}
    dataset = read_own(case.write(tmp_path), **reading)
    assert dataset.classes == case.classes
    assert len(dataset) == case.rows
    if case.inputs:
        expected = torch.tensor(case.inputs, dtype=torch.float32)
        torch.testing.assert_close(dataset.inputs[torch.arange(len(expected))][:, 0], expected)
    # The labels alternate, whatever the file looks like.
    if case.classes == ("a", "b") and dataset.rows.kind != "file":
        assert dataset.labels[:ROWS].tolist() == [i % 2 for i in range(ROWS)]


@pytest.mark.thorough
def test_a_hundred_thousand_classes(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + "".join(f"{i % 7},n{i}\n" for i in range(100_000)))
    code, out, err = run(capsys, "train", path, "--dry-run")
    assert (code, out) == (2, "")
    assert is_clear(err, "a label of its own for each of the 100,000 rows")
    code, out, err = run(capsys, "check", path)
    assert code == 0, err
    assert "nearly all different: 100,000 in 100,000 rows" in out
