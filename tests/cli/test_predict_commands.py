"""`postmax predict | export` as a person meets them."""

import csv
import datetime as dt
import io
import json
import shlex
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from small_runs import feature_archive, image_archive

import postmax as pm
from postmax.cli import main
from postmax.runs import execute
from postmax.train import make_config


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    output = capsys.readouterr()
    return code, output.out, output.err


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A run on a table whose numbers have decimal commas, and the table."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    lines = ["id;size;colour;kind"]
    for i in range(120):
        size = "" if i == 3 else f"{rng.normal(3 * (i % 2)):.2f}".replace(".", ",")
        lines.append(f"r{i};{size};{('red', 'blue')[i % 3 == 0]};{('a cat', 'dog, big')[i % 2]}")
    (folder / "train.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"path": str(folder / "train.csv"), "labels": "kind", "drop": ["id"], "missing": "median", "decimal": ","}
    loss = {"correction": "posterior"}
    execute(make_config({"data": data, "epochs": 3, "transition": "pair:0.2", "loss": loss}), folder / "run")
    return folder


def test_predictions_in_a_pipe(capsys, model):
    """Options of the training are used again, and neither the label nor a dropped column is mentioned."""
    code, out, err = run(capsys, "predict", model / "run", model / "train.csv", "--device", "cpu")
    assert (code, err) == (0, "")
    found = records(out)
    assert list(found[0]) == ["prediction", "p_a cat", "p_dog, big"]
    expected = pm.load(model / "run", device="cpu").predict_proba(model / "train.csv")
    shares = np.array([[row["p_a cat"], row["p_dog, big"]] for row in found]).astype(np.float32)
    assert np.array_equal(shares, expected)  # as many digits as it takes
    assert [row["prediction"] for row in found] == [("a cat", "dog, big")[i] for i in expected.argmax(1)]


def test_predictions_in_files(capsys, model, tmp_path):
    for name in ("out.csv", "out.tsv", "out.parquet"):
        arguments = ("predict", model / "run", model / "train.csv", "-o", tmp_path / name, "--keep", "id,kind")
        code, out, err = run(capsys, *arguments)
        assert (code, err) == (0, "")
        assert out.startswith("120 rows: ")
        assert out.endswith(f"predictions: {tmp_path / name}\n")
        assert run(capsys, *arguments)[0] == 2
        assert run(capsys, *arguments, "--force")[0] == 0
    text = records((tmp_path / "out.csv").read_text(encoding="utf-8"))
    tabs = io.StringIO((tmp_path / "out.tsv").read_text(encoding="utf-8"))
    assert text == list(csv.DictReader(tabs, delimiter="\t"))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == list(text[0]) == ["id", "kind", "prediction", "p_a cat", "p_dog, big"]
    assert table.column("id").to_pylist() == [row["id"] for row in text] == [f"r{i}" for i in range(120)]
    shares = np.array([float(row["p_a cat"]) for row in text], np.float32)
    assert np.array_equal(table.column("p_a cat").to_numpy(), shares)


def test_json(capsys, model, tmp_path):
    code, out, err = run(capsys, "predict", model / "run", model / "train.csv", "--json", "--keep", "id")
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 120
    assert lines[7]["id"] == "r7"
    assert sum(lines[7]["probabilities"].values()) == pytest.approx(1)
    assert max(lines[7]["probabilities"], key=lines[7]["probabilities"].get) == lines[7]["prediction"]
    arguments = ("predict", model / "run", model / "train.csv", "-o", tmp_path / "x.csv", "--json")
    summary = json.loads(run(capsys, *arguments)[1])
    assert (summary["rows"], summary["file"]) == (120, str(tmp_path / "x.csv"))
    assert sum(summary["counts"].values()) == 120


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_columns_in_another_order_with_new_ones(capsys, model, tmp_path):
    new = write(tmp_path / "new.csv", 'note,colour,a b,size\nx,red,1,"1,5"\ny,blue,2,\n')
    code, out, err = run(capsys, "predict", model / "run", new)
    assert code == 0
    assert err == "postmax: note: the model does not use the columns note, a b.\n"
    assert len(records(out)) == 2
    assert run(capsys, "predict", model / "run", new, "--drop", "note,a b")[2] == ""
    points = write(tmp_path / "points.csv", "colour,size\nred,1.5\n", "cp1252")
    code, other, _ = run(capsys, "predict", model / "run", points, "--decimal", ".", "--encoding", "cp1252")
    assert records(other)[0] == pytest.approx(records(out)[0])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", (), "is empty."),
        ("\n\n", (), "it is empty."),
        ("colour;size\n", (), "it has no rows."),
        ("size\n1\n", (), "there is no column 'colour', which the features need."),
        ("Colour;size\nred;1\n", (), "there is no column 'colour', which the features need. Is it 'Colour'?"),
        (
            "colour;size\nred;1\npink;2\npink;3\n",
            (),
            "'pink' in lines 3, 4 (2 rows), which is a new category.\nTry: --un",
        ),
        ("colour;size\n;1\n", (), "column 'colour' has no value in line 2, but every training row had one."),
        ("colour;size\nred;x\n", (), "column 'size' holds 'x' in line 2, which is not a number."),
        ("colour;size\nred;1.5\n", (), "'1.5' in line 2, which is not a number.\nTry: --decimal ."),
        ("colour;size\nred;\n", ("--missing", "error"), "has no value in line 2.\nTry: --missing median"),
        ("colour;size\nred;1;3\n", (), "line 2 has 3 cells, the header has 2."),
        ("colour;size;size\nred;1;3\n", (), "2 columns are called 'size'. Rename them."),
        ("colour;size\nred;1\n", ("--keep", "id"), "there is no column 'id', which --keep names."),
        ("colour;size\nred;1\n", ("--drop", "size"), "column 'size' cannot be dropped"),
        ("colour;size\nred;1\n", ("--missing", "mean"), "--missing is error or median, not 'mean'"),
        ("colour;size\nred;1\n", ("--unknown", "zero"), "--unknown is error or ignore, not 'zero'"),
        ("colour;size\nred;1\n", ("--decimal", "x"), "--decimal is . or ,, not 'x'"),
        ("colour;size\nred;1\n", ("--seed", "7"), "has no model of the seed 7; it has 0."),
        ("colour;size\nred;1\n", ("-o", "out.xlsx"), "are written to .csv, .tsv and .parquet files"),
    ],
)
def test_files_that_cannot_be_predicted(capsys, monkeypatch, model, tmp_path, text, options, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "predict", model / "run", write(tmp_path / "new.csv", text), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_kept_columns_of_parquet_keep_their_types(capsys, model, tmp_path):
    dates = [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)]
    table = {"when": dates, "number": [3, None, 5], "colour": ["red"] * 3, "size": [1.0, None, 3.0]}
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    arguments = ("predict", model / "run", tmp_path / "new.parquet", "--keep", "when,number")
    assert run(capsys, *arguments, "-o", tmp_path / "out.parquet")[0] == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column("when").to_pylist() == dates
    assert found.column("number").type == pa.int64()
    assert found.column("number").to_pylist() == [3, None, 5]
    assert [(row["when"], row["number"]) for row in records(run(capsys, *arguments)[1])] == [
        ("2020-01-01", "3"),
        ("", ""),
        ("2021-01-01", "5"),
    ]
    lines = [json.loads(line) for line in run(capsys, *arguments, "--json")[1].splitlines()]
    assert [(line["when"], line["number"]) for line in lines] == [("2020-01-01", 3), (None, None), ("2021-01-01", 5)]


