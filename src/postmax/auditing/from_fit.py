"""The audit of a file: what a fit knows about its rows, in the words of the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from postmax.auditing.from_memory import of_classifier
from postmax.auditing.result import THRESHOLD, Audit
from postmax.checking import Finding
from postmax.checking.from_memory import of_dataset
from postmax.fitting import Fit
from postmax.fitting.expected import accuracy_on_right_labels
from postmax.fitting.fit import FitRecord


class AuditRecord(FitRecord):
    """The result of an audit, as plain values.

    `issues` is how many rows are worth a look, and `wrong_issues` how many of them are expected to be wrong. `changed`
    is how many labels the corrected file changes, those that are wrong with a probability above `threshold`.
    `corrected` is the name of this file; None if labels could not be written back, and then `not_corrected` says why.
    """

    issues: int
    wrong_issues: float
    changed: int
    threshold: float
    corrected: str | None
    not_corrected: str


@dataclass(frozen=True)
class FileAudit:
    """An audit, and the fit that it comes from, with the same beliefs.

    Attributes:
        audit: The audit.
        fit: The fit.
    """

    audit: Audit
    fit: Fit

    def record(self, corrected: Path | None, not_corrected: str = "") -> AuditRecord:
        """Return the result as plain values."""
        issues = self.audit.issues
        return {
            **self.fit.record,
            "issues": len(issues),
            "wrong_issues": issues.expected_wrong,
            "changed": int(self.audit.worth_changing().sum()),
            "threshold": THRESHOLD,
            "corrected": None if corrected is None else corrected.name,
            "not_corrected": not_corrected,
        }


def audit_fit(found: Fit) -> FileAudit:
    """Return the audit of the rows that a classifier was fitted to. Its noise is that of the audit."""
    record = found.record
    audit = of_classifier(
        found.model,
        of_dataset(found.dataset),
        [_finding(one) for one in record["findings"]],
        classes=tuple(record["classes"]),
        rows=found.dataset.rows,
        seed=record["seed"],
    )
    assert audit.estimate is not None  # noqa: S101  (a fit of a file is told no noise)
    accuracy = accuracy_on_right_labels(
        found.model.posterior_.argmax(1),
        found.model.given_,
        audit.transition.matrix.numpy(),
        (audit.noise_rate, *audit.interval),
    )
    changed: Any = {
        "findings": [one.to_dict() for one in audit.findings],
        "estimate": {**audit.estimate.to_dict(), "classes": record["classes"]},
        "accuracy": accuracy.expected,
        "accuracy_interval": [accuracy.low, accuracy.high],
        "wrong": audit.doubt.wrong,
        "confusions": [one._asdict() for one in audit.confusions],
    }
    return FileAudit(audit, replace(found, doubt=audit.doubt, record={**record, **changed}))


def _finding(content: dict[str, Any]) -> Finding:
    return Finding(**{**content, "columns": tuple(content["columns"]), "rows": tuple(content["rows"])})


def new_labels(found: FileAudit) -> dict[int, str]:
    """Return the rows whose label is worth changing, with the new label."""
    suggested = found.audit.table["suggested"]
    return {int(row): str(suggested[row]) for row in np.flatnonzero(found.audit.worth_changing())}
