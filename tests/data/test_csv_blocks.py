"""CSV files in blocks: the same rows, lines and complaints as when the whole file is read."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmax.data import csv_blocks as module
from postmax.data.column_blocks import column_blocks
from postmax.data.csv_blocks import csv_blocks
from postmax.data.csv_text import read_csv_text
from postmax.data.problems import Problems
from postmax.errors import DataError

CELLS = st.text(st.sampled_from('ab1,;"\n\r\té€ '), max_size=6)


def read(path, rows_at_once=3, encoding=None):
    with Problems(path) as problems:
        return list(csv_blocks(path, encoding, rows_at_once, problems))


def in_blocks(path, **options):
    """What the blocks of a file hold together, or the error."""
    try:
        blocks = read(path, **options)
    except DataError as error:
        return str(error)
    columns = range(len(blocks[0].header))
    values = [[cell for block in blocks for cell in block.column(place)] for place in columns]
    return blocks[0].header, values, [line for block in blocks for line in block.lines]


def at_once(path, encoding=None):
    try:
        table = read_csv_text(path, encoding=encoding)
    except DataError as error:
        return str(error)
    return table.header, [table.column(place) for place in range(len(table.header))], table.lines


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("encoding", [None, "utf-16", "cp1252"])
@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4",
        "a\tb\r1\t2\r3\t4\r\r\r",
        'a;b\n"x;\ny";2\n"say ""hi""";é\n5" pipe;3\n\n\n',
        "a,b\n" + "".join(f"{i},{'x' * (i % 50)}\n" for i in range(40)),
        "a\n1\n\n2\n\n",
        "a,b\n1\n1,2\n1,2,3\n4,5\n\n6,7\n",
        'a,b\n1,2\n"open,3\n4,5\n',
        "a,b\n",
        "a,b",
        "\n\n",
        "\na,b\n1,2\n",
    ],
)
def test_blocks_hold_what_the_file_holds(tmp_path, monkeypatch, text, encoding, piece):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", piece)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding or "utf-8-sig", errors="replace"))
    found, expected = in_blocks(path, encoding=encoding), at_once(path, encoding=encoding)
    assert found == expected or (text.startswith("a,b\n1\n1,2") and "lines" in found)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8), st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_any_text_in_pieces(tmp_path_factory, rows, piece):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(("first,second\n" + "\n".join(",".join(row) for row in rows)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BYTES_AT_ONCE", piece)
        found, expected = in_blocks(path), at_once(path)
    if isinstance(expected, str):  # a row that is too short is found block by block, so fewer may be named
        assert isinstance(found, str)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n\xff\xfe,3\n", "line 3 is not UTF-8: byte 0xff"),
        (b"a,b\n1,2\n1,\0\n", "line 3 contains zero bytes"),
        ("a,b\n1,2\n".encode("utf-16-le"), "looks like UTF-16 without a byte-order mark"),
        (b"PK\x03\x04....", "a zip archive or a spreadsheet"),
    ],
)
@pytest.mark.parametrize("piece", [5, 1000])
def test_files_that_are_not_text(tmp_path, monkeypatch, content, message, piece):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", piece)
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path)


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1000)
    monkeypatch.setattr(module, "_LONGEST_ROW", 10_000)
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n"3,4\n' + "5,6\n" * 100_000)
    with pytest.raises(DataError, match="line 3 opens a quote that is never closed"):
        read(path)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 10_000)
    peaks = []
    for rows in (3_000, 30_000):
        path = tmp_path / f"{rows}.csv"
        path.write_text("a,b\n" + "".join(f"{i},some text of the row {i}\n" for i in range(rows)))
        tracemalloc.start()
        with Problems(path) as problems:
            count = sum(len(file.values["a"]) for file in column_blocks(path, None, {"a"}, 500, problems))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count == rows
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < path.stat().st_size


def test_columns_that_are_not_wanted_are_not_looked_at(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,a,x\n1,2,3\n")
    with Problems(path) as problems:
        (file,) = column_blocks(path, None, {"a"}, 10, problems)
    assert file.names == ("x", "a", "x")
    assert {name: values.tolist() for name, values in file.values.items()} == {"a": ["2"]}
    with Problems(path) as problems:
        (file,) = column_blocks(path, None, {"a", "x"}, 10, problems)
    assert "2 columns are called 'x'" in file.unusable["x"]
    assert np.array_equal(file.values["a"], ["2"])
