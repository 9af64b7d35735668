"""Rows without labels, from everywhere: what is read, and what is refused in one sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from postmax.data import TableEncoder
from postmax.data.frames import columns_of_frame, is_frame
from postmax.data.new_rows import open_rows
from postmax.data.row_form import NewReading, RowForm
from postmax.data.table_encoder import CategoryColumn, NumberColumn
from postmax.data.table_reading import TableReading
from postmax.errors import DataError, InputError

ENCODER = TableEncoder((NumberColumn("size"), CategoryColumn("kind", ("a", "b"))))
TABLE = RowForm((3,), TableReading("label", ("id",), ENCODER, {}))
FEATURES, IMAGES = RowForm((2,)), RowForm((3, 4, 4))


def read(source, form=TABLE, **reading):
    opened = open_rows(source, form, NewReading(**reading))
    blocks = list(opened.blocks)
    return opened.ignored, torch.cat([block.inputs for block in blocks]), blocks


# Frames


@pytest.mark.parametrize(
    "frame",
    [
        {"size": [1, 2], "kind": ["a", "b"]},
        {"kind": np.array(["a", "b"]), "size": np.array([1, 2], np.int8)},
        pd.DataFrame({"size": [1, 2], "kind": ["a", "b"], "when": pd.to_datetime(["2020", "2021"])}),
        pd.DataFrame({"size": [1.0, 2.0], "kind": pd.Categorical(["a", "b"])}, index=[7, 7]),
        pd.DataFrame({"size": pd.array([1, 2], dtype="Int64"), "kind": ["a", "b"]}),
        pl.DataFrame({"kind": ["a", "b"], "size": [1, 2], "list": [[1], [2]]}),
        pl.DataFrame({"kind": ["a", "b"], "size": [1, 2]}, schema={"kind": pl.Categorical, "size": pl.UInt8}),
        pa.table({"size": [1, 2], "kind": ["a", "b"]}),
    ],
    ids=lambda frame: type(frame).__module__.partition(".")[0],
)
def test_frames_are_read_by_the_names_of_their_columns(frame):
    assert is_frame(frame)
    assert read(frame)[1].tolist() == [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    "size",
    [
        [1.5, None],
        pd.Series([1.5, None]),
        pd.array([1.5, None], dtype="Float64"),
        pl.Series([1.5, None]),
        np.array([1.5, np.nan], np.float32),
    ],
    ids=lambda size: type(size).__name__,
)
def test_missing_numbers_of_frames(size):
    frame = {"size": size, "kind": ["a", "b"]}
    assert read(frame, missing="median")[1][:, 0].nan_to_num(9).tolist() == [1.5, 9.0]
    with pytest.raises(DataError, match="column 'size' has no value at index 1"):
        read(frame)


def test_frames_that_cannot_be_read():
    twice = pd.DataFrame([[1, 2]], columns=["size", "size"])
    with pytest.raises(DataError, match="has two columns called 'size'"):
        columns_of_frame(twice)
    with pytest.raises(DataError, match="column 'kind' holds text and also 3"):
        read({"size": [1, 2], "kind": ["a", 3]})
    with pytest.raises(DataError, match="column 'size' is of type datetime64"):
        read(pd.DataFrame({"size": pd.to_datetime(["2020"]), "kind": ["a"]}))
    with pytest.raises(InputError, match="keep is for columns of files"):
        read({"size": [1], "kind": ["a"]}, keep=("size",))


# Tables


def test_a_table_says_which_columns_are_not_used(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("id,kind,x,label,size,y\n1,a,2,3,4,5\n")
    assert read(path)[0] == ("x", "y")
    assert read(path, drop=("x",))[0] == ("y",)
    assert read(path, keep=("y",))[0] == ("x",)
    assert read(path, keep=("y",))[2][0].kept["y"].tolist() == ["5"]


def test_parquet_files_are_read_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.data.new_rows.ROWS_AT_ONCE", 4)
    path = tmp_path / "new.parquet"
    kinds = pa.array(["a", "b"] * 5).dictionary_encode()
    dates = pa.array([0] * 10, pa.timestamp("s"))
    pq.write_table(pa.table({"when": dates, "kind": kinds, "size": list(range(10)), "a.b": list(range(10))}), path)
    ignored, rows, blocks = read(path, keep=("a.b",))
    assert ignored == ("when",)
    assert read(path, keep=("when",))[2][0].kept["when"][0].year == 1970
    assert rows[:, 0].tolist() == list(range(10))
    assert [len(block.inputs) for block in blocks] == [4, 4, 2]
    assert np.concatenate([block.kept["a.b"] for block in blocks]).tolist() == list(range(10))
    sizes = [*range(8), None, 9]
    pq.write_table(pa.table({"kind": kinds, "size": sizes}), path)
    with pytest.raises(DataError, match="column 'size' has no value in the 9th row"):
        read(path)
    pq.write_table(pa.table({"kind": kinds, "size": dates}), path)
    with pytest.raises(DataError, match=r"column 'size' is of type timestamp\[ms\]"):
        read(path)
    pq.write_table(pa.table({"kind": kinds[:0], "size": pa.array([], pa.int64())}), path)
    with pytest.raises(DataError, match="it has no rows"):
        read(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match="is not a Parquet file, or it is damaged"):
        read(path)
    with pytest.raises(InputError, match="encoding is for text files"):
        read(path, encoding="cp1252")


# Arrays


def test_arrays_that_cannot_be_read(tmp_path):
    np.savez(tmp_path / "whole.npz", x=np.zeros((50, 2)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-200])
    np.save(tmp_path / "whole.npy", np.zeros((50, 2)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-200])
    np.save(tmp_path / "objects.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", x=np.array([[{}]], dtype=object))
    np.savez(tmp_path / "several.npz", first=np.zeros((5, 2)), second=np.zeros((5, 2)))
    np.savez(tmp_path / "none.npz", x=np.zeros((0, 2)))
    (tmp_path / "rows.xyz").write_text("1 2")
    messages = {
        "cut.npz": "is not a complete .npz file",
        "cut.npy": "is not a complete .npy file",
        "objects.npy": "is not a complete .npy file",
        "objects.npz": "holds Python objects",
        "several.npz": "which array holds the inputs",
        "none.npz": "it has no rows",
        "rows.xyz": "has an unknown format",
        "nowhere.npz": "does not exist",
    }
    for name, message in messages.items():
        with pytest.raises(DataError, match=message):
            read(tmp_path / name, FEATURES)
    np.savez(tmp_path / "nan.npz", x=np.array([[1, 2], [np.nan, 3]]))
    with pytest.raises(DataError, match=r'the 2nd row is nan at index 0.*missing="median"'):
        read(tmp_path / "nan.npz", FEATURES)
    assert read(tmp_path / "nan.npz", FEATURES, missing="median")[1].isnan().sum() == 1
    with pytest.raises(DataError, match="is inf at index 1"):
        read(np.array([[1, np.inf]]), FEATURES, missing="median")


def test_images_may_have_their_channels_first_or_last():
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 4)).astype(np.uint8)
    assert torch.equal(read(images, IMAGES)[1], read(images.transpose(0, 2, 3, 1), IMAGES)[1])
    with pytest.raises(DataError, match="Images must be uint8"):
        read(images / 255, IMAGES)
    with pytest.raises(DataError, match=r"shape \(3, 5, 5\), but the model was trained on \(3, 4, 4\)"):
        read(np.zeros((1, 3, 5, 5), np.uint8), IMAGES)
