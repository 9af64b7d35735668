"""All problems of a file in one message, with the lines in which an editor shows them."""

import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from postmax import data
from postmax.data.problems import columns_from_text, in_words
from postmax.errors import DataError, InputError
from postmax.wording import command_line


def csv_file(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problems_of(path, **options):
    """The lines of the message about a file, and the hint."""
    with pytest.raises(DataError) as error:
        data.read_table(path, **options)
    first, *lines = str(error.value).splitlines()
    assert first.startswith(str(path))
    hint = lines.pop().removeprefix("Try: ") if lines and lines[-1].startswith("Try: ") else ""
    found = [line.strip() for line in lines] or [first.removeprefix(f"{path}: ")]
    assert not lines or first == f"{path}: {len(lines)} problems"
    return found, hint


def test_all_problems_at_once(tmp_path):
    text = (
        "id,twice,twice,empty,age,big,kind\n"  # line 1
        '1,a,b,,"4\n5",1,u\n'  # lines 2 and 3: not a number, because a cell has a line break
        "2,a,b,,,inf,v\n"  # line 4
        "3,a,b,,7,1\n"  # line 5
        "\n"  # line 6
        "4,a,b,,,2,\n"  # line 7
        "5,a,b,,8,3,u\n"  # line 8
    )
    found, hint = problems_of(csv_file(tmp_path, text.replace('"4\n5"', "4")), label="kin", drop=["nr"])
    assert found == [
        "line 4 has 6 cells, the header has 7.",
        "line 5 is blank.",
        "there is no column 'nr', which drop= names. Its columns are id, twice, twice, empty, age, big, kind.",
        "there is no column 'kin', which label= names. Did you mean 'kind'?",
        "2 columns are called 'twice'. Rename them.",
        "column 'empty' has no values.",
        "column 'age' has no value in lines 3, 6 (2 rows).",
        "column 'big' holds inf in line 3, too large for a feature. Correct it.",
        "column 'kind': line 6 has no label. Label it, or delete it from the data.",
    ]
    assert hint == 'label="kind", drop=["twice", "empty"], missing="median"'


def test_a_column_of_numbers_with_odd_words_is_not_thrown_away(tmp_path):
    cells = [f"{row},5" for row in range(150)] + ["k.A.", "-"]
    path = tmp_path / "trees.csv"
    path.write_text("height;label\n" + "".join(f"{cell};{'ab'[i % 2]}\n" for i, cell in enumerate(cells)))
    with pytest.raises(DataError) as caught:
        data.read_table(path)
    assert "column 'height' holds numbers, but also '-', 'k.A.'. If such a cell is missing" in str(caught.value)
    assert "drop" not in str(caught.value)


def test_lines_are_those_of_an_editor(tmp_path):
    """Cells with line breaks take several lines, whatever ends them."""
    text = 'x,note,label\r\n1,"a\r\nb\rc\nd",u\r\n,"e",v\r\n2,f,\r\n'
    found, _ = problems_of(csv_file(tmp_path, text))
    assert found == [
        "column 'x' has no value in line 6.",
        "column 'label': line 7 has no label. Label it, or delete it from the data.",
    ]


def test_an_unclosed_quote_is_named_by_its_own_line(tmp_path):
    found, _ = problems_of(csv_file(tmp_path, 'x,label\n"1\n2",a\n3,"b\n4,c\n'))
    assert found == ["line 4 opens a quote that is never closed."]


def test_rows_of_parquet_and_arrays_are_counted_from_the_first(tmp_path):
    columns = {"x": [1.0, None, 2.0, None], "label": ["a", "b", None, "a"]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    found, _ = problems_of(tmp_path / "t.parquet")
    assert found == [
        "column 'x' has no value in the 2nd, 4th rows (2 rows).",
        "column 'label': the 3rd row has no label. Label it, or delete it from the data.",
    ]
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 1)), y=np.array([0.0, 1.0, np.nan]))
    with pytest.raises(InputError, match=r"a\.npz: y: the 3rd row has no label"):
        data.read_npz(tmp_path / "a.npz")
    np.save(tmp_path / "x.npy", np.array([[1.0], [np.nan], [2.0], [np.inf]]))
    rows = data.MappedArray(tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"the 4th row is inf at index 0 \(2 such rows: the 4th, 2nd rows\)"):
        rows[torch.tensor([3, 0, 1])]


def test_arrays_without_a_usual_name(tmp_path):
    np.savez(tmp_path / "a.npz", rows=np.zeros((3, 1)), truth=np.arange(3))
    with pytest.raises(
        DataError, match=r"which array holds the inputs\?.*\n.*which array holds the labels\?.*Say labels="
    ):
        data.read_npz(tmp_path / "a.npz")
    with command_line(), pytest.raises(DataError, match=r"Call it x, and no other array so\.\n.*Say --label NAME"):
        data.read_npz(tmp_path / "a.npz")