def test_a_kept_column_cannot_have_the_name_of_an_output(capsys, model, tmp_path):
    new = write(tmp_path / "new.csv", "prediction;colour;size\nx;red;1\n")
    code, _, err = run(capsys, "predict", model / "run", new, "--keep", "prediction")
    assert code == 2
    assert "--keep prediction: the output has a column of this name" in err


def test_an_error_in_the_middle_leaves_no_file(capsys, monkeypatch, model, tmp_path):
    monkeypatch.setattr("postmax.data.new_rows.ROWS_AT_ONCE", 10)
    new = write(tmp_path / "new.csv", "colour;size\n" + "red;1\n" * 25 + "pink;1\n")
    code, out, err = run(capsys, "predict", model / "run", new, "-o", tmp_path / "out.csv")
    assert (code, out) == (2, "")
    assert "'pink' in line 27" in err
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    code, out, err = run(capsys, "predict", model / "run", new)  # in a pipe the rows before it are gone already
    assert (code, len(records(out))) == (2, 20)


def test_blocks_are_written_as_one_table(capsys, monkeypatch, model, tmp_path):
    whole = run(capsys, "predict", model / "run", model / "train.csv")[1]
    monkeypatch.setattr("postmax.data.new_rows.ROWS_AT_ONCE", 7)
    parts = run(capsys, "predict", model / "run", model / "train.csv")[1]
    assert [row["prediction"] for row in records(parts)] == [row["prediction"] for row in records(whole)]
    assert run(capsys, "predict", model / "run", model / "train.csv", "-o", tmp_path / "x.parquet")[0] == 0
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 120


