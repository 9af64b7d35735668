"""The same mistakes are found in files, data sets, data frames, arrays and images. Rows are called as in the file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from checking.planted import kinds, penguins, write
from PIL import Image

import postmax as pm
from postmax import data
from postmax.checking import Finding, catalogue, check_dataset, check_file
from postmax.checking.from_memory import lowest
from postmax.cli import main
from postmax.data.reading import ReadingOptions
from postmax.errors import DataError, InputError
from postmax.registry import Registry


def planted(rows=300):
    """Spellings, a sentinel, row numbers and a copy of the label."""
    table, labels = penguins(rows)
    table["mass"][[4, 8]] = -999
    late = np.array([str(name)[0] for name in labels], dtype=object)
    labels[[1, 2]] = ["adelie", "GENTOO"]
    return {"id": np.arange(rows), "late": late, **table}, labels


EXPECTED = ["spelling", "spelling", "leak", "sentinel values", "row names"]


def test_a_file(tmp_path):
    path = write(tmp_path / "t.csv", *planted())
    findings = pm.check(path, label="species")
    assert [finding.kind for finding in findings] == EXPECTED
    assert findings[3].text.startswith("Column 'mass' holds -999 in lines 6, 10 (2 rows)")
    assert findings[3].rows == (4, 8)
    assert findings[2].remedy == 'To leave it out: drop=["late"]'
    assert findings.name == "t.csv"
    left = pm.check(str(path), label="species", drop=["id", "late"], merge_labels=True)
    assert [finding.kind for finding in left] == ["sentinel values"]


def test_parquet_frames_and_arrays(tmp_path):
    table, labels = planted()
    pq.write_table(pa.table({**table, "species": labels}), tmp_path / "t.parquet")
    findings = pm.check(tmp_path / "t.parquet", label="species")
    assert [finding.kind for finding in findings] == EXPECTED
    assert "in the 5th, 9th rows" in findings[3].text
    for frame in (pd.DataFrame(table), pl.DataFrame({n: v.tolist() for n, v in table.items()}), table):
        assert kinds(frame, labels) == EXPECTED
    whole = pd.DataFrame({**table, "species": labels})
    assert [finding.kind for finding in pm.check(whole, label="species")] == EXPECTED
    assert [f.kind for f in pm.check(whole, label="species", drop=["late", "id"])] == ["spelling"] * 2 + EXPECTED[3:4]
    numbers = np.stack([table["mass"], table["flipper"], table["bill"]], 1)
    assert kinds(numbers, labels) == kinds(torch.from_numpy(numbers), labels) == ["spelling"] * 2 + EXPECTED[3:4]


def test_data_that_are_read_already_give_the_same_findings(tmp_path):
    """Columns are found again in the features; categories are texts."""
    path = write(tmp_path / "t.csv", *planted())
    dataset = data.read_table(path, label="species")
    expected, found = check_file(path, ReadingOptions("species")), check_dataset(dataset)
    assert [(f.kind, f.text, f.rows) for f in found] == [(f.kind, f.text, f.rows) for f in expected]
    assert [f.kind for f in pm.check(dataset.subset(torch.arange(200)))] == EXPECTED


def test_problems_of_the_file_are_findings_too(tmp_path):
    table, labels = penguins()
    names = np.array([f"bird {i}" for i in range(300)], dtype=object)
    words = np.array([f"{'abcdefg'[i % 7]}{i % 140}" for i in range(300)], dtype=object)
    table["mass"][5] = np.nan
    labels[9] = None
    path = write(tmp_path / "t.csv", {"name": names, "word": words, **table}, labels)
    path.write_text(path.read_text() + "1,2,3\n")
    findings = pm.check(path, label="species")
    names_rows = (
        "Column 'name' seems to name or count the rows (299 different values in 299 rows), so it says nothing about "
        'new ones. To leave it out: drop=["name"]'
    )
    assert [f"{f.kind}: {f}" for f in findings] == [
        "not usable: Line 302 has 3 cells, the header has 7.",
        "not usable: Column 'species': line 11 has no label. Label it, or delete it from the data.",
        "not usable: Column 'word' is text with 140 different values, such as 'g97'. Try: drop=[\"word\"]",
        "not usable: Column 'mass' has no value in line 7. Try: missing=\"median\"",
        f"row names: {names_rows}",
    ]


def test_large_files_are_sampled_with_their_copies(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.checking.from_memory.MOST_ROWS", 1000)
    monkeypatch.setattr("postmax.checking.from_memory.FEWEST_ROWS", 1000)
    monkeypatch.setattr("postmax.checking.from_file._ROWS_AT_ONCE", 700)
    table, labels = penguins(3000)
    labels[:3] = "Emperor"
    twice = {name: np.concatenate([values, values]) for name, values in table.items()}
    path = write(tmp_path / "t.csv", twice, np.concatenate([labels, labels]))
    findings = pm.check(path, label="species")
    assert (findings.rows, 900 < findings.looked_at <= 1001) == (6000, True)
    assert "Every row is there 2 times or more" in findings[0].text
    assert f"Looked at {findings.looked_at:,} of the 6,000 rows" in str(findings)
    first, second = findings[0].rows
    assert second == first + 3000
    assert findings.classes == 4  # also a label of which no row is looked at


def test_the_sample_has_the_lowest_hashes():
    hashes = np.array([5, 1, 9, 1, 7, 3], np.uint64)
    assert lowest(hashes, 3).tolist() == [1, 3, 5]
    assert len(lowest(np.ones(100, np.uint64), 10)) == 10


def test_labels_of_all_rows_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.checking.from_memory.MOST_ROWS", 500)
    monkeypatch.setattr("postmax.checking.from_memory.FEWEST_ROWS", 500)
    monkeypatch.setattr("postmax.checking.from_file._ROWS_AT_ONCE", 300)
    table, labels = penguins(3000)
    count = int((labels == "Gentoo").sum())
    labels[np.flatnonzero(labels == "Gentoo")[:2]] = "gentoo"
    path = write(tmp_path / "t.csv", table, labels)
    text = next(f.text for f in pm.check(path, label="species") if f.kind == "spelling")
    assert f"'Gentoo' ({count - 2:,} rows) and 'gentoo' (2 rows)" in text


def test_images(tmp_path):
    draw = np.random.default_rng(0)
    pictures = draw.integers(0, 255, (120, 1, 4, 4)).repeat(8, 2).repeat(8, 3).astype(np.uint8)
    pictures[60:90] = pictures[:30]
    near = pictures[:40].astype(int) + draw.integers(-2, 3, pictures[:40].shape)
    labels = np.arange(120) % 2
    assert kinds(pictures[:60], labels[:60]) == []
    assert kinds(pictures, labels)[0] == "duplicates"
    both = np.concatenate([pictures[:60], near.clip(0, 255).astype(np.uint8)])
    assert kinds(both, np.arange(100) % 2) == ["near duplicates"]
    for i, picture in enumerate(pictures[:90]):
        place = tmp_path / "pictures" / ("cat", "dog")[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture[0]).save(place / f"{i:02d}.png")
    findings = pm.check(tmp_path / "pictures")
    assert findings[0].kind == "duplicates"
    assert "cat/" in findings[0].text


def test_what_does_not_fit_together(tmp_path):
    rows = np.zeros((4, 2))
    with pytest.raises(InputError, match="there are 4 rows, but 3 labels"):
        pm.check(rows, [0, 1, 0])
    with pytest.raises(InputError, match=r"give the labels: check\(rows, labels\)"):
        pm.check(rows)
    with pytest.raises(InputError, match="missing is for files"):
        pm.check(rows, [0, 1, 0, 1], missing="median")
    with pytest.raises(InputError, match="labels are for rows in memory"):
        pm.check(tmp_path / "t.csv", [0, 1])
    with pytest.raises(InputError, match="rows are numbers, not <U1"):
        pm.check([["a"], ["b"]], [0, 1])
    with pytest.raises(DataError, match="does not exist"):
        pm.check(tmp_path / "t.csv")


def command(capsys, *arguments):
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.thorough
def test_the_command(tmp_path, capsys):
    path = write(tmp_path / "t.csv", *planted())
    code, out, err = command(capsys, "check", path, "--label", "species")
    assert code == 0, err
    assert out.startswith("t.csv: 4 problems and 1 note in 300 rows with 6 columns and 5 classes\n  problem  Labels ")
    assert "           To make them one class: --merge-labels\n" in out
    assert "           To leave it out: --drop late\n" in out
    code, out, err = command(capsys, "check", path, "-l", "species", "--strict", "--json")
    assert (code, err) == (1, "")
    content = json.loads(out)
    assert [finding["kind"] for finding in content["findings"]] == EXPECTED
    assert content["findings"][3]["rows"] == [4, 8]
    options = ("--drop", "late,id", "--merge-labels", "--drop", "mass", "--strict")
    code, out, err = command(capsys, "check", path, "-l", "species", *options)
    assert (code, out) == (0, "t.csv: nothing was found in 300 rows with 3 columns and 3 classes\n")


@pytest.mark.thorough
def test_a_file_cannot_send_control_characters_to_the_terminal(tmp_path, capsys):
    table, labels = penguins()
    labels[:3] = "\x1b[31mred"
    path = write(tmp_path / "t.csv", table, labels)
    assert "\x1b" not in command(capsys, "check", path, "--label", "species")[1]


def test_what_is_registered_is_asked(monkeypatch):
    assert catalogue.names()[0] == "no signal"
    monkeypatch.setattr(catalogue, "_DETECTORS", Registry("detector"))
    catalogue.register("few columns", lambda seen: [Finding("few columns", f"{len(seen.columns)} columns.")])
    assert kinds(*penguins()) == ["few columns"]
