"""The options with which every command reads a table: one vocabulary, and a reason where an option has no meaning."""

import json
import os
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postmax.cli import main
from postmax.runs import RunFolder

QUICK = ("epochs=1", "model.hidden=[4]", "accelerator=cpu")
CSV = "id;x;note;kind\n" + "".join(f"{i};{i % 3},{i % 7};n{i % 2};{'ab'[i % 3 > 0]}\n" for i in range(60))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with a table: its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(CSV)

    def command(*arguments):
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_options_and_keys_are_the_same_run(run):
    """The folder is named by what is computed, however it was said."""
    keys = ("data.labels=kind", "data.drop=[id, note]", "data.decimal=,")
    found = []
    for said in (
        keys,
        ("--label", "kind", "--drop", "id,note", "--decimal", ","),
        ("-l", "kind", "--drop", "id", "--drop", "note", "--decimal", ","),
        (*keys[:1], "data.drop=id", "--drop", "note", "--decimal", ",", "--label", "kind"),
    ):
        code, out, err = run("train", "t.csv", *QUICK, *said, "--json")
        assert code == 0, err
        found.append(json.loads(out)["run_id"])
    assert len(set(found)) == 1


def test_options_override_a_configuration_file(run, tmp_path):
    options = ("--label", "kind", "--drop", "note", "--decimal", ",")
    first = json.loads(run("train", "t.csv", *QUICK, *options, "--json")[1])
    file = f"{first['folder']}/config.yaml"
    code, out, err = run("train", "--config", file, "--label", "note", "--drop", "id,kind", "data.drop=[]", "--json")
    assert code == 0, err
    data = RunFolder(json.loads(out)["folder"]).config().data
    assert (data.labels, data.drop, data.decimal) == ("note", ("id", "kind"), ",")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "kind", "data.labels=note"], "--label kind and data.labels=note say different things"),
        (["--missing", "median", "data.missing=error"], "--missing median and data.missing=error say different things"),
        (["--missing", "mean"], "--missing is error or median, not 'mean'"),
        (["--missing", "keep"], "--missing is error or median, not 'keep'"),
        (["--decimal", ";"], "--decimal is . or ,, not ';'"),
        (["--encoding", "cp1253x"], "encoding 'cp1253x' is unknown. Near names: cp1253"),
        (["--label", "kind", "--drop", "kind"], "column 'kind' holds the labels, so it cannot be dropped"),
    ],
)
def test_values_that_cannot_be(run, arguments, message):
    code, out, err = run("train", "t.csv", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["train", "digits", "--label", "x", "--drop", "y"], ["digits: 2 problems", "--label names", "--drop names"]),
        (["train", "digits", "data.missing=median"], ["--missing fills in", "a data set that postmax knows"]),
        (["train", "digits", "data.size=8"], ["data.size is for the images of a folder"]),
        (["train", "a.npz", "--decimal", ","], ["--decimal is for numbers that are written as text", "an .npz file"]),
        (["train", "a.npz", "--drop", "x"], ["--drop names columns", "an .npz file"]),
        (["train", "t.parquet", "--encoding", "cp1252"], ["--encoding is for text files", "a Parquet file"]),
        (["train", "t.csv", "--label", "kind", "data.size=8"], ["data.size is for the images of a folder"]),
        (["train", "pictures", "--label", "x"], ["--label names", "a folder of images"]),
        (["train", "digits", "data.augment=crop"], ["data.augment=crop: digits holds features"]),
        (["train", "digits", "data.small=[[0.5,9]]"], ["data.small: digits holds features, and this is for images"]),
        (["train", "digits", "data.cutout=3"], ["data.cutout=3: digits holds features"]),
        (["noise", "estimate", "a.npz", "--missing", "median"], ["--missing fills in", "an .npz file"]),
        (["noise", "inject", "y.npy", "-n", "pair:0.1", "--label", "x"], ["--label names", "an array of labels"]),
        (["noise", "inject", "t.csv", "-n", "pair:0.1", "--drop", "id"], ["--drop names", "not depend on features"]),
        (["noise", "show", "t.csv", "-c", "kind", "--drop", "id"], ["--drop names", "a comparison of labels"]),
        (["noise", "show", "n.npz", "--encoding", "cp1252"], ["--encoding is for", "a record of noise"]),
    ],
)
def test_options_without_a_meaning_are_refused_with_the_reason(run, tmp_path, arguments, messages):
    np.savez(tmp_path / "a.npz", x=np.zeros((6, 2)), y=np.arange(6) % 2)
    np.save(tmp_path / "y.npy", np.arange(6) % 2)
    pq.write_table(pa.table({"x": [1.0, 2.0], "label": ["a", "b"]}), tmp_path / "t.parquet")
    (tmp_path / "pictures").mkdir()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    for message in messages:
        assert message in err


