"""Writing files so that nothing that was there is lost, and reading arrays so that nothing is executed."""

from __future__ import annotations

import io
import os
import shutil
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


@contextmanager
def atomic_write(path: str | Path, *, previous: Path | None = None) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` whole or not at all.

    The bytes go to a temporary file in the same folder, reach the disk, and only then take the name. Whatever was at
    `path` before stays until that moment, also when the process is killed.

    Args:
        path: The file to write.
        previous: A name under which what was at `path` is kept.

    Raises:
        DataError: If the folder does not exist or cannot be written, or the disk is full.
    """
    # A link stays a link: the file it leads to is written.
    path = Path(path).expanduser().resolve()
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise DataError(f"{path} is {kind}; give the name of a file to write.")
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_mode_for(path))
        if previous is not None and path.exists():  # only now that the new one is on the disk may the oldest go
            second_name(path, previous)
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataError(f"{path} could not be written: {error.strerror or error}.") from error
        raise


def second_name(file: Path, name: Path) -> None:
    """Another name for a file in its folder; what had that name before is replaced in a single step."""
    aside = name.with_name(f".{name.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        os.link(file, aside)
    except OSError:  # a file system without second names
        shutil.copyfile(file, aside)
    aside.replace(name)
    aside.unlink(missing_ok=True)  # where both were names of one file already, renaming did nothing


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut; where a folder cannot be opened as a file, the system sees to it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_for(path: Path) -> int:
    """A temporary file is private; the result gets the mode of the file it replaces, or that of any new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def load_arrays(path: str | Path, *, max_bytes: int = 16 << 30) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an `.npz` file, or the one of an `.npy` file under the name "array"; no object is unpickled.

    Args:
        path: The file.
        max_bytes: Refuse an archive that unpacks to more.

    Raises:
        DataError: If the file is missing, truncated, damaged, no such file, or holds Python objects.
    """
    path = Path(path).expanduser()
    try:
        # The bytes first: numpy leaves its file open when the zip is damaged.
        content = path.read_bytes()
        _refuse_bomb(content, path, max_bytes)
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"array": loaded}
        return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder; expected an .npz or .npy file.") from error
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
        raise DataError(f"{path} is damaged or no file of plain numpy arrays: {error}.") from error


def _refuse_bomb(content: bytes, path: Path, max_bytes: int) -> None:
    """A small file may claim to unpack to more than the memory; refuse it before it does."""
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            total = sum(member.file_size for member in archive.infolist())
        if total > max_bytes:
            raise DataError(f"{path} would unpack to {total:,} bytes, more than the {max_bytes:,} allowed.")
