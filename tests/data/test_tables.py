"""Tables of one's own: numbers stay, text becomes categories, nothing is guessed silently."""

import decimal
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from postmax import data
from postmax.data.table_encoder import TableEncoder
from postmax.data.table_reading import TableReading
from postmax.errors import DataError, InputError


@pytest.fixture
def csv_file(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv(csv_file, delimiter):
    path = csv_file("age,colour,y\n30,red,no\n4.5e1,blue,yes\n-1, red ,no\n".replace(",", delimiter))
    table = data.read_table(path)
    assert table.inputs.tolist() == [[30, 0, 1], [45, 1, 0], [-1, 0, 1]]
    assert table.labels.tolist() == [0, 1, 0]
    assert table.classes == ("no", "yes")
    assert table.name == "t"


def test_parquet(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1, 2], pa.int32()),
            "f": pa.array([0.5, 1.5], pa.float32()),
            "b": pa.array([True, False]),
            "d": pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.50")]),
            "s": ["x", None],
            "c": pa.array(["u", "v"]).dictionary_encode(),
            "label": [7, 3],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    dataset = data.read_table(tmp_path / "t.parquet")
    assert dataset.inputs.tolist() == [[1, 0.5, 1, 1.25, 0, 1, 1, 0], [2, 1.5, 0, 2.5, 1, 0, 0, 1]]
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.classes == ("3", "7")


def test_constant_and_identifier_columns_are_left_alone(csv_file):
    path = csv_file("id,constant,label\n1,5,a\n2,5,b\n")
    assert data.read_table(path).inputs.tolist() == [[1, 5], [2, 5]]
    assert data.read_table(path, drop=["id"]).inputs.tolist() == [[5], [5]]
    assert data.read_table(path, categorical=["id"]).inputs.tolist() == [[1, 0, 5], [0, 1, 5]]


@pytest.mark.parametrize("word", ["", "NA", "nan", "NULL", "?", " n/a "])
def test_missing_numbers(csv_file, word):
    path = csv_file(f"x,z,label\n1,0,a\n{word},0,b\n3,0,a\n8,0,b\n")
    with pytest.raises(DataError, match=r"t\.csv: column 'x' has no value in line 3\.\nTry: missing=\"median\"$"):
        data.read_table(path)
    assert data.read_table(path, missing="median").inputs[:, 0].tolist() == [1, 3, 3, 8]


def test_missing_text_is_a_category(csv_file):
    path = csv_file("x,label\nu,a\n,b\n")
    encoder = TableEncoder.fit({"x": data.read_columns(path)["x"]})
    assert encoder.features == ("x=(missing)", "x=u")
    assert data.read_table(path).inputs.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("x,label\n1,a\ninf,b\n", {}, "column 'x' holds inf in line 3"),
        ("x,label\n1,a\n1e300,b\n", {}, r"holds 1e\+300 in line 3, too large for a feature\. Correct it\."),
        ("x,label\n1,a\ninf,b\ninf,a\n", {}, r"holds inf in lines 3, 4 \(2 rows\), too large"),
        ("x,label\n1,a\n,b\n,a\n", {}, r"has no value in lines 3, 4 \(2 rows\)\.\nTry: missing"),
        ("x,z,label\n,1,a\n,2,b\n", {}, "column 'x' has no values"),
        ("x,label\n1,a\n2,\n", {}, "column 'label': line 3 has no label"),
        ("x,label\n1,0.5\n2,1\n", {}, "regression target"),
        ("x,x,label\n1,1,a\n", {}, "2 columns are called 'x'"),
        ("label\na\n", {}, "it has no features"),
        ("x,label\n1,a\n", {"drop": ["x"]}, "it has no features"),
        ("x,label\n1,a\n", {"drop": ["q"]}, "no column 'q'"),
        ("x,label\n1,a\n", {"categorical": ["q"]}, "no column 'q'"),
        ("x,label\n1,a\n", {"label": "q"}, "no column 'q'"),
        ("x,label\n", {}, "has a header but no rows"),
        (
            "name,label\n" + "".join(f"row {i},a\n" for i in range(101)),
            {},
            r"101 different values, such as 'row 99'\.\nTry: drop=\[\"name\"\]",
        ),
    ],
)
def test_mistakes(csv_file, content, options, message):
    path = csv_file(content)
    with pytest.raises(InputError, match=message) as error:
        data.read_table(path, **options)
    assert "t.csv" in str(error.value)