def test_the_noise_commands_take_them_too(run, tmp_path):
    options = ("--label", "kind", "--decimal", ",", "--encoding", "cp1252")
    (tmp_path / "t.csv").write_bytes(CSV.replace("note", "größe").encode("cp1252"))
    code, _, err = run("noise", "inject", "t.csv", "-n", "instance:0.2", *options, "--drop", "id,größe", "-o", "n.csv")
    assert code == 0, err
    before, after = ((tmp_path / name).read_bytes().splitlines() for name in ("t.csv", "n.csv"))
    assert [line.rpartition(b";")[0] for line in before] == [line.rpartition(b";")[0] for line in after]
    assert before != after
    code, out, err = run("noise", "show", "n.csv", "--clean", "t.csv", *options, "--json")
    assert code == 0, err
    assert json.loads(out)["wrong"] == sum(a != b for a, b in zip(before, after, strict=True))
    arguments = ("--drop", "id,größe", "--replicates", 2, "--method", "confident-joint", "--json")
    code, out, err = run("noise", "estimate", "n.csv", *options, *arguments)
    assert code == 0, err
    assert json.loads(out)["classes"] == ["a", "b"]


def test_true_labels_in_a_file_of_another_kind(run, tmp_path):
    """Options that are for the first file are not refused because of the second one."""
    kinds = np.array([line.rpartition(";")[2] for line in CSV.splitlines()[1:]])
    np.save(tmp_path / "true.npy", kinds)
    pq.write_table(pa.table({"kind": kinds}), tmp_path / "true.parquet")
    for name in ("true.npy", "true.parquet"):
        code, out, err = run("noise", "show", "t.csv", "-l", "kind", "--encoding", "utf-8", "-c", name, "--json")
        assert code == 0, err
        assert json.loads(out)["wrong"] == 0


def test_missing_labels_are_named_by_the_line_of_their_file(run, tmp_path):
    (tmp_path / "t.csv").write_text('given,checked\na,"a"\nb,\na,a\n')
    code, _, err = run("noise", "show", "t.csv", "-l", "given", "-c", "checked")
    assert code == 2
    assert "t.csv: column 'checked': line 3 has no label" in err


