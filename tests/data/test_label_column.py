"""Labels are read and written back; everything else in the file stays as it was."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmax import data
from postmax.data.csv_text import quote, read_csv_text, unquote
from postmax.errors import DataError

FEW = settings(max_examples=60, deadline=None, derandomize=True)
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
AWKWARD = st.text(st.sampled_from(list("a\"',;\t|\r\n é😀")), max_size=6)


@st.composite
def tables(draw):
    """Any table the csv module can write, as bytes, with what is in it."""
    columns = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS | AWKWARD, min_size=columns, max_size=columns), min_size=1, max_size=5))
    delimiter = draw(st.sampled_from(",;\t|")) if columns > 1 else ","
    ending = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    header = [f"c{i}" for i in range(columns - 1)] + ["label"]
    lines = []
    for row in [header, *rows]:
        buffer = io.StringIO(newline="")
        csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n", quoting=quoting).writerow(row)
        lines.append(buffer.getvalue().removesuffix("\r\n"))
    mark, last = draw(st.sampled_from(["", "\ufeff"])), draw(st.sampled_from(["", ending, ending * 3]))
    return mark + ending.join(lines) + last, rows, delimiter


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


@FEW
@given(table=tables())
def test_csv_agrees_with_the_csv_module(folder, table):
    text, rows, delimiter = table
    (folder / "t.csv").write_bytes(text.encode())
    read = read_csv_text(folder / "t.csv")
    assert [[unquote(cell) for cell in row] for row in read.rows] == rows
    assert read.delimiter == delimiter
    assert read.to_text() == text


@FEW
@given(table=tables(), new=st.lists(CELLS | AWKWARD, min_size=5, max_size=5))
def test_only_the_labels_change(folder, table, new):
    text, rows, _ = table
    (folder / "t.csv").write_bytes(text.encode())
    labels = data.read_labels(folder / "t.csv")
    assert labels.column == "label"
    assert [str(value) for value in labels.values] == [row[-1] for row in rows]
    # The same labels: the same file.
    data.write_labels(folder / "t.csv", folder / "same.csv", labels.values)
    assert (folder / "same.csv").read_bytes() == text.encode()
    # Other labels: other rows only in their last cell.
    data.write_labels(folder / "t.csv", folder / "new.csv", new[: len(rows)])
    before, after = read_csv_text(folder / "t.csv"), read_csv_text(folder / "new.csv")
    assert after.column(len(after.header) - 1) == new[: len(rows)]
    assert [row[:-1] for row in after.rows] == [row[:-1] for row in before.rows]
    assert (after.endings, after.raw_header, after.tail) == (before.endings, before.raw_header, before.tail)


@FEW
@given(AWKWARD, st.sampled_from(",;\t|"))
def test_quote_and_unquote(value, delimiter):
    raw = quote(value, delimiter)
    assert unquote(raw) == value
    assert next(csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter)) == [value]


def csv_file(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_bytes_are_kept(tmp_path):
    path = csv_file(tmp_path, '\ufeff"id" ; label;x\r\n007;"a"; 1.50 \r\n"8;";b;"z"\n\n\r\n')
    data.write_labels(path, tmp_path / "out.csv", ["c", "c"])
    assert (
        tmp_path / "out.csv"
    ).read_bytes().decode() == '\ufeff"id" ; label;x\r\n007;"c"; 1.50 \r\n"8;";c;"z"\n\n\r\n'


@pytest.mark.parametrize(("cells", "kind"), [("10 9", "i"), ("10 9.0", "O"), ("1 x", "O"), ("1 01", "O")])
def test_numbers_only_where_they_come_back_as_they_were(tmp_path, cells, kind):
    path = csv_file(tmp_path, "label\n" + cells.replace(" ", "\n"))
    labels = data.read_labels(path).values
    assert labels.dtype.kind == kind
    before = path.read_bytes()
    data.write_labels(path, path, labels)
    assert path.read_bytes() == before


def test_numbers_become_text(tmp_path):
    path = csv_file(tmp_path, "x,y\n1,0\n2,1\n")
    assert data.read_labels(path).values.tolist() == [0, 1]
    data.write_labels(path, path, np.array([1, 0]))
    assert path.read_text() == "x,y\n1,1\n2,0\n"


@pytest.mark.parametrize(
    ("content", "column"),
    [("a,Target\n1,2\n", "Target"), ("only\n1\n", "only"), ("a;class\n1;2\n", "class"), ("a,y\n1,2\n", "y")],
)
def test_the_column_is_found(tmp_path, content, column):
    assert data.read_labels(csv_file(tmp_path, content)).column == column


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("a,b\n1,2\n", None, "which column holds the labels\\? .*: a, b"),
        ("label,y\n1,2\n", None, "which column"),
        ("a,b\n1,2\n", "c", "no column 'c', which column= names. Its columns are a, b"),
        ("a,a\n1,2\n", "a", "2 columns are called 'a'"),
        ("label,label\n1,2\n", None, "which column"),
        ("a,label\n1,2\n3\n", None, "line 3 has 1 cell, the header has 2"),
        ("a,label\n1,2\n\n3,4\n", None, "line 3 is blank"),
        ("a,label\n1,2,3\n", None, "line 2 has 3 cells"),
        ('a,label\n1,"2\n', None, "line 2 opens a quote that is never closed"),
        ("a,label\n1,\xe9\n".encode("latin1"), None, 'line 2 is not UTF-8: byte 0xe9\\.\nTry: encoding="cp1252"'),
        ("a,label\n".encode("utf-16"), None, "has a header but no rows"),
        (b"a,label\n1,\x00\n", None, "zero bytes"),
        (b"", None, "is empty"),
        (b"\n\n", None, "is empty"),
        (b"\xef\xbb\xbf", None, "is empty"),
    ],
)
def test_csv_mistakes(tmp_path, content, column, message):
    with pytest.raises(DataError, match=message) as error:
        data.read_labels(csv_file(tmp_path, content), column)
    assert "t.csv" in str(error.value)


def test_wrong_number_of_labels(tmp_path):
    path = csv_file(tmp_path, "a,label\n1,2\n")
    with pytest.raises(DataError, match="has 1 rows, but there are 2 labels"):
        data.write_labels(path, path, ["a", "b"])
    assert path.read_text() == "a,label\n1,2\n"


def test_the_old_file_survives_a_failure(tmp_path, monkeypatch):
    path = csv_file(tmp_path, "a,label\n1,2\n")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="No space"):
        data.write_labels(path, path, ["x"])
    assert path.read_text() == "a,label\n1,2\n"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_where_it_cannot_be_written(tmp_path):
    path = csv_file(tmp_path, "a,label\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    for out, message in (
        ("none/out.csv", "No such file"),
        ("folder.csv", "is a folder"),
        ("out.parquet", r"must end in|format of"),
    ):
        with pytest.raises(DataError, match=message):
            data.write_labels(path, tmp_path / out, ["x"])


TYPES = [
    (pa.int8(), [1, 2], [2, 1]),
    (pa.int64(), [1, 2], [5, 5]),
    (pa.string(), ["a", "b"], ["b", "c"]),
    (pa.large_string(), ["a", "b"], ["b", "c"]),
    (pa.bool_(), [True, False], [False, False]),
    (pa.float32(), [1.0, 2.0], [2.0, 2.0]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], ["b", "c"]),
]


@pytest.mark.parametrize(("kind", "old", "new"), TYPES, ids=str)
def test_parquet_keeps_types_and_metadata(tmp_path, kind, old, new):
    field = pa.field("label", kind, nullable=False, metadata={"unit": "none"})
    others = [pa.field("when", pa.timestamp("us", "UTC")), pa.field("nested", pa.list_(pa.int8()))]
    schema = pa.schema([others[0], field, others[1]], metadata={"author": "me"})
    table = pa.table(
        [pa.array([0, None], others[0].type), pa.array(old, kind), pa.array([[1], None], others[1].type)], schema
    )
    path, out = tmp_path / "t.parquet", tmp_path / "o.parquet"
    pq.write_table(table, path)
    assert data.read_labels(path).values.tolist() == old
    data.write_labels(path, out, new)
    written = pq.read_table(out)
    assert written.schema.equals(pq.read_table(path).schema, check_metadata=True)
    assert written.column("label").to_pylist() == new
    assert written.drop_columns("label").equals(table.drop_columns("label"))


def test_parquet_mistakes(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"label": pa.array([1, 2], pa.int8())}), path)
    for labels in (["a", "b"], [1, 300], [1.5, 2]):
        with pytest.raises(DataError, match=r"t\.parquet: the labels do not fit column 'label' of type int8"):
            data.write_labels(path, path, labels)
    with pytest.raises(DataError, match="has 2 rows"):
        data.write_labels(path, path, [1])
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-5], whole[: len(whole) // 2], b"text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t\.parquet"):
            data.read_labels(path)


@pytest.mark.parametrize(
    ("old", "new"), [([1, 2], [2, 1]), (["a", "bb"], ["bb", "a"]), ([True, False], [False, False])]
)
def test_npy(tmp_path, old, new):
    path = tmp_path / "l.npy"
    np.save(path, np.array(old))
    labels = data.read_labels(path)
    assert (labels.column, labels.values.tolist()) == (None, old)
    data.write_labels(path, path, new)
    back = np.load(path)
    assert back.tolist() == new
    assert back.dtype == np.array(old).dtype


def test_npy_mistakes(tmp_path):
    path = tmp_path / "l.npy"
    np.save(path, np.array([1, 2], dtype=np.int8))
    with pytest.raises(DataError, match="holds int8, which cannot represent"):
        data.write_labels(path, path, [1, 300])
    for array in (np.zeros((2, 2)), np.array(3), np.array([print], dtype=object)):
        np.save(path, array)
        with pytest.raises(DataError, match=r"l\.npy"):
            data.read_labels(path)
    path.write_bytes(b"text")
    with pytest.raises(DataError, match=r"l\.npy"):
        data.read_labels(path)
    with pytest.raises(DataError, match="does not exist"):
        data.read_labels(tmp_path / "none.csv")
