"""Download a published file: continue after an interruption, verify the checksum, and never leave a partial file."""

from __future__ import annotations

import io
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Literal

from postmax.data.files import check_digest
from postmax.errors import DataError
from postmax.files import existing_file, not_written
from postmax.once import alone_with
from postmax.progress import Stage, never_silent, tell

_CHUNK = 1 << 18
_TIMEOUT = 30.0


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes:
        url: Its address. Plain http is safe, because the checksum is verified.
        checksum: Its hexadecimal digest.
        algorithm: The algorithm of the digest.
        size: How many bytes it has, for people who have to decide; None if that is not known.
    """

    url: str
    checksum: str
    algorithm: Literal["md5", "sha256"] = "md5"
    size: int | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.url.rpartition("/")[2]

    def check(self, path: Path) -> None:
        """Compare a local copy with the published checksum.

        Raises:
            DataError: If they differ.
        """
        check_digest(existing_file(path), self.algorithm, self.checksum)


def fetch(remote: RemoteFile, folder: Path) -> Path:
    """Download a file into `folder`, if it is not there yet. If several processes ask for it, one downloads.

    The part that has arrived is kept as `NAME.part`, and the next attempt continues from there. If a file that was put
    together from two attempts has the wrong checksum, it is downloaded once more from the beginning.

    Returns:
        The path of the verified file.

    Raises:
        DataError: If the server cannot be reached, refuses, or sends something else.
    """
    path = folder / remote.name
    if path.exists():
        remote.check(path)
        return path
    if not remote.url.startswith(("https://", "http://")):
        raise DataError(f"{remote.url}: only http and https addresses can be downloaded.")
    folder.mkdir(parents=True, exist_ok=True)
    with never_silent(), alone_with(path, what=remote.name):
        if not path.exists():
            _download(remote, path)
    return path


def _download(remote: RemoteFile, path: Path) -> None:
    part = path.with_name(path.name + ".part")
    resumed = part.exists()
    _transfer(remote, part)
    try:
        remote.check(part)
    except DataError:
        part.unlink()
        if not resumed:
            raise
        _transfer(remote, part)
        remote.check(part)
    part.replace(path)


def _transfer(remote: RemoteFile, part: Path) -> None:
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "postmax"})  # noqa: S310  (checked in fetch)
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
            _save(response, part, start if response.status == 206 else 0, remote.name)
    except urllib.error.HTTPError as error:
        error.close()
        # Nothing lies beyond what we have: it is complete, or of another version. The checksum tells.
        if error.code == 416 and start:
            return
        raise DataError(
            f"{remote.url} answers {error.code} {error.reason}. It has moved: {_by_hand(remote, part)}"
        ) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DataError(
            f"{remote.url} cannot be downloaded: {reason}. Try again to resume, or {_by_hand(remote, part)}"
        ) from error


def _save(response: HTTPResponse, part: Path, start: int, name: str) -> None:
    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    # Without a buffer every error of the disk comes from `_write`, and all others from the network.
    with part.open("ab" if start else "wb", buffering=0) as file:
        done = start
        while chunk := response.read(_CHUNK):
            _write(file, chunk, part)
            done += len(chunk)
            tell(Stage(f"downloading {name}", done / 1e6, None if total is None else total / 1e6, "MB"))
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _write(file: io.FileIO, chunk: bytes, part: Path) -> None:
    left = memoryview(chunk)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise not_written(part, error) from error


def _by_hand(remote: RemoteFile, part: Path) -> str:
    checksum = f"{remote.algorithm.upper()} {remote.checksum}"
    return f"fetch it by other means and put it at {part.with_suffix('')} ({checksum})."