def test_many_problems_are_cut_short(tmp_path):
    header = ",".join([*(f"c{i}" for i in range(27)), "label"])
    with pytest.raises(DataError) as error:
        data.read_table(csv_file(tmp_path, header + "\n" + "," * 27 + "a\n"), drop=["c26"])
    first, *problems, more, hint = str(error.value).splitlines()
    assert first.endswith("t.csv: 26 problems")
    assert (len(problems), more) == (20, "  … and 6 more")
    assert hint.startswith('Try: drop=["c26", "c0", "c1"')


def test_dropped_columns_have_no_problems(tmp_path):
    path = csv_file(tmp_path, "a,a,empty,x,label\n1,2,,3,u\n1,2,,4,v\n")
    assert data.read_table(path, drop=["a", "empty"]).inputs.tolist() == [[3], [4]]
    pq.write_table(pa.table({"when": pa.array([0, 1], pa.timestamp("s")), "x": [1, 2], "y": [0, 1]}), tmp_path / "t.pq")
    assert data.read_table(tmp_path / "t.pq", drop=["when"]).inputs.tolist() == [[1], [2]]


def test_a_second_label_column_can_be_dropped(tmp_path):
    path = csv_file(tmp_path, "x,y,label\n1,u,a\n2,v,b\n")
    assert data.read_table(path, drop=["y"]).classes == ("a", "b")
    with pytest.raises(DataError, match="holds the labels, so it cannot be dropped"):
        data.read_table(path, label="y", drop=["y"])


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a, b", "c"], ['say "hi"', " x"], [""], ["", "a"], ["ü", "-x"]])
def test_columns_on_the_command_line(names):
    with command_line():
        option, text = shlex.split(in_words({"drop": names}))
    assert option == "--drop"
    assert columns_from_text([text]) == tuple(name.strip() for name in names)


# Decimal signs


@pytest.mark.parametrize("rows", [3, 200])
def test_decimal_commas(tmp_path, rows):
    path = csv_file(tmp_path, "x;z;label\n" + "".join(f"{i},5;{i};{'ab'[i % 2]}\n" for i in range(rows)))
    found, hint = problems_of(path)
    assert found == ["column 'x' holds numbers with decimal commas, such as '0,5'."]
    assert hint == 'decimal=","'
    read = data.read_table(path, decimal=",")
    assert read.inputs[:3].tolist() == [[0.5, 0], [1.5, 1], [2.5, 2]]


def test_other_problems_beside_decimal_commas(tmp_path):
    found, hint = problems_of(csv_file(tmp_path, "x;z;label\n1,5;;a\n;;b\n2,5;;a\n"))
    assert found == [
        "column 'x' holds numbers with decimal commas, such as '1,5'.",
        "column 'z' has no values.",
        "column 'x' has no value in line 3.",
    ]
    assert hint == 'drop=["z"], missing="median", decimal=","'


@pytest.mark.parametrize(
    ("cells", "decimal", "message"),
    [
        (["1,234", "12,500"], ".", "holds numbers with commas, such as '1,234'. If they are decimal commas, say"),
        (["1,234,567", "5"], ".", "if they separate thousands"),
        (["1.5", "2"], ",", "decimal points, such as '1.5', but the decimal sign is said to be the comma"),
    ],
)
def test_decimal_signs_that_are_not_clear(tmp_path, cells, decimal, message):
    path = csv_file(tmp_path, f"x;label\n{cells[0]};a\n{cells[1]};b\n")
    found, hint = problems_of(path, decimal=decimal)
    assert len(found) == 1
    assert message in found[0]
    assert hint == ""


def test_both_decimal_signs_in_a_file(tmp_path):
    """A hint would only lead to the next message."""
    found, hint = problems_of(csv_file(tmp_path, "x;z;label\n1,5;2.5;a\n2,5;3.5;b\n"))
    assert len(found) == 1
    assert found[0].startswith(
        "column 'x' holds numbers with decimal commas, such as '1,5', but those of column 'z' have"
    )
    assert hint == ""


def test_text_with_commas_is_text(tmp_path):
    path = csv_file(tmp_path, "x;label\nred,blue;a\n1,5;b\n")
    assert data.read_table(path).inputs.tolist() == [[0, 1], [1, 0]]