def test_arrays_and_images(capsys, tmp_path):
    archive = feature_archive(tmp_path / "rows.npz")
    execute(make_config({"data": {"path": str(archive)}, "epochs": 1, "batch_size": 20}), tmp_path / "features")
    code, out, _ = run(capsys, "predict", tmp_path / "features", archive)
    assert (code, len(records(out))) == (0, 60)
    assert run(capsys, "predict", tmp_path / "features", archive, "--keep", "y")[0] == 2
    assert run(capsys, "predict", tmp_path / "features", archive, "--decimal", ",")[0] == 2
    images = image_archive(tmp_path / "images.npz")
    execute(make_config({"data": {"path": str(images)}, "epochs": 1, "batch_size": 20}), tmp_path / "images")
    (tmp_path / "photos").mkdir()
    for name in ("b.png", "a.png"):
        Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "photos" / name)
    code, out, _ = run(capsys, "predict", tmp_path / "images", tmp_path / "photos")
    assert (code, [row["file"] for row in records(out)]) == (0, ["a.png", "b.png"])
    code, _, err = run(capsys, "predict", tmp_path / "features", tmp_path / "photos")
    assert code == 2
    assert "is a folder of images, but the model was trained on rows of 5 features" in err
    code, _, err = run(capsys, "predict", tmp_path / "images", tmp_path / "photos", "-o", tmp_path / "photos" / "x.csv")
    assert code == 2
    assert "is in the folder of the images" in err


def test_the_reader_of_the_output_may_stop_early(model):
    """As in `postmax predict … | head`."""
    predict = shlex.join([sys.executable, "-m", "postmax", "predict", str(model / "run"), str(model / "train.csv")])
    command = f"set -o pipefail; {predict} | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("prediction,")
    assert done.stderr == ""


def test_training_says_how_to_predict(capsys, model, tmp_path):
    reading = ("--label", "kind", "--drop", "id", "--missing", "median", "--decimal", ",")
    code, out, _ = run(capsys, "train", model / "train.csv", *reading, "epochs=1", "--out", tmp_path)
    assert code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert out.splitlines()[-1] == f"predict: postmax predict {folder} new.csv"
    code, out, _ = run(capsys, "train", "digits", "epochs=1", "save_model=false", "--out", tmp_path)
    assert "postmax predict" not in out


def test_export_writes_plain_weights(capsys, model, tmp_path):
    code, out, err = run(capsys, "export", model / "run", "-o", tmp_path / "m.safetensors")
    assert (code, err) == (0, "")
    assert out == f"written: {tmp_path / 'm.safetensors'}\nwritten: {tmp_path / 'm.json'}\n"
    code, _, err = run(capsys, "export", model / "run", "-o", tmp_path / "m.safetensors")
    assert code == 2
    assert "exists; give another --out, or --force" in err
    assert run(capsys, "export", model / "run", "-o", tmp_path / "m.pt")[0] == 2
    code, out, _ = run(capsys, "export", model / "run", "-o", tmp_path / "m.safetensors", "--force", "--json")
    assert json.loads(out)["files"] == [str(tmp_path / name) for name in ("m.safetensors", "m.json")]


def test_export_writes_onnx(capsys, model, tmp_path):
    code, out, _ = run(capsys, "export", model / "run", "-o", tmp_path / "m.onnx")
    assert code == 0
    assert out.startswith("compared with the model on 301 rows: probabilities differ by at most ")
    assert out.endswith(f"written: {tmp_path / 'm.onnx'}\n")


def test_an_output_in_a_folder_that_does_not_exist_is_refused_before_the_work(capsys, model, tmp_path):
    out = tmp_path / "nodir" / "out.csv"
    code, said, err = run(capsys, "predict", model / "run", model / "train.csv", "-o", out)
    assert (code, said) == (2, "")
    assert f"{out}: the folder {out.parent} does not exist. Make it first: mkdir -p {out.parent}" in err
