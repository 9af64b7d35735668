"""The folder of an audit: what a fit has, the rows worth a look, and the corrected labels."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from postmax.auditing.corrected import NAMES, write_corrected
from postmax.auditing.from_fit import AuditRecord, FileAudit
from postmax.data.reading import ReadingOptions
from postmax.errors import DataError
from postmax.files import not_written
from postmax.fitting import FitFolder
from postmax.fitting.folder import LABELS, MODEL, PAGE

ISSUES = "issues.csv"


class AuditFolder(FitFolder):
    """A folder with the result of an audit. `result.json` is written last, so a folder that has it is complete."""

    format = "postmax audit 1"
    parts = (MODEL, LABELS, PAGE, ISSUES)
    may_have = NAMES

    def record(self) -> AuditRecord:
        """Return the result.

        Raises:
            DataError: If it is missing or damaged.
        """
        return cast("AuditRecord", super().record())

    def begin(self) -> None:
        """Make the folder. What it says about an earlier audit is not true any more."""
        super().begin()
        try:
            for name in NAMES:
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise not_written(self.path, error) from error

    def write_audit(self, found: FileAudit, source: Path, reading: ReadingOptions) -> AuditRecord:
        """Write all but the page and the result, and return the result.

        Training took long, so a table that cannot be written back is no error: the result says why.
        """
        self.write(found.fit)
        found.audit.issues.table.to_csv(self.path / ISSUES)
        try:
            return found.record(write_corrected(found, source, reading, self.path))
        except DataError as error:
            return found.record(None, str(error))
