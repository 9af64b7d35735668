"""The folder of a fit: the model, the result, what is believed about each label, and the page."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any, cast

from postmax.errors import DataError, InputError
from postmax.files import atomic_write, not_written
from postmax.fitting.fit import Fit, FitRecord
from postmax.wording import advice

MODEL, LABELS, RESULT, PAGE = "model.safetensors", "labels.csv", "result.json", "report.html"


class FitFolder:
    """A folder with the result of a fit. `result.json` is written last, so a folder that has it is complete.

    Args:
        path: The folder, which need not exist.
    """

    format = "postmax fit 1"
    # What a complete folder holds besides its result, and what else may be in it.
    parts: tuple[str, ...] = (MODEL, LABELS, PAGE)
    may_have: tuple[str, ...] = ()

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()

    def refuse_other_files(self) -> None:
        """Check that nothing would be mixed up or lost.

        Raises:
            InputError: If the folder holds something else than a fit.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file; give another folder: {_another()}.")
        own = {*self.parts, *self.may_have, RESULT}
        foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in own)
        foreign = [name for name in foreign if not name.startswith(".")]
        if foreign:
            raise InputError(f"{self.path} holds other files, such as {foreign[0]}; give another folder: {_another()}.")

    def refuse_no_place(self) -> None:
        """Check that the folder can be made, before hours of work would be lost.

        Raises:
            DataError: If it cannot.
        """
        place = self.path if self.path.exists() else self.path.parent
        try:
            place.mkdir(parents=True, exist_ok=True)
            Path(tempfile.mkdtemp(prefix=".postmax-", dir=place)).rmdir()
        except OSError as error:
            raise not_written(self.path, error) from error

    def made_from(self) -> dict[str, Any] | None:
        """Return what the fit in this folder was made from; None if there is no complete one."""
        try:
            content = json.loads((self.path / RESULT).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        complete = isinstance(content, dict) and all((self.path / name).is_file() for name in self.parts)
        return content.get("made_from") if complete and content.get("format") == self.format else None

    def record(self) -> FitRecord:
        """Return the result.

        Raises:
            DataError: If it is missing or damaged.
        """
        path = self.path / RESULT
        try:
            return cast("FitRecord", json.loads(path.read_text("utf-8"))["result"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is missing or damaged ({error}). Give the command again with --force.") from error

    def labels(self) -> list[dict[str, str]]:
        """Return the rows of labels.csv, the most doubtful first."""
        with (self.path / LABELS).open(encoding="utf-8", newline="") as file:
            return sorted(csv.DictReader(file), key=lambda row: -float(row["p_wrong"]))

    def begin(self) -> None:
        """Make the folder. What it says about an earlier fit is not true any more."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / RESULT).unlink(missing_ok=True)
        except OSError as error:
            raise not_written(self.path, error) from error

    def write(self, found: Fit) -> None:
        """Write the model and what is believed about each label."""
        with atomic_write(self.path / MODEL) as file:
            file.write(found.saved.to_bytes())
        found.labels.to_csv(self.path / LABELS)

    def finish(self, record: FitRecord, made_from: dict[str, Any]) -> None:
        """Write the result. Now the folder is complete."""
        content = {"format": self.format, "made_from": made_from, "result": record}
        with atomic_write(self.path / RESULT) as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _another() -> str:
    return advice(python="another path", command="--out FOLDER")
