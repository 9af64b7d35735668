"""Settings that were chosen for the rows of a table, with the evidence: one YAML file for a table and a scale."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from postmax.bench import protocol as protocols
from postmax.bench.parts import Section
from postmax.bench.protocol import Protocol
from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.registry import unknown_name
from postmax.train.config import explain
from postmax.train.settings import read_yaml


class Score(Section):
    """How one combination of settings did.

    Attributes:
        settings: Dotted keys of the configuration, with their values.
        score: The mean, over what was tried, of the accuracy divided by the best that this row had there.
        accuracy: Noisy-validation accuracy, the mean over the seeds, by panel and column; None where it diverged.
    """

    settings: dict[str, Any]
    score: float
    accuracy: dict[str, float | None]


class TunedRow(Section):
    """What was chosen for a row, and out of what."""

    chosen: dict[str, Any]
    scores: tuple[Score, ...]


class Tuned(Section):
    """What was chosen for a table at a scale; see `postmax.bench.parts.Tuning` for how it was tried."""

    table: str
    scale: str
    budget: int
    columns: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: dict[str, TunedRow]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The chosen settings, by row."""
        return {name: row.chosen for name, row in self.rows.items()}

    def merged_into(self, before: Tuned) -> Tuned:
        """These rows, and those of `before` that are not among them.

        Raises:
            InputError: If the others were tried in another way, so that one file could not say how.
        """
        for key in ("table", "scale", "budget", "columns", "seeds"):
            old, new = getattr(before, key), getattr(self, key)
            if old != new:
                raise InputError(
                    f"the rows that are there were tuned with another {key} ({old!r}, now {new!r}): "
                    "tune all rows, or write to another folder."
                )
        return self.model_copy(update={"rows": {**before.rows, **self.rows}})

    def only(self, rows: Iterable[str]) -> Tuned:
        """What was chosen for these rows."""
        return self.model_copy(update={"rows": {name: self.rows[name] for name in rows if name in self.rows}})

    def checked(self, protocol: Protocol, scale: str) -> Tuned:
        """The same, if it is about this table at this scale as they are now.

        Raises:
            InputError: If it is about another one, or names rows or settings that the table does not have.
        """
        if (self.table, self.scale) != (protocol.name, scale):
            raise InputError(
                f"the tuned settings are for {self.table} at scale {self.scale}, not for {protocol.name} at {scale}."
            )
        rows = {row.name: row for row in protocol.rows}
        for name, found in self.rows.items():
            if name not in rows:
                raise unknown_name("row in the tuned settings", name, rows)
            if found.chosen not in rows[name].settings:
                raise InputError(
                    f"the tuned settings of row {name!r}, {found.chosen}, are not in its grid any more: "
                    f"run `postmax tune {protocol.name} --scale {scale}` again."
                )
        return self


def read_tuned(path: str | Path) -> Tuned:
    """The settings in a file that `postmax tune` wrote.

    Raises:
        DataError: If the file is missing or no YAML.
        InputError: If it holds something else.
    """
    try:
        return Tuned.model_validate(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error, Tuned)} `postmax tune` writes such files.") from None


def write_tuned(tuned: Tuned, path: Path) -> None:
    """Write the file, whole or not at all.

    Raises:
        DataError: If it cannot be written.
    """
    head = (
        f"# Chosen by `postmax tune {tuned.table} --scale {tuned.scale}` on noisy validation labels, never on test.\n"
    )
    text = yaml.safe_dump(tuned.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
    with atomic_write(path) as file:
        file.write((head + text).encode())


def shipped(protocol: Protocol, scale: str) -> Tuned | None:
    """What comes with postmax for this table at this scale, if anything does.

    Raises:
        InputError: If it does not fit the table.
    """
    lender = protocol.scale(scale).tuned_by
    if lender is not None:
        lent = shipped(protocols.load(lender), scale)
        return None if lent is None else lent.only(row.name for row in protocol.rows)
    path = protocols.tuned_file(protocol.name, scale)
    # A table of your own may have the name of one of ours; then nothing was tuned for it.
    if not path.is_file() or protocol.name not in protocols.names() or protocols.load(protocol.name) != protocol:
        return None
    return read_tuned(path).checked(protocol, scale)