def test_labels_with_decimal_commas(tmp_path):
    path = csv_file(tmp_path, "x;label\n1;10,0\n2;9,0\n")
    assert data.read_table(path, decimal=",").classes == ("9", "10")
    with pytest.raises(DataError, match=r"column 'label': line 2 holds 1\.5\. Labels are classes"):
        data.read_table(csv_file(tmp_path, "x;label\n1;1,5\n2;9,0\n"), decimal=",")
    data.write_labels(path, path, [3.5, 4.0], decimal=",")
    assert path.read_text() == "x;label\n1;3,5\n2;4,0\n"


# Encodings


@pytest.mark.parametrize(
    ("encoding", "given"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-8-sig", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", None),
        ("utf-16", "utf-16"),
        ("utf-32", None),
        ("utf-16-be", "utf-16-be"),
        ("utf-16-le", "utf-16"),
        ("cp1252", "cp1252"),
        ("latin-1", "latin1"),
        ("cp437", "cp437"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_encodings_are_read_and_written_back(tmp_path, encoding, given, ending):
    text = ending.join(["größe;label", "1;für", '2;"nö"', "3;für", ""])
    path = csv_file(tmp_path, text.encode(encoding))
    assert data.read_table(path, encoding=given).classes == ("für", "nö")
    assert list(data.read_columns(path, encoding=given)) == ["größe", "label"]
    data.write_labels(path, tmp_path / "same.csv", ["für", "nö", "für"], encoding=given)
    assert (tmp_path / "same.csv").read_bytes() == path.read_bytes()
    data.write_labels(path, tmp_path / "new.csv", ["für", "für", "für"], encoding=given)
    # The codec without a byte-order mark, which words inside of the file do not have.
    plain = "utf-8" if encoding == "utf-8-sig" else f"{encoding}-le" if encoding in ("utf-16", "utf-32") else encoding
    old, new = (word.encode(plain) for word in ("nö", "für"))
    assert (tmp_path / "new.csv").read_bytes() == path.read_bytes().replace(old, new)


def test_a_byte_of_another_encoding_is_named_with_its_line_and_what_to_try(tmp_path):
    path = csv_file(tmp_path, "x,label\n1,a\n2,b\xe9\n".encode("cp1252"))
    found, hint = problems_of(path)
    assert found == ["line 3 is not UTF-8: byte 0xe9."]
    assert hint == 'encoding="cp1252"'
    path = csv_file(tmp_path, "x,label\n1,a\n2,b\xe9\n")
    with pytest.raises(DataError, match=r"line 3 is not ASCII: byte 0xc3\.\nTry: encoding=\"utf-8\""):
        data.read_table(path, encoding="ascii")
    found, hint = problems_of(csv_file(tmp_path, bytes(range(1, 255))))
    assert "If it is a text file, name its encoding" in found[0]
    assert hint == ""


@pytest.mark.parametrize("name", ["cp1253x", "rot13", "hex", "zzzzzz", "", "a\0b", "ä"])
def test_encodings_that_are_none(tmp_path, name):
    path = csv_file(tmp_path, "x,label\n1,a\n")
    with pytest.raises(InputError, match=r"is unknown\. (Near|Usual) names: ") as error:
        data.read_table(path, encoding=name)
    known = re.search("names: (.*)[.]$", str(error.value))[1].split(", ")
    assert all("x".encode(near) for near in known)


def test_labels_that_the_encoding_does_not_have(tmp_path):
    path = csv_file(tmp_path, "x,label\n1,a\n")
    before = path.read_bytes()
    with pytest.raises(DataError, match="is cp1252 text, which cannot hold '☃' of the new labels"):
        data.write_labels(path, path, ["☃"], encoding="cp1252")
    assert path.read_bytes() == before


def test_text_that_cannot_be_written_back_is_not_changed(tmp_path):
    """UTF-7 can write one text in several ways."""
    path = csv_file(tmp_path, b"x,label\n+AGEAYg-,a\n")
    before = path.read_bytes()
    with pytest.raises(DataError, match="cannot be written back as it was"):
        data.write_labels(path, path, ["b"], encoding="utf-7")
    assert path.read_bytes() == before


# White space


def test_white_space_around_labels_does_not_count(tmp_path):
    path = csv_file(tmp_path, 'x,label\n1, a\n2,"a "\n3,a\n4, b\n')
    assert data.read_table(path).labels.tolist() == [0, 0, 0, 1]
    pq.write_table(pa.table({"x": [1, 2, 3], "label": ["a ", "a", "b"]}), tmp_path / "t.parquet")
    assert data.read_table(tmp_path / "t.parquet").classes == ("a", "b")
    assert data.read_table(csv_file(tmp_path, "x,label\n1, 10\n2,9 \n")).classes == ("9", "10")
    assert data.read_labels(path).values.tolist() == [" 10", "9 "]  # as they are written
