"""The folder of a run: its files, and the lock that lets one process at a time write to it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, cast

from postmax.errors import DataError, InputError
from postmax.files import atomic_write, not_written
from postmax.locks import hold
from postmax.runs import checkpoint
from postmax.runs.checkpoint import DamagedRun
from postmax.runs.remedies import start_again
from postmax.train.config import RunConfig, read_config
from postmax.train.records import EpochRecord, RunResult

_CHECKPOINTS = (checkpoint.NAME, checkpoint.PREVIOUS)
_WRITTEN = (
    *("metrics.jsonl", "failure.json", "result.json", "data.json", "confusions.json", "environment.json"),
    "report.html",
)
# Several seeds have a file each.
_WRITTEN_FOR_SEEDS = ("model*.safetensors", "transition*.json")

State = Literal["new", "started", "failed", "done"]


class RunFolder:
    """One run on disk: `config.yaml`, `environment.json`, `metrics.jsonl`, a checkpoint, `result.json`, `done`.

    `runs/details.py` adds files that say more about the data and the result.

    Example:
        >>> import tempfile
        >>> RunFolder(Path(tempfile.mkdtemp()) / "0123456789abcdef").state
        'new'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()

    @property
    def state(self) -> State:
        """Whether the run is new, was started, has failed, or is done."""
        if (self.path / "done").exists():
            return "done"
        if (self.path / "failure.json").exists():
            return "failed"
        return "started" if (self.path / "config.yaml").exists() else "new"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Inside, no other process can take the run. The kernel gives the lock back when a process dies.

        Raises:
            BusyError: If another process has it.
            DataError: If the folder cannot be written.
        """
        lock = self.path / "lock"
        try:
            with hold(lock, wait=False, busy=f"{self.path}: another process is working on this run."):
                try:
                    yield
                finally:
                    # A run that could not begin leaves no folder. Windows cannot delete a file that is open, but there
                    # `hold` deletes it at its end.
                    # The folder may have been deleted in the meantime; that must not hide the error of the run.
                    with suppress(OSError):
                        if [entry.name for entry in self.path.iterdir()] == [lock.name]:
                            lock.unlink()
        finally:
            with suppress(OSError):  # only an empty folder can be removed in this way
                self.path.rmdir()

    def config(self) -> RunConfig:
        """Return the configuration of the run.

        Raises:
            DataError: If this is not the folder of a run.
        """
        path = self.path / "config.yaml"
        if not path.exists():
            raise DataError(f"{self.path} is not the folder of a run: it has no config.yaml.")
        try:
            return read_config(path)
        except InputError as error:
            raise DamagedRun(f"{error} Delete {self.path} to begin the run anew.") from error

    def result(self) -> RunResult:
        """Return the result of the run.

        Raises:
            DataError: If the run is not done, or its result was changed or damaged since.
        """
        path = self.path / "result.json"
        try:
            content, promised = path.read_bytes(), (self.path / "done").read_text(encoding="utf-8").strip()
        except OSError as error:
            raise DataError(f"{self.path} is not done: it has no result.") from error
        if hashlib.sha256(content).hexdigest() != promised:
            raise DamagedRun(f"{path} was changed or damaged after the run. Delete {self.path} to run it again.")
        return cast("RunResult", json.loads(content))

    def metrics(self) -> list[EpochRecord]:
        """Return one record for each epoch and seed. A last line that a crash cut off is left out."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # text after the last line break is incomplete
            records = [json.loads(line) for line in lines]
            # A line may be valid JSON and still not be a record.
            return sorted(records, key=lambda record: int(record["epoch"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedRun(f"{path} is damaged ({error}). {start_again(self.path)}") from error

    def failure(self) -> str | None:
        """Return why the run failed; None if it did not."""
        return self._read_json("failure.json", "error")

    def threads(self) -> int | None:
        """Return how many threads the run was started with; None if it was not started."""
        found = self._read_json("environment.json", "threads")
        return int(found) if found is not None and found.isdecimal() else None

    def plugins(self) -> tuple[str, ...]:
        """Return the plugins that were loaded when the run began, as `postmax.plugins.described` names them.

        The result is empty if there were none, or if `environment.json` is missing or cannot be read.
        """
        try:
            found = json.loads((self.path / "environment.json").read_text(encoding="utf-8"))["plugins"]
        except (OSError, ValueError, TypeError, KeyError):
            return ()
        return tuple(str(found).split(", "))

    def _read_json(self, name: str, key: str) -> str | None:
        path = self.path / name
        if not path.exists():
            return None
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))[key])
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedRun(f"{path} is damaged ({error}). {start_again(self.path)}") from error

    def write_json(self, name: str, content: Any) -> bytes:
        """Write a JSON file completely or not at all, and return its bytes."""
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self.write(name, text)
        return text

    def write(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all."""
        with atomic_write(self.path / name) as file:
            file.write(content)

    def append(self, name: str, text: str) -> None:
        """Append lines to a file. It is opened each time, so that no unwritten buffer remains after an error."""
        path = self.path / name
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise not_written(path, error) from error

    def sync(self, name: str) -> None:
        """Wait until everything that was appended to a file is on the disk."""
        with (self.path / name).open("rb") as file:
            os.fsync(file.fileno())

    def finish(self, result: RunResult) -> None:
        """Write the result, then the file `done`, and delete the checkpoints."""
        content = self.write_json("result.json", result)
        self.write("done", hashlib.sha256(content).hexdigest().encode() + b"\n")
        self.tidy()

    def tidy(self) -> None:
        """Delete what a run that is done does not need. A process that was killed just before it did so has left it."""
        for name in (*_CHECKPOINTS, "failure.json"):
            with suppress(OSError):  # a finished run may lie where nobody may write
                (self.path / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete what was trained, but not the configuration. The file `done` goes first."""
        (self.path / "done").unlink(missing_ok=True)
        for name in (*_CHECKPOINTS, *_WRITTEN):
            (self.path / name).unlink(missing_ok=True)
        for names in _WRITTEN_FOR_SEEDS:
            for file in self.path.glob(names):
                file.unlink()

    def sweep_up(self) -> None:
        """Delete files that a killed process left half written. Their names contain the names they were to get."""
        for name in (*_CHECKPOINTS, *_WRITTEN, "done", "config.yaml", "model", "transition"):
            for leftover in self.path.glob(f".{name}*.*"):
                leftover.unlink(missing_ok=True)
