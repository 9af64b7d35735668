"""`postmax audit` as a person and a pipeline meet it."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import postmax as pm
from postmax.auditing.corrected import write_corrected
from postmax.auditing.from_fit import FileAudit
from postmax.cli import main
from postmax.data.reading import ReadingOptions

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


def table(count=240, seed=0):
    """A semicolon table with quotes, CRLF, a comment column and umlauts; a fifth of the labels are wrong."""
    rng = np.random.default_rng(seed)
    lines, truth, given = ['"size";weight;"colour";kind'], [], []
    names = (HOSTILE, "dog ä")
    for _ in range(count):
        true = int(rng.integers(2))
        label = true if rng.random() >= 0.2 else 1 - true
        colour = rng.choice(["red", "blue"] if true else ["red", "green"])
        quoted = names[label].replace('"', '""')
        kind = f'"{quoted}"' if rng.random() < 0.5 or '"' in quoted else f" {quoted}"
        lines.append(f'{rng.normal(3 * true):.3f};"{rng.normal():.2f}";{colour};{kind}')
        truth.append(names[true])
        given.append(names[label])
    return "\r\n".join(lines) + "\r\n", np.array(truth), np.array(given)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The folder of an audit, the true classes and the labels as given."""
    folder = tmp_path_factory.mktemp("audit")
    text, truth, given = table()
    (folder / "train.csv").write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, *_ = run(None, "audit", "train.csv", "--label", "kind")
    assert code == 0
    return folder, truth, given


def test_the_worst_rows_are_listed_with_what_they_should_be(audited):
    folder, truth, given = audited
    made = folder / "postmax-audits" / "train"
    names = {"corrected.csv", "issues.csv", "labels.csv", "model.safetensors", "report.html", "result.json"}
    assert {path.name for path in made.iterdir()} == names
    with (made / "issues.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    places = np.array([int(row["line"]) - 2 for row in rows])
    wrong = given != truth
    assert [row["given"] for row in rows] == given[places].tolist()
    assert wrong[places].mean() > 0.8
    assert (np.array([row["suggested"] for row in rows]) == truth[places]).mean() > 0.8
    result = json.loads((made / "result.json").read_text())["result"]
    assert result["issues"] == len(rows)
    assert abs(result["wrong_issues"] - wrong[places].sum()) <= 5
    assert result["estimate"]["noise_rate_interval"][0] <= wrong.mean() <= result["estimate"]["noise_rate_interval"][1]
    assert (pm.load(made).predict(folder / "train.csv") == truth).mean() > 0.85


def test_only_labels_change_in_the_corrected_file(audited):
    folder, truth, given = audited
    before = (folder / "train.csv").read_bytes().split(b"\r\n")
    after = (folder / "postmax-audits/train/corrected.csv").read_bytes().split(b"\r\n")
    assert len(after) == len(before)
    assert before[0] == after[0]
    changed = []
    for row, (old, new) in enumerate(zip(before[1:-1], after[1:-1], strict=True)):
        assert old.split(b";")[:3] == new.split(b";")[:3]
        if old != new:
            changed.append(row)
            label = next(csv.reader([new.decode()], delimiter=";"))[3]
            assert label.strip() == ({*given.tolist()} - {given[row]}).pop()
    with (folder / "postmax-audits/train/labels.csv").open(newline="") as file:
        doubted = [i for i, row in enumerate(csv.DictReader(file)) if float(row["p_wrong"]) > 0.5]
    assert changed == doubted
    assert (given != truth)[changed].mean() > 0.8


def test_the_screen_the_page_and_the_exit_code(audited, capsys, monkeypatch):
    """The same command again trains nothing. Only the lower end of the interval ends with code 3."""
    folder, *_ = audited
    monkeypatch.chdir(folder)
    code, out, err = run(capsys, "audit", "train.csv", "--label", "kind")
    assert (code, err) == (0, "")
    assert "already done" in out
    assert "95 % interval" in out
    assert "are expected to be wrong: issues.csv" in out
    assert "more than 50 %: corrected.csv" in out
    worst = [line for line in out.splitlines() if line.startswith("  line ")]
    assert len(worst) == 10
    assert "→" in worst[0]
    page = (folder / "postmax-audits/train/report.html").read_text()
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "What else was found" in page
    low, high = json.loads(run(capsys, "audit", "train.csv", "--label", "kind", "--json")[1])["estimate"][
        "noise_rate_interval"
    ]
    command = ("audit", "train.csv", "--label", "kind", "--fail-above")
    assert run(capsys, *command, f"{100 * high:.3f}%")[0] == 0
    assert run(capsys, *command, f"{(low + high) / 2:.4f}")[0] == 0
    code, out, err = run(capsys, *command, f"{50 * low:.4f}%")
    assert code == 3
    assert "at least" in err
    assert "worst rows" in out
    for wrong in ("five", "5", "-1%", "nan"):
        code, _, err = run(capsys, *command, wrong)
        assert code == 2
        assert "a share such as 5% or 0.05" in err


def test_nothing_is_lost(audited, capsys, tmp_path):
    folder, *_ = audited
    (tmp_path / "other.csv").write_bytes(table(60, 1)[0].encode())
    made = folder / "postmax-audits" / "train"
    code, _, err = run(capsys, "audit", tmp_path / "other.csv", "--label", "kind", "-o", made)
    assert code == 2
    assert "holds another audit" in err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    code, _, err = run(capsys, "audit", tmp_path / "other.csv", "--label", "kind", "-o", tmp_path / "mine", "--force")
    assert code == 2
    assert "thesis.txt" in err
    code, _, err = run(capsys, "fit", tmp_path / "other.csv", "--label", "kind", "-o", made)
    assert code == 2
    assert "holds other files" in err


def test_arrays_get_a_file_of_labels(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    labels = pm.Transition.symmetric(3, 0.2).corrupt(truth, seed=0).labels.numpy()
    x = rng.normal(size=(150, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)[truth]
    np.savez(tmp_path / "rows.npz", x=x, y=labels)
    code, _, err = run(capsys, "audit", tmp_path / "rows.npz", "-o", tmp_path / "a")
    assert code == 0, err
    with (tmp_path / "a" / "corrected.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == list(range(1, 151))
    assert (np.array([int(row["label"]) for row in rows]) == truth).mean() > (labels == truth).mean() + 0.1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_that_are_numbers_stay_as_they_were_written(suffix, tmp_path):
    """A label 03 that does not change stays 03, and in Parquet a number stays a number."""
    source = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        source.write_bytes(b"a,y\n1,03\n2,+4\n3,4\n4,3\n")
    else:
        pd.DataFrame({"a": [1, 2, 3, 4], "y": [3, 4, 4, 3]}).to_parquet(source)
    audit = SimpleNamespace(
        table={"suggested": np.array(["4", "4", "3", "3"])},
        worth_changing=lambda: np.array([False, False, True, False]),
    )
    fit = SimpleNamespace(dataset=SimpleNamespace(table=SimpleNamespace(label="y")))
    (tmp_path / "out").mkdir()
    path = write_corrected(FileAudit(audit, fit), source, ReadingOptions(), tmp_path / "out")
    if suffix == ".csv":
        assert path.read_bytes() == b"a,y\n1,03\n2,+4\n3,3\n4,3\n"
    else:
        after = pd.read_parquet(path)
        assert after["y"].tolist() == [3, 4, 3, 3]
        assert after["y"].dtype == np.int64
