"""What can be used but looks like a mistake is noted, and only that."""

import numpy as np
import pytest
import torch

from postmax import data
from postmax.data import notes
from postmax.data.notes import class_notes
from postmax.data.number_text import numbers
from postmax.wording import command_line


def notes_of(tmp_path, columns, **options):
    columns = {**columns, "label": [i % 2 for i in range(len(next(iter(columns.values()))))]}
    rows = zip(*columns.values(), strict=True)
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return data.read_table(path, **options).notes


SHUFFLED = np.random.default_rng(0).permutation(20)


@pytest.mark.parametrize(
    "values",
    [range(20), range(1, 21), SHUFFLED, SHUFFLED + 1, [f"row {i}" for i in range(20)], [f"{i}.0" for i in range(20)]],
)
def test_row_numbers_and_names(tmp_path, values):
    columns = {"key": values, "x": [i % 5 for i in range(20)]}
    note = "column 'key' looks like names or numbers of the rows, but it is used as a feature. To leave it out: "
    assert notes_of(tmp_path, columns) == (note + 'drop=["key"]',)
    with command_line():
        assert notes_of(tmp_path, columns) == (note + "--drop key",)
    assert notes_of(tmp_path, columns, drop=["key"]) == ()


@pytest.mark.parametrize(
    "values",
    [
        range(2, 22),
        range(0, 40, 2),
        [0, *range(19)],
        [i + 0.5 for i in range(20)],
        ["a", *(f"row {i}" for i in range(18)), "a"],
        [1] * 20,
    ],
)
def test_ordinary_columns(tmp_path, values):
    assert notes_of(tmp_path, {"x": values}) == ()


def test_few_rows_say_little(tmp_path):
    assert notes_of(tmp_path, {"x": range(4)}) == ()


def test_numbers_that_are_read_as_text(tmp_path):
    found = notes_of(tmp_path, {"x": [1, 2, 1, 2, "unknown", 2, 1, "-", 1, 2]})
    assert found == ("column 'x' is read as text, because not all of its values are numbers: 'unknown' in lines 6, 9",)
    assert notes_of(tmp_path, {"x": ["a", "b", 1, 1, "a", "b", 1, 1]}) == ()
    assert notes_of(tmp_path, {"x": [3, 1] * 5}, categorical=["x"]) == ()


def test_each_different_value_is_tested_once(tmp_path, monkeypatch):
    tested = []

    def counting(values, decimal):
        tested.append(len(values))
        return numbers(values, decimal)

    monkeypatch.setattr(notes, "numbers", counting)
    note = "column 'x' is read as text, because not all of its values are numbers: '-' in lines 502, 1003"
    assert notes_of(tmp_path, {"x": [*[1, 2, " 2"] * 166, 1, 2, "-", *["n/a", 1] * 250, "-"]}) == (note,)
    assert tested == [1] * 4


def test_classes_that_may_be_one(tmp_path):
    labels = torch.arange(12) % 6
    what = "differ only in upper and lower case or white space. To make them one: merge_labels=True"
    assert class_notes(["Red", "blue", "deep red", "deepred", "green", "red"], labels) == (
        f"classes 'Red' and 'red' {what}",
        f"classes 'deep red' and 'deepred' {what}",
    )
    assert class_notes([1, 2], torch.tensor([0, 1, 1, 1, 1, 1])) == ("class '1' has only one row",)
    assert class_notes(list("abc"), torch.tensor([0, 1, 2, 2, 2])) == ("2 classes ('a', 'b') have only one row each",)
    assert class_notes(list("ab"), torch.tensor([0, 1])) == ()


def test_notes_stay_with_the_rows(tmp_path):
    (tmp_path / "t.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(8)))
    rows = data.read_table(tmp_path / "t.csv")
    assert rows.subset(torch.arange(3)).notes == rows.notes != ()
