"""The page of an audit: that of a fit, with what to look at and what else was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from postmax.auditing.from_fit import AuditRecord
from postmax.report.fit_page import fit_values
from postmax.report.numbers import thousands
from postmax.report.page import write_page

_DOUBTFUL = 500


def write_audit_page(record: AuditRecord, labels: Sequence[Mapping[str, str]], folder: Path) -> Path:
    """Write report.html into the folder of an audit. The same audit gives the same bytes.

    Args:
        record: The result.
        labels: The rows of labels.csv, the most doubtful first.
        folder: The folder, which exists.
    """
    values = fit_values(record, labels, folder, _DOUBTFUL)
    values["title"] = f"{record['name']}: which labels are wrong"
    findings = [(one["kind"], one["text"], one["remedy"]) for one in findings_of(record)]
    return write_page(
        "audit.html.jinja",
        folder,
        **values,
        findings=findings,
        todo=[issues_in_words(record), changes_in_words(record)],
    )


def findings_of(record: AuditRecord) -> list[dict[str, Any]]:
    """Return what was found, without what is only about columns that were left out."""
    left_out = set() if record["table"] is None else {*record["table"]["dropped"]}
    return [one for one in record["findings"] if not one["columns"] or not {*one["columns"]} <= left_out]


def issues_in_words(record: AuditRecord) -> str:
    """Return how many rows are worth a look."""
    if record["cannot_tell"] or not record["issues"]:
        return "no row is worth a look"
    wrong = f"{record['wrong_issues']:.0f} are expected to be wrong"
    return f"{thousands(record['issues'])} rows, of which {wrong}: issues.csv"


def changes_in_words(record: AuditRecord) -> str:
    """Return how many labels are changed in which file."""
    if record["corrected"] is None:
        return f"no corrected file: {record['not_corrected']}"
    changed, share = thousands(record["changed"]), f"{record['threshold']:.0%}".replace("%", " %")
    return f"{changed} labels changed, those that are wrong with more than {share}: {record['corrected']}"
