"""What a look at data has found: one sentence for each thing, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

Severity = Literal["problem", "note"]

# The kind of the finding that features say nothing about the labels.
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know before training.

    Attributes:
        kind: What it is, in one or two words, such as "duplicates".
        text: A sentence that says what was found, with counts and example rows.
        remedy: What mends it: an option, or what to do with the file.
        columns: The columns that it is about.
        rows: The first of the rows that it is about, counted from 0.
        severity: "problem" if a result would be wrong, "note" if it is only good to know.
    """

    kind: str
    text: str
    remedy: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    severity: Severity = "problem"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for a JSON file."""
        return {**asdict(self), "columns": list(self.columns), "rows": list(self.rows)}

    def __str__(self) -> str:
        """Return the sentence and the remedy."""
        return f"{self.text} {self.remedy}".strip()


@dataclass(frozen=True)
class Findings(Sequence[Finding]):
    """All that was found in some data, problems first.

    Attributes:
        name: What the data are called.
        found: The findings.
        rows: How many rows the data have.
        looked_at: How many of them were looked at.
        columns: How many columns they have, besides the labels; 0 for images.
        classes: How many different labels they have.

    Example:
        >>> findings = Findings(
        ...     "t.csv", (Finding("duplicates", "Every row is there twice.", "Keep one."),), 80, 80, 3, 2
        ... )
        >>> print(findings)
        t.csv: 1 problem in 80 rows with 3 columns and 2 classes
          problem  Every row is there twice.
                   Keep one.
        >>> findings.problems == findings.found
        True
    """

    name: str
    found: tuple[Finding, ...]
    rows: int
    looked_at: int
    columns: int
    classes: int

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that would make a result wrong."""
        return tuple(finding for finding in self.found if finding.severity == "problem")

    @overload
    def __getitem__(self, place: int, /) -> Finding: ...

    @overload
    def __getitem__(self, place: slice, /) -> tuple[Finding, ...]: ...

    def __getitem__(self, place: int | slice, /) -> Finding | tuple[Finding, ...]:
        return self.found[place]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values, for a JSON file."""
        sizes = {"rows": self.rows, "looked_at": self.looked_at, "columns": self.columns, "classes": self.classes}
        return {"name": self.name, **sizes, "findings": [finding.to_dict() for finding in self.found]}

    def __str__(self) -> str:
        """Return what a terminal shows."""
        lines = [f"{self.name}: {self._summary} in {self._size}"]
        if self.looked_at < self.rows:
            lines.append(
                f"  Looked at {self.looked_at:,} of the {self.rows:,} rows; copies of a row were taken together."
            )
        for finding in self.found:
            lines.append(f"  {finding.severity:7}  {finding.text}")
            lines += [f"           {finding.remedy}"] if finding.remedy else []
        return "\n".join(lines)

    @property
    def _summary(self) -> str:
        count = len(self.problems)
        parts = [_some(count, "problem"), _some(len(self.found) - count, "note")]
        return " and ".join(filter(None, parts)) or "nothing was found"

    @property
    def _size(self) -> str:
        columns = f"{_some(self.columns, 'column')} and " if self.columns else ""
        return f"{_some(self.rows, 'row')} with {columns}{_some(self.classes, 'class', 'classes')}"


def _some(count: int, one: str, many: str | None = None) -> str:
    return "" if count == 0 else f"{count:,} {one if count == 1 else many or f'{one}s'}"
