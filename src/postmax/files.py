"""Write files so that nothing is lost when a process is killed, and read arrays without running code."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from postmax.errors import DataError
from postmax.wording import advice

# No space is left, or the user's share of it is used up.
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def atomic_write(path: str | Path, *, previous: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under `path` when it is complete, or not at all.

    The bytes go to a temporary file in the same folder. When they are on the disk, the temporary file takes the name
    `path`. Until then the file that was at `path` before stays there, also if the process is killed.

    Args:
        path: The file to write.
        previous: A name under which the file that was at `path` before is kept.

    Raises:
        DataError: If the folder does not exist or cannot be written, or the disk is full.
    """
    # If the path is a link, the file that it leads to is written, and the link stays.
    path = Path(path).expanduser().resolve()
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not an ordinary file"
        raise DataError(f"{path} is {kind}; give the name of a file to write.")
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_mode_for(path))
        if previous is not None and path.exists():
            # The oldest file may be replaced only now that the new one is on the disk.
            second_name(path, previous)
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def existing_file(path: str | Path) -> Path:
    """Return the path if it is an ordinary file that is not empty.

    A pipe, a socket or a device is refused: files are read more than once, and a pipe gives its content only once.

    Raises:
        DataError: If it is missing, a folder, not an ordinary file, or empty.
    """
    path = Path(path).expanduser()
    try:
        status = path.stat()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        problem = "does not exist" if missing else f"cannot be read: {error.strerror or error}"
        raise DataError(f"{path} {problem}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{path} is a folder; a file was expected.")
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise DataError(f"{path} is {kind}, not an ordinary file. Save its content to a file, and give that file.")
    if not status.st_size:
        raise DataError(f"{path} is empty.")
    return path


def not_written(path: Path, error: OSError) -> DataError:
    """Return the error for a file that could not be written, with what to do if the disk is full."""
    again = advice(python="try again", command="give the same command again")
    full = f" Free some space on its disk, and {again}. Nothing that was there before is lost."
    absent = f" The folder {path.parent} does not exist; make it first."
    missing = error.errno == errno.ENOENT and not path.parent.exists()
    remedy = full if error.errno in _FULL else absent if missing else ""
    return DataError(f"{path} could not be written: {error.strerror or error}.{remedy}")


def second_name(file: Path, name: Path) -> None:
    """Give a file a second name in its folder; a file that had this name before is replaced in a single step."""
    aside = name.with_name(f".{name.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        os.link(file, aside)
    except OSError:  # this file system has no hard links
        shutil.copyfile(file, aside)
    aside.replace(name)
    # If both names belonged to the same file already, the renaming did nothing and left the temporary name.
    aside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make sure that a new name survives a power cut. On systems where a folder cannot be opened, do nothing."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_for(path: Path) -> int:
    """Return the permissions for a file: those of the file that it replaces, or those of any new file.

    They are needed because a temporary file can be read by its owner only.
    """
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def load_arrays(path: str | Path, *, only: str | None = None, max_bytes: int = 16 << 30) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an `.npz` file, or the array of an `.npy` file under the name "array". Nothing is unpickled.

    Args:
        path: The file.
        only: The one array of an archive to return. The others are not read, and may be missing or damaged.
        max_bytes: The largest size that an archive may have when it is unpacked.

    Raises:
        DataError: If the file is missing, truncated, damaged, of another format, or holds Python objects.
    """
    path = existing_file(path)
    try:
        # Numpy would leave a file open that it opened itself, when the zip is damaged.
        with path.open("rb") as file:
            _refuse_bomb(file, path, max_bytes)
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"array": loaded}
            return {name: loaded[name] for name in loaded.files if only is None or name == only}
    except DataError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        RuntimeError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        # Numpy's own words would tell the reader how to run the code in the file.
        reason = "" if "pickle" in str(error) else f": {str(error).removesuffix('.')}"
        raise DataError(f"{path} is damaged, or not a file of plain numpy arrays{reason}.") from error


def _refuse_bomb(file: IO[bytes], path: Path, max_bytes: int) -> None:
    """Check that an archive does not unpack to more than `max_bytes`: a small file can fill all memory."""
    begins_like_a_zip = file.read(2) == b"PK"
    if begins_like_a_zip:
        with zipfile.ZipFile(file) as archive:
            total = sum(member.file_size for member in archive.infolist())
        if total > max_bytes:
            raise DataError(f"{path} would unpack to {total:,} bytes, more than the {max_bytes:,} allowed.")
    file.seek(0)