def test_labels_that_are_numbers_are_in_their_order(csv_file):
    table = data.read_table(csv_file("x,label\n0,10\n0,9\n0,-1\n"))
    assert table.classes == ("-1", "9", "10")
    assert data.read_table(csv_file("x,label\n0,10.0\n0,9.0\n")).classes == ("9", "10")
    assert data.read_table(csv_file("x,label\n0,010\n0,9\n")).classes == ("010", "9")


def test_decimal_commas_are_not_taken_for_categories(csv_file):
    path = csv_file("x;label\n" + "".join(f"{i},5;a\n" for i in range(200)))
    with pytest.raises(DataError, match=r"decimal commas, such as '0,5'\.\nTry: decimal=\",\""):
        data.read_table(path)


def test_types_that_are_no_features(tmp_path):
    for values in (pa.array([0, 1], pa.timestamp("s")), pa.array([[1], [2]]), pa.array([b"x", b"y"])):
        pq.write_table(pa.table({"odd": values, "label": [0, 1]}), tmp_path / "t.parquet")
        with pytest.raises(DataError, match=r"t\.parquet: column 'odd' is of type .*\nTry: drop=\[\"odd\"\]"):
            data.read_table(tmp_path / "t.parquet")


def test_other_files(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"t\.xlsx: data tables are read from"):
        data.read_table(tmp_path / "t.xlsx")


def test_a_later_table_gets_the_same_features(csv_file):
    first = data.read_columns(csv_file("n,c,label\n1,7,a\n,x,b\n5,7,a\n"))
    features = {name: first[name] for name in ("n", "c")}
    encoder = TableEncoder.fit(features, missing="median")
    encoder = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert encoder == TableEncoder.fit(features, missing="median")
    # Here "c" looks like numbers and "n" is all missing; neither changes what they are.
    later = data.read_table(csv_file("c,more,n,label\n7,1,,b\n7,2,2,b\n"), drop=["more"], encoder=encoder)
    assert torch.equal(later.inputs, torch.tensor([[3.0, 1, 0], [2.0, 1, 0]]))
    for content, message in (
        ("n,c\nfive,7\n", "column 'n' holds 'five' at index 0, which is not a number"),
        ("n,c\n1,8\n", "column 'c' holds '8' at index 0, which is a new category"),
        ("n\n1\n", "there is no column 'c', which the features need"),
    ):
        with pytest.raises(DataError, match=message):
            encoder.encode(data.read_columns(csv_file(content)))


def test_underscores_do_not_make_numbers():
    columns = {"x": np.array(["1_000", "2"], dtype=object)}
    assert TableEncoder.fit(columns).features == ("x=1_000", "x=2")


def test_the_reading_of_a_table_survives_a_file(csv_file):
    path = csv_file("n,c,id,label\n1,7,x,a\n,x,y,b\n5,,z,a\n")
    reading = data.read_table(path, drop=["id"], missing="keep").table
    assert (reading.label, reading.dropped, reading.missing) == ("label", ("id",), {"n": 1, "c": 1})
    again = TableReading.from_dict(json.loads(json.dumps(reading.to_dict(), allow_nan=False)))
    assert (again.label, again.dropped, again.missing) == (reading.label, reading.dropped, reading.missing)
    later = data.read_columns(path)
    torch.testing.assert_close(again.encoder.encode(later), reading.encoder.encode(later), equal_nan=True)


def test_only_tables_have_a_reading(csv_file):
    whole = data.read_table(csv_file("n,label\n1,a\n2,b\n3,a\n"))
    assert whole.subset(torch.tensor([0, 2])).table is whole.table
    assert data.load("digits").table is None
