"""Arrow files, in the file format and in the stream format, are read like Parquet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from postmax.data import read_table
from postmax.data.column_blocks import column_blocks
from postmax.data.label_column import read_labels, write_labels
from postmax.data.problems import Problems
from postmax.errors import DataError


def table(count: int = 25) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "size": rng.normal(size=count),
            "colour": pa.array(["red", "blue", None, "red", "green"] * (count // 5)).dictionary_encode(),
            "kind": ["a", "b"] * (count // 2) + ["a"] * (count % 2),
        }
    )


def write(path, content):
    if path.suffix == ".feather":
        feather.write_feather(content, path, compression="zstd")
    elif path.suffix == ".parquet":
        pq.write_table(content, path)
    else:
        open_file = ipc.new_stream if "stream" in path.name else ipc.new_file
        with open_file(path, content.schema) as writer:
            writer.write_table(content, max_chunksize=10)


NAMES = ["t.parquet", "t.arrow", "stream.arrow", "t.feather", "t.ipc"]


@pytest.mark.parametrize("name", NAMES)
def test_they_are_the_same_data_set(name, tmp_path):
    write(tmp_path / name, table())
    pq.write_table(table(), tmp_path / "expected.parquet")
    found, expected = read_table(tmp_path / name, label="kind"), read_table(tmp_path / "expected.parquet", label="kind")
    assert found.inputs.equal(expected.inputs)
    assert found.labels.equal(expected.labels)
    assert found.table.encoder == expected.table.encoder


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_the_rows_in_their_order(name, tmp_path):
    write(tmp_path / name, table())
    with Problems(name) as problems:
        blocks = list(column_blocks(tmp_path / name, None, ["size"], 7, problems, kept=["kind"]))
    assert np.concatenate([block.values["size"] for block in blocks]).tolist() == table()["size"].to_pylist()
    assert [row for block in blocks for row in block.values["kind"]] == table()["kind"].to_pylist()
    assert max(len(block.values["size"]) for block in blocks) <= 10
    assert blocks[1].rows.one(0).startswith("the ")


@pytest.mark.parametrize("name", ["t.arrow", "t.feather"])
def test_labels_are_replaced_and_all_else_stays(name, tmp_path):
    write(tmp_path / name, table())
    new = ["b"] * 25
    write_labels(tmp_path / name, tmp_path / f"new-{name}", new, column="kind")
    found = ipc.open_file(tmp_path / f"new-{name}").read_all()
    assert found["kind"].to_pylist() == new
    assert found.drop(["kind"]).equals(table().drop(["kind"]))
    assert read_labels(tmp_path / f"new-{name}", "kind").values.tolist() == new


@pytest.mark.parametrize("name", ["t.arrow", "t.feather", "t.parquet"])
@pytest.mark.parametrize("content", [b"nothing of the kind", b"ARROW1\0\0broken", b"PAR1broken"])
def test_damaged_files_are_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    kind = "a Parquet file" if name.endswith("parquet") else "an Arrow file"
    with pytest.raises(DataError, match=f"is not {kind}, or it is damaged"):
        read_table(tmp_path / name, label="kind")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    write(tmp_path / "t.arrow", table())
    content = (tmp_path / "t.arrow").read_bytes()
    for size in range(1, len(content), 97):
        (tmp_path / "cut.arrow").write_bytes(content[:size])
        try:  # what is left may be a stream that is whole so far
            found = read_table(tmp_path / "cut.arrow", label="kind")
        except DataError:
            continue
        assert len(found) <= 25


def test_an_arrow_file_with_the_name_of_a_text_file(tmp_path):
    write(tmp_path / "t.arrow", table())
    (tmp_path / "t.csv").write_bytes((tmp_path / "t.arrow").read_bytes())
    with pytest.raises(DataError, match=r"an Arrow file\. Give it a name that ends in \.arrow"):
        read_table(tmp_path / "t.csv", label="kind")
