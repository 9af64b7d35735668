"""What a command asks of a table beside its scale, and how its results are told from those of the plain table."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from postmax.tables.jobs import TableJob, jobs
from postmax.tables.spec import Protocol
from postmax.tables.tuned import read_tuned

_LONGEST = 60
# What a folder's name shows one to one; "=" and "," become dashes.
_PLAIN = re.compile(r"[A-Za-z0-9._=,]+")


@dataclass(frozen=True)
class Variant:
    """A choice of rows, columns, seeds and settings; nothing chosen is the plain table.

    Attributes:
        seeds: How many, instead of those of the scale.
        rows: Names, separated by commas.
        columns: The same.
        settings: `key=value` texts for every run.
        tuned: A file that `postmax tune` wrote, instead of what comes with the table.

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

    def jobs(self, protocol: Protocol, scale: str) -> tuple[TableJob, ...]:
        """The runs it takes."""
        return jobs(
            protocol,
            scale,
            seeds=self.seeds,
            rows=None if self.rows is None else self.rows.split(","),
            columns=None if self.columns is None else self.columns.split(","),
            overrides=self.settings,
            tuned=None if self.tuned is None else read_tuned(self.tuned),
        )

    @property
    def options(self) -> dict[str, str]:
        """What was chosen, by the name of the option."""
        chosen = {"seeds": self.seeds, "rows": self.rows, "columns": self.columns, "tuned": self.tuned}
        return {name: str(value) for name, value in chosen.items() if value is not None}

    @property
    def note(self) -> str:
        """What a reader of the results should know about it; empty if it is trained as the table says."""
        return f"Settings changed: {', '.join(self.settings)}." if self.settings else ""

    def folder(self, plain: str) -> str:
        """The name of its folder, from that of the plain table; another one for every other variant."""
        texts = [*(f"{name}={value}" for name, value in self.options.items()), *self.settings]
        name = "-".join([plain, *(re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-") for text in texts)])
        if len(name) > len(plain) + _LONGEST or not all(map(_PLAIN.fullmatch, texts)):
            # Some of it is lost, so that two variants could share the name.
            digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:6]
            name = f"{name[: len(plain) + _LONGEST].rstrip('-.')}-{digest}"
        return name
