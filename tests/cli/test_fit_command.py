"""`postmax fit` as a person meets it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image
from torch import nn

import postmax as pm
from postmax.cli import main
from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source

HOSTILE = '<script>alert("x")</script>'


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    if capsys is None:  # a fixture of a module has none
        return code, "", ""
    output = capsys.readouterr()
    return code, output.out, output.err


def write_table(path, count=240, seed=0):
    """A table with row numbers, names, missing numbers and categories; 20 % of its labels are wrong."""
    rng = np.random.default_rng(seed)
    truth, wrong = [], []
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "name", "size", "weight", "colour", "kind"])
        for i in range(count):
            true = int(rng.integers(2))
            label = true if rng.random() >= 0.2 else 1 - true
            size = "" if rng.random() < 0.1 else f"{rng.normal(2.5 * true):.3f}"
            colour = str(rng.choice(["red", "blue"] if true else ["red", "green"]))
            kinds = (HOSTILE, "dog, big")
            lines.writerow([i + 1, f"a name {i} {rng.random()}", size, f"{rng.normal():.2f}", colour, kinds[label]])
            truth.append(kinds[true])
            wrong.append(label != true)
    return np.array(truth), np.array(wrong)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a fit, the table, the true classes, and which labels are wrong."""
    folder = tmp_path_factory.mktemp("fit")
    truth, wrong = write_table(folder / "train.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(None, "fit", "train.csv", "--label", "kind")
    return folder, truth, wrong


def test_one_command_gives_a_model_the_noise_and_the_doubtful_labels(fitted, capsys, monkeypatch):
    folder, truth, wrong = fitted
    made = folder / "postmax-models" / "train"
    assert sorted(path.name for path in made.iterdir()) == [
        "labels.csv",
        "model.safetensors",
        "report.html",
        "result.json",
    ]
    result = json.loads((made / "result.json").read_text())["result"]
    low, high = result["estimate"]["noise_rate_interval"]
    assert low <= wrong.mean() <= high
    assert result["accuracy_interval"][0] <= (pm.load(made).predict(folder / "train.csv") == truth).mean()
    with (made / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["line"]) for row in rows] == list(range(2, 242))
    doubted = np.argsort([-float(row["p_wrong"]) for row in rows])[: wrong.sum() // 2]
    assert wrong[doubted].mean() > 0.8
    assert (np.array([row["suggested"] for row in rows])[doubted] == truth[doubted]).mean() > 0.8


def test_the_screen_says_what_a_person_wants_to_know(fitted, capsys, monkeypatch):
    """The same command again trains nothing and says the same."""
    folder, *_ = fitted
    monkeypatch.chdir(folder)
    before = (folder / "postmax-models/train/model.safetensors").stat().st_mtime_ns
    code, out, err = run(capsys, "fit", "train.csv", "--label", "kind")
    assert (code, err) == (0, "")
    assert (folder / "postmax-models/train/model.safetensors").stat().st_mtime_ns == before
    facts = {line[:14].strip(): line[15:] for line in out.splitlines()}
    assert facts["data"].startswith("240 rows, 2 columns of numbers and 1 column of categories; label 'kind' with 2 cl")
    assert "95 % interval" in facts["wrong labels"]
    assert "on right labels" in facts["accuracy"]
    assert "already done" in facts["model"]
    assert facts["most doubtful"].startswith("line ")
    assert facts["predict"] == "postmax predict postmax-models/train new.csv"
    code, out, _ = run(capsys, "predict", "postmax-models/train", "train.csv")
    assert (code, len(out.splitlines())) == (0, 241)


def test_columns_that_name_rows_are_left_out_with_a_note(tmp_path, capsys, monkeypatch):
    write_table(tmp_path / "train.csv", count=120)
    code, out, err = run(capsys, "fit", tmp_path / "train.csv", "--label", "kind", "-o", tmp_path / "m", "--json")
    assert code == 0
    assert "left out, because they hold names, dates or the like: id, name" in err
    found = json.loads(out)
    assert found["table"]["dropped"] == ["id", "name"]
    assert found["folder"] == str(tmp_path / "m")
    # new rows need not have them
    lines = (tmp_path / "train.csv").read_text().splitlines()
    (tmp_path / "new.csv").write_text("weight,colour,size\n0.1,blue,\n")
    assert len(lines) == 121
    code, out, err = run(capsys, "predict", tmp_path / "m", tmp_path / "new.csv")
    assert code == 0
    assert len(out.splitlines()) == 2


def test_names_cannot_run_on_the_page(fitted):
    page = (fitted[0] / "postmax-models/train/report.html").read_text()
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "src=" not in page


def test_the_same_seed_gives_the_same_files(fitted, tmp_path):
    folder, *_ = fitted
    run(None, "fit", folder / "train.csv", "--label", "kind", "-o", tmp_path / "again", "--seed", "0")
    for name in ("model.safetensors", "labels.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / "postmax-models/train" / name).read_bytes()


def test_nothing_is_lost(fitted, capsys, tmp_path):
    """A folder with another model or with other files is refused, and stays as it is."""
    folder, *_ = fitted
    write_table(tmp_path / "other.csv", count=60, seed=1)
    made = folder / "postmax-models" / "train"
    before = (made / "model.safetensors").read_bytes()
    code, _, err = run(capsys, "fit", tmp_path / "other.csv", "--label", "kind", "-o", made)
    assert code == 2
    assert "holds another model; give another --out, or --force" in err
    assert (made / "model.safetensors").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    code, _, err = run(capsys, "fit", tmp_path / "other.csv", "--label", "kind", "-o", tmp_path / "mine", "--force")
    assert code == 2
    assert "holds other files, such as thesis.txt" in err
    (tmp_path / "made").mkdir()
    for name in ("a", "b"):  # --force replaces what a fit has made
        source = tmp_path / f"{name}.csv"
        write_table(source, count=60, seed=ord(name))
        assert run(capsys, "fit", source, "--label", "kind", "-o", tmp_path / "made", "--force")[0] == 0
    assert json.loads((tmp_path / "made" / "result.json").read_text())["result"]["name"] == "b"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,kind\n1,x\n2,x\n3,x\n", "one class only"),
        ("a,kind\n", "no rows"),
        ("", "empty"),
        ("a,b\n1,2\n", "--label"),
        ("kind\nx\ny\n", "no features"),
        ("name,kind\n" + "".join(f"n{i},{i % 2}\n" for i in range(30)), "no features"),
    ],
    ids=["one class", "no rows", "empty", "no label", "label alone", "names alone"],
)
def test_files_that_cannot_be_used_are_refused_in_one_sentence(content, message, capsys, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    arguments = ["--label", "kind"] if "kind" in content else []
    code, _, err = run(capsys, "fit", path, *arguments, "-o", tmp_path / "model")
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "model").exists()


