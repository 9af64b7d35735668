"""Nothing a pickle asks for is run, and whatever is wrong with it is said with the name of the file."""

import contextlib
import os
import pickle
import pickletools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from official_files import python2_pickle

from postmax.data.safe_pickle import _ALLOWED_OPCODES, load_plain
from postmax.errors import DataError

FEW = settings(max_examples=60, deadline=None, derandomize=True)
DTYPES = [np.uint8, np.int16, np.int64, np.float32, np.float64, np.bool_, np.dtype(">i4")]


@FEW
@given(
    st.sampled_from(DTYPES).flatmap(lambda d: hnp.arrays(d, hnp.array_shapes())),
    st.integers(2, 4),  # 5 hands arrays over as buffers, which no published file does
    st.booleans(),
)
def test_arrays_come_back_as_they_were(array, protocol, fortran):
    array = np.asfortranarray(array) if fortran else array
    back = load_plain(pickle.dumps({"a": array}, protocol=protocol), "f")["a"]
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")


def test_python_2_wrote_these():
    images = np.arange(12, dtype=np.uint8).reshape(3, 4)
    back = load_plain(python2_pickle({b"data": images, b"labels": [2, 0, 1], b"batch_label": b"b"}), "f")
    np.testing.assert_array_equal(back["data"], images)
    assert back["labels"] == [2, 0, 1]


class Calls:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (os.system, ("touch /tmp/postmax-was-here",), "system"),
        (eval, ("1+1",), "eval"),
        (exec, ("1",), "exec"),
        (getattr, (1, "real"), "getattr"),
        (np.load, ("x.npy",), "load"),
        (np.frombuffer, (b"12",), "frombuffer"),
        (np.memmap, ("/etc/passwd",), "memmap"),
        (bytearray, (10,), "bytearray"),
    ],
)
def test_malicious_pickles_are_refused(protocol, function, arguments, named):
    data = pickle.dumps({"data": Calls(function, *arguments)}, protocol=protocol)
    with pytest.raises(DataError, match=rf"evil\.pkl (wants to run .*{named}|uses the pickle instruction)"):
        load_plain(data, "evil.pkl")


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"a": np.array([print, 1], dtype=object)}),
        pickle.dumps({"a": np.array([1], dtype=[("f", "i4")])}),
        pickle.dumps({"a": np.array(["x"])}),
        pickle.dumps({"a": np.array(["2020-01-01"], dtype="datetime64[D]")}),
        pickle.dumps({"a": np.float64(1)}),
        pickle.dumps([1, 2]),
        pickle.dumps({3: 1}),
        pickle.dumps({"a": {1, 2}}),
        b"",
        b"\x80\x02.",
        b"not a pickle at all",
        # State set on a function, so that the next file would be read differently.
        b"\x80\x02}(U\x01ac_codecs\nencode\n}U\x09__doc__U\x01xsbu.",
        b"\x80\x02}(U\x01acnumpy\nndarray\n}U\x01xK\x01sbu.",
        # An array whose content is too short, is a list, or was never given.
        b"\x80\x02}(U\x01acnumpy\nndarray\n)R(K\x01K\x05\x85cnumpy\ndtype\nU\x02u1\x85R\x89U\x01xtbu.",
        b"\x80\x02}(U\x01acnumpy\nndarray\n)R(K\x01K\x05\x85cnumpy\ndtype\nU\x02u1\x85R\x89]tbu.",
        b"\x80\x02}(U\x01acnumpy\nndarray\n)Ru.",
        # Persistent ids, extensions, classes, buffers.
        b"\x80\x02}(U\x01aU\x01xQu.",
        b"\x80\x02}(U\x01a\x82\x01u.",
        b"\x80\x02}(U\x01acnumpy\nndarray\n)\x81u.",
        b"\x80\x05}(U\x01a\x97u.",
        # A memo of two thousand million entries; eight exabytes of bytes.
        b"\x80\x02}r\xff\xff\xff\x7f.",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    ],
)
def test_whatever_else_is_refused_with_the_name_of_the_file(data):
    with pytest.raises(DataError, match=r"^odd\.pkl "):
        load_plain(data, "odd.pkl")


def test_truncated_anywhere():
    data = python2_pickle({b"data": np.zeros((2, 3), np.uint8), b"labels": [1, 2]})
    for length in range(len(data)):
        with pytest.raises(DataError, match="cut"):
            load_plain(data[:length], "cut")


@FEW
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_flipped_byte_is_an_error_or_another_value(position, value):
    data = bytearray(pickle.dumps({"a": np.arange(4), "b": [1, "x", (2, None)]}, protocol=2))
    data[position % len(data)] = value
    with contextlib.suppress(DataError):
        assert isinstance(load_plain(bytes(data), "f"), dict)


def test_every_allowed_instruction_exists():
    assert set(_ALLOWED_OPCODES) <= {opcode.name for opcode in pickletools.opcodes}
