"""The page of an audit: that of a fit, with what to look at and what else was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from postmax.auditing.from_fit import AuditRecord
from postmax.report.fit_page import fit_values, notes_of
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
    values["notes"] = notes_of(record, ())  # findings have a section of their own
    findings = [(one["kind"], one["text"], one["remedy"]) for one in record["findings"]]
    return write_page(
        "audit.html.jinja",
        folder,
        **values,
        findings=findings,
        todo=[issues_in_words(record), changes_in_words(record)],
    )


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