def test_a_fit_that_was_killed_leaves_nothing_half_done(tmp_path):
    write_table(tmp_path / "train.csv", count=60)
    command = [sys.executable, "-m", "postmax", "fit", str(tmp_path / "train.csv"), "--label", "kind"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    made = tmp_path / "postmax-models" / "train"
    assert not made.exists()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (made / "result.json").exists()


def test_arrays_have_rows_and_no_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(200, 4)).astype(np.float32) + 3 * labels[:, None], y=labels)
    code, out, err = run(capsys, "fit", tmp_path / "rows.npz", "-o", tmp_path / "m")
    assert code == 0, err
    assert "200 rows of 4 features, 3 classes" in out
    with (tmp_path / "m" / "labels.csv").open() as file:
        assert file.readline().startswith("row,given,suggested")
        assert file.readline().startswith("1,")
    found = pm.load(tmp_path / "m").predict(tmp_path / "rows.npz")
    assert (found == labels.astype(str)).mean() > 0.95


@pytest.fixture
def tiny_network():
    """A network without weights that turns images into the means of their sixteenths."""

    def tiny(name):
        network = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten())
        return Extractor("tiny-for-fit", network, mean=(127.5,) * 3, std=(127.5,) * 3, side=32, fixed=False)

    NETWORKS.add(Source(tiny, modules=()), "tiny-for-fit")
    yield "tiny-for-fit"
    for table in (NETWORKS._values, NETWORKS._names, NETWORKS._owners, NETWORKS._order, NETWORKS._codes):
        table.pop("tiny-for-fit", None)


def test_images_become_features_of_a_frozen_network(tiny_network, tmp_path, capsys, monkeypatch):
    """Files of several sizes, one of them damaged; the model reads new files in the same way."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for i in range(120):
        true = i % 2
        label = true if rng.random() >= 0.2 else 1 - true
        folder = tmp_path / "photos" / ("day", "night")[label]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 120, (40 + i % 3, 50, 3)) + 120 * (1 - true)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{('d', 'n')[true]}{i}.png")
    (tmp_path / "photos" / "day" / "broken.png").write_bytes(b"not a picture")
    command = ("fit", tmp_path / "photos", "--embedding", tiny_network, "-o", tmp_path / "model")
    code, out, err = run(capsys, *command)
    assert code == 0, err
    assert "broken.png" in err
    assert "120 images, 2 classes, as features of tiny-for-fit" in out
    with (tmp_path / "model" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    true = {"d": "day", "n": "night"}
    right = [row["suggested"] == true[row["file"].rpartition("/")[2][0]] for row in rows]
    assert np.mean(right) > 0.95
    (tmp_path / "photos" / "day" / "broken.png").unlink()
    code, out, _ = run(capsys, "predict", tmp_path / "model", tmp_path / "photos")
    found = {row["file"]: row["prediction"] for row in csv.DictReader(out.splitlines())}
    assert np.mean([name == true[file.rpartition("/")[2][0]] for file, name in found.items()]) > 0.95
    code, _, err = run(capsys, "export", tmp_path / "model", "-o", tmp_path / "model.onnx")
    assert code == 2
    assert "which is not part of it" in err


def test_features_that_say_nothing_give_no_headline(tmp_path, capsys):
    rng = np.random.default_rng(0)
    with (tmp_path / "noise.csv").open("w") as file:
        file.write("a,b,label\n" + "".join(f"{rng.normal()},{rng.normal()},{rng.integers(2)}\n" for _ in range(300)))
    code, out, err = run(capsys, "fit", tmp_path / "noise.csv", "-o", tmp_path / "m")
    assert code == 0
    assert "Simple models tell nothing from the features" in err
    facts = {line[:14].strip(): line[15:] for line in out.splitlines()}
    assert facts["wrong labels"].startswith("cannot be told")
    assert facts["accuracy"].startswith("cannot be told")
