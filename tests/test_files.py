"""Files appear whole or not at all; arrays are read without executing anything."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from postmax.errors import DataError, MissingDependency
from postmax.extras import need
from postmax.files import atomic_write, load_arrays


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with atomic_write(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_writer_leaves_what_was_there(tmp_path):
    """Kill −9 in the middle of a write: the old content stands."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    script = f"""
from postmax.files import atomic_write
with atomic_write({str(path)!r}) as file:
    file.write(b"half"); file.flush(); print("writing", flush=True); time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert path.read_bytes() == b"old"


def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").touch()
    with atomic_write(tmp_path / "ours") as file:
        file.write(b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_that_cannot_be_written_is_an_error_with_a_name(tmp_path):
    with (
        pytest.raises(DataError, match=r"absent/file could not be written: No such file"),
        atomic_write(tmp_path / "absent" / "file"),
    ):
        pass


def test_arrays_are_read(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", x=np.eye(2), y=np.array(["s"]))
    assert load_arrays(tmp_path / "a.npy")["array"].tolist() == [0, 1, 2]
    assert set(load_arrays(tmp_path / "b.npz")) == {"x", "y"}


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"hello world", b"\x80\x04cos\nsystem\n."])
def test_what_is_no_array_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.npz"):
        load_arrays(tmp_path / "bad.npz")
    with pytest.raises(DataError, match="is a folder"):
        load_arrays(tmp_path)


def test_a_missing_package_names_the_command_that_brings_it():
    with pytest.raises(MissingDependency, match=r"pip install 'postmax\[cli\]'"):
        need("no_such_package_anywhere", "cli")


def test_one_array_of_many_is_read_without_the_others(tmp_path):
    path = tmp_path / "both.npz"
    np.savez(path, small=np.arange(3), large=np.zeros(10_000))
    content = bytearray(path.read_bytes())
    content[content.index(b"large.npy") + 5_000] ^= 1
    path.write_bytes(content)
    assert {name: array.tolist() for name, array in load_arrays(path, only="small").items()} == {"small": [0, 1, 2]}
    assert load_arrays(path, only="other") == {}
    with pytest.raises(DataError, match=r"both\.npz is damaged"):
        load_arrays(path)


def test_a_package_that_no_extra_has_is_named_by_itself():
    with pytest.raises(MissingDependency, match=r"^this needs no_such_module: pip install no-such-package\.$"):
        need("no_such_module.part", package="no-such-package")
