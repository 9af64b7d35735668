"""Writing files so that nothing that was there is lost, and reading arrays so that nothing is executed."""

from __future__ import annotations

import io
import os
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
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` whole or not at all.

    The bytes go to a temporary file in the same folder, reach the disk, and only then take the name. Whatever was at
    `path` before stays until that moment, also when the process is killed.

    Raises:
        DataError: If the folder does not exist or cannot be written, or the disk is full.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file to write.")
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is private; the result gets the mode any new file would get.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataError(f"{path} could not be written: {error.strerror or error}.") from error
        raise


def load_arrays(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an `.npz` file, or the one of an `.npy` file under the name "array"; no object is unpickled.

    Raises:
        DataError: If the file is missing, truncated, damaged, no such file, or holds Python objects.
    """
    try:
        # The bytes first: numpy leaves its file open when the zip is damaged.
        loaded = np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"array": loaded}
        return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder; expected an .npz or .npy file.") from error
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or no file of plain numpy arrays: {error}.") from error
