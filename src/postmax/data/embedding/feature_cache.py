"""Features that were computed before, in files that several processes may use at once.

A folder has many small archives, each with the keys of some rows and their features. An archive is written in one step
and never changed. So a process that is killed loses only the rows after its last archive, and processes that compute
the same rows at the same time write them twice, which does no harm.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from postmax.data.files import data_root
from postmax.errors import DataError
from postmax.files import atomic_write, load_arrays
from postmax.progress import Stage, tell

Features = npt.NDArray[np.float32]
# If the way from a file to its features changes, so does this number.
_VERSION = 1
_KEY_BYTES = hashlib.sha256().digest_size


def cache_folder(*identity: object) -> Path:
    """Return the folder for the features of one model.

    Args:
        identity: All that features depend on besides the row; first the name of the model.
    """
    text = repr((_VERSION, *identity))
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", str(identity[0])).strip("-")[:60]
    return data_root() / "embeddings" / f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class FeatureCache:
    """The features of one model.

    Args:
        folder: The folder of the archives; None to keep nothing.
        dims: How many features a row has.
    """

    def __init__(self, folder: Path | None, dims: int) -> None:
        self._folder = folder
        self._dims = dims
        self._looked_at: set[str] = set()

    def news(self, wanted: Collection[bytes]) -> Iterator[tuple[bytes, Features]]:
        """Yield the wanted rows among those that were written since the last call, with their keys.

        A damaged archive is deleted: its rows are computed again.
        """
        if self._folder is None:
            return
        for path in sorted(self._folder.glob("*.npz")):
            if path.name not in self._looked_at:
                self._looked_at.add(path.name)
                yield from self._rows(path, wanted)

    def keep(self, keys: Sequence[bytes], features: Features) -> None:
        """Write rows to the disk. Where that is not possible, say so once, and keep nothing."""
        if self._folder is None or not keys:
            return
        path = self._folder / f"{hashlib.sha256(b''.join(keys)).hexdigest()[:32]}.npz"
        self._looked_at.add(path.name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                np.savez(file, keys=np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES), features=features)
        except (DataError, OSError) as error:
            tell(Stage(f"features are computed, but not kept for the next time ({error})"))
            self._folder = None

    def _rows(self, path: Path, wanted: Collection[bytes]) -> Iterator[tuple[bytes, Features]]:
        try:
            keys = load_arrays(path, only="keys")["keys"]
            _check(keys, (keys.size // _KEY_BYTES, _KEY_BYTES), np.uint8)
            rows = [row for row, key in enumerate(keys) if key.tobytes() in wanted]
            if not rows:
                return
            features = load_arrays(path, only="features")["features"]
            _check(features, (len(keys), self._dims), np.float32)
        except (DataError, KeyError):
            with suppress(OSError):  # the folder may be read-only, or another process was faster
                path.unlink()
            return
        for row in rows:
            yield keys[row].tobytes(), features[row]


def _check(array: npt.NDArray[np.generic], shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise DataError(f"{array.dtype} of shape {array.shape}")