def test_labels_that_do_not_change_keep_their_bytes(run, tmp_path):
    """White space around a label does not make another class, and it stays where the label stays."""
    (tmp_path / "t.csv").write_text("x,label\n" + '1, cat\n2,"dog "\n3,cat\n4,dog\n' * 20)
    code, out, err = run("noise", "inject", "t.csv", "-n", "symmetric:0.25", "-o", "n.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["classes"] == ["cat", "dog"]
    before, after = ((tmp_path / name).read_text().splitlines() for name in ("t.csv", "n.csv"))
    assert sum(a != b for a, b in zip(before, after, strict=True)) == json.loads(out)["wrong"] == 20
    assert {line.partition(",")[2] for line in after} == {"label", " cat", "cat", "dog", '"dog "', '"cat"'}


def test_notes_go_to_standard_error_once(run, tmp_path):
    rows = "".join(f"{i},{i % 4},{['cat', 'Cat', 'dog'][i % 3]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("id,x,label\n" + rows + "30,1,dgo\n")
    code, out, err = run("train", "t.csv", *QUICK, "--json")
    assert code == 0, err
    assert "run_id" in json.loads(out)
    assert [line.removeprefix("postmax: note: ") for line in err.splitlines()] == [
        "column 'id' looks like names or numbers of the rows, but it is used as a feature. To leave it out: --drop id",
        "classes 'Cat' and 'cat' differ only in upper and lower case or white space. To make them one: --merge-labels",
        "class 'dgo' has only one row",
    ]


@pytest.mark.parametrize("kind", ["a pipe", "a socket", "a device"])
@pytest.mark.parametrize(
    "command",
    [
        ("train", "{}"),
        ("train", "--config", "{}"),
        ("train", "digits", "noise={}"),
        ("noise", "inject", "{}", "-n", "pair:0.1"),
        ("noise", "inject", "t.csv", "-l", "kind", "-n", "{}"),
        ("noise", "estimate", "{}"),
        ("noise", "show", "{}", "--clean", "kind"),
    ],
    ids=" ".join,
)
def test_only_ordinary_files_are_read(run, tmp_path, kind, command):
    """A pipe would block for ever, or be empty the second time it is read."""
    path = tmp_path / "p.csv"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("p.csv")
    else:
        path.symlink_to("/dev/null")
    code, out, err = run(*(part.format(path) for part in command))
    assert (code, out) == (2, "")
    assert f"p.csv is {kind}, not an ordinary file. Save its content to a file" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv is empty."),
        (b"\xef\xbb\xbf\n \n", "t.csv: it is empty."),
        (b"x,label\n", "t.csv: it has a header but no rows."),
        (bytes(range(256)) * 4, "t.csv: line 1 contains zero bytes, so it is not a text file."),
        (b"x,label\n1,a\n2,\0\n", "t.csv: line 3 contains zero bytes, so it is not a text file."),
        (b"PK\x03\x04" + b"\0" * 20, "it is not a text file but a zip archive or a spreadsheet such as .xlsx."),
        (b"x,label\n1,a\n2,a\n", "column 'label' has one class only, 'a': a classifier needs at least two."),
        (b"\nx,label\n1,a\n", "line 1 is blank, but it must name the columns."),
    ],
)
@pytest.mark.parametrize("command", [("train", "t.csv"), ("noise", "estimate", "t.csv")], ids=["train", "estimate"])
def test_files_that_are_no_table(run, tmp_path, content, message, command):
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_folder_that_is_called_like_a_table(run, tmp_path):
    (tmp_path / "d.csv").mkdir()
    for command in (("train", "d.csv"), ("noise", "estimate", "d.csv"), ("noise", "inject", "d.csv", "-n", "pair:0.1")):
        code, _, err = run(*command)
        assert code == 2
        assert "d.csv is a folder; a file was expected" in err


MESSY = "x,label\n" + "".join(f"{i % 7},{['cat', 'Cat ', 'cat', 'dog', 'd og'][i % 5]}\n" for i in range(60))


def test_labels_are_merged_by_every_command(run, tmp_path):
    """The most frequent of the names stays, and nothing else is merged."""
    (tmp_path / "t.csv").write_text(MESSY)
    code, out, err = run("train", "t.csv", *QUICK, "--merge-labels", "--json")
    assert (code, err) == (0, "")
    folder = RunFolder(json.loads(out)["folder"])
    assert folder.config().data.merge_labels
    code, out, err = run("train", "t.csv", *QUICK, "data.merge_labels=true", "--json")
    assert json.loads(out)["folder"] == str(folder.path)
    assert "4 classes" not in run("noise", "estimate", "t.csv", "--merge-labels", "--method", "anchor")[1]
    code, out, err = run("noise", "inject", "t.csv", "-n", "symmetric:0.0", "--merge-labels", "-o", "new.csv")
    assert (code, err) == (0, "")
    labels = [line.split(",")[1] for line in (tmp_path / "new.csv").read_text().splitlines()[1:]]
    assert {name: labels.count(name) for name in set(labels)} == {"cat": 36, "d og": 24}
    code, out, err = run("train", "t.csv", "--merge-labels", "data.merge_labels=false")
    assert (code, out) == (2, "")
    assert "--merge-labels and data.merge_labels=false say different things" in err


def test_merged_labels_of_test_rows_are_those_of_the_training_rows(run, tmp_path):
    (tmp_path / "t.csv").write_text(MESSY)
    (tmp_path / "test.csv").write_text("x,label\n1,CAT\n2,d OG\n3,CAT\n")
    code, out, err = run("train", "t.csv", "data.test_path=test.csv", *QUICK, "--merge-labels", "--json")
    assert code == 0, err
    code, out, err = run("train", "t.csv", "data.test_path=test.csv", *QUICK, "--json")
    assert (code, out) == (2, "")
    assert "which the training rows do not have" in err


def test_merging_has_no_meaning_without_a_column_of_labels(run, tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros((4, 2), np.float32), y=[0, 1, 0, 1])
    code, out, err = run("train", "t.npz", "--merge-labels")
    assert (code, out) == (2, "")
    assert "--merge-labels is for the label column of a data table, but this is an .npz file." in err
