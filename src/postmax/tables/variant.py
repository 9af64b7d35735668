"""A variant of a table: other seeds, rows, columns or settings, with a result folder of its own."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from postmax.tables.cells import TableJob
from postmax.tables.jobs import jobs
from postmax.tables.spec import TableSpec
from postmax.tables.tuned import read_tuned

_LONGEST = 60
# Texts of these letters can be told apart in the name of a folder; only "=" and "," become dashes there.
_PLAIN = re.compile(r"[A-Za-z0-9._=,]+")


@dataclass(frozen=True)
class Variant:
    """A choice of seeds, rows, columns and settings. Without any choice it is the plain table.

    Attributes:
        seeds: How many seeds, instead of the seeds of the scale.
        rows: Names of rows, separated by commas.
        columns: Names of columns, separated by commas.
        settings: `key=value` texts that change every run.
        tuned: The path of a file that `postmax tune` wrote, to use instead of the settings that come with the table.

    Example:
        >>> Variant(settings=("epochs=1",)).folder("breast-cancer-cpu")
        'breast-cancer-cpu-epochs-1'
        >>> Variant().folder("breast-cancer-cpu")
        'breast-cancer-cpu'
    """

    seeds: int | None = None
    rows: str | None = None
    columns: str | None = None
    settings: tuple[str, ...] = ()
    tuned: str | None = None

    def jobs(self, spec: TableSpec, scale: str) -> tuple[TableJob, ...]:
        """Return the runs that the variant needs."""
        return jobs(
            spec,
            scale,
            seeds=self.seeds,
            rows=None if self.rows is None else self.rows.split(","),
            columns=None if self.columns is None else self.columns.split(","),
            overrides=self.settings,
            tuned=None if self.tuned is None else read_tuned(self.tuned),
        )

    @property
    def options(self) -> dict[str, str]:
        """The choices, by the name of the command-line option."""
        chosen = {"seeds": self.seeds, "rows": self.rows, "columns": self.columns, "tuned": self.tuned}
        return {name: str(value) for name, value in chosen.items() if value is not None}

    @property
    def note(self) -> str:
        """A sentence about changed settings for readers of the results; empty if no setting was changed."""
        return f"Settings changed: {', '.join(self.settings)}." if self.settings else ""

    def folder(self, plain: str) -> str:
        """Return the name of the result folder. Two different variants never share a name.

        Args:
            plain: The name of the folder of the plain table.
        """
        texts = [*(f"{name}={value}" for name, value in self.options.items()), *self.settings]
        name = "-".join([plain, *(re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-") for text in texts)])
        if len(name) > len(plain) + _LONGEST or not all(map(_PLAIN.fullmatch, texts)):
            # A part of the texts is lost here, so a hash of them keeps the names of two variants apart.
            digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:6]
            name = f"{name[: len(plain) + _LONGEST].rstrip('-.')}-{digest}"
        return name
