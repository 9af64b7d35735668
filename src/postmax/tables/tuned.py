"""Tuned settings: what was chosen for the rows of a table, and the check that it still fits the table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tables import catalogue
from postmax.tables.cells import Resolve, Resolver
from postmax.tables.parts import Section
from postmax.tables.spec import TableSpec
from postmax.tables.trials import digest, tuning_of
from postmax.train.explanation import explain
from postmax.train.own_files import resolve
from postmax.train.settings import read_yaml

# What a file says once for all its rows.
SHARED_BY_ROWS = ("budget", "columns", "seeds", "set")


class Score(Section):
    """The score of one combination of settings.

    Attributes:
        settings: Dotted keys of the configuration, with their values.
        score: The accuracy divided by the best accuracy of this row in the same column; the mean over all columns that
            were tried.
        accuracy: The noisy-validation accuracy, mean over the seeds, by panel and column; None where a run diverged.
    """

    settings: dict[str, Any]
    score: float
    accuracy: dict[str, float | None]


class TunedRow(Section):
    """The settings that were chosen for a row, and the scores of all that were tried.

    Attributes:
        chosen: Dotted keys of the configuration, with their values.
        scores: The score of every combination.
        digest: A hash of the runs that tried them, see `postmax.tables.trials.digest`; None in files that are older
            than this key.
    """

    chosen: dict[str, Any]
    scores: tuple[Score, ...]
    digest: str | None = None


class Tuned(Section):
    """The settings that were chosen for a table at a scale: the content of one YAML file.

    Attributes:
        table: The name of the table.
        scale: The name of the scale.
        budget: How many settings a row was allowed to try.
        columns: The columns in which settings were tried.
        seeds: The seeds with which settings were tried.
        set: What the configuration said only while settings were tried.
        rows: What was chosen, by the name of the row.
    """

    table: str
    scale: str
    budget: int
    columns: tuple[str, ...]
    seeds: tuple[int, ...]
    set: dict[str, Any] = Field(default_factory=dict)
    rows: dict[str, TunedRow]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The chosen settings, by row."""
        return {name: row.chosen for name, row in self.rows.items()}

    def only(self, rows: Iterable[str]) -> Tuned:
        """Return the same with no other rows than these."""
        return self.model_copy(update={"rows": {name: self.rows[name] for name in rows if name in self.rows}})

    def checked(self, spec: TableSpec, scale: str, *, resolve: Resolve = resolve) -> Tuned:
        """Return the settings unchanged, after a check that they fit this table at this scale as it is now.

        Args:
            spec: The table.
            scale: The name of one of its scales.
            resolve: Completes a configuration before its run is named.

        Raises:
            InputError: If the settings are of another table or scale, name rows or settings that the table does not
                have, or were chosen with other runs than the table has now.
        """
        if (self.table, self.scale) != (spec.name, scale):
            raise InputError(
                f"the tuned settings are for {self.table} at scale {self.scale}, not for {spec.name} at {scale}."
            )
        again = f"run `postmax tune {spec.name} --scale {scale}` again."
        tuning = tuning_of(spec, scale)
        for key in SHARED_BY_ROWS:
            old, new = getattr(self, key), getattr(tuning, key)
            if old != new:
                raise InputError(f"the settings were tuned with another {key} ({old!r}, now {new!r}): {again}")
        rows = {row.name: row for row in spec.rows}
        complete = Resolver(resolve)
        for name, found in self.rows.items():
            if name not in rows:
                raise unknown_name("row in the tuned settings", name, rows)
            if found.chosen not in rows[name].settings:
                raise InputError(
                    f"the tuned settings of row {name!r}, {found.chosen}, are not in its grid any more: {again}"
                )
            if found.digest is not None and found.digest != digest(spec, scale, name, resolve=complete):
                raise InputError(
                    f"row {name!r} was tuned when {spec.name} trained it in another way (network, optimiser, data or "
                    f"grid have changed since): {again}"
                )
        return self


def read_tuned(path: str | Path) -> Tuned:
    """Return the settings in a file that `postmax tune` wrote.

    Raises:
        DataError: If the file is missing or is not YAML.
        InputError: If the file holds something else.
    """
    content = read_yaml(path)
    try:
        return Tuned.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error, Tuned, content)}\n`postmax tune` writes such files.") from None


def lender_of(spec: TableSpec, scale: str) -> TableSpec | None:
    """Return the table from which a scale borrows its tuned settings, or None if it does not borrow.

    Raises:
        InputError: If there is no such table, it does not have the scale, or takes its settings from a third table.
        DataError: If the table is given as a file, and that is missing or is not YAML.
    """
    name = spec.scale(scale).tuned_by
    if name is None:
        return None
    where = f"{spec.name}, scales.{scale}.tuned_by"
    lender = catalogue.load(name)
    if scale not in lender.scales:
        raise InputError(f"{where}: {name} has no scale {scale}, only {', '.join(lender.scales)}.")
    if (further := lender.scales[scale].tuned_by) is not None:
        raise InputError(f"{where}: {name} has no settings of its own, it takes them from {further}.")
    return lender


def fitting(tuned: Tuned, spec: TableSpec, scale: str, *, resolve: Resolve = resolve) -> Tuned:
    """Return the settings that count for a table: all of them, or, where the table borrows, those of the common rows.

    Args:
        tuned: What was chosen for the table, or for the table it borrows from.
        spec: The table.
        scale: The name of one of its scales.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If the settings do not fit; see `Tuned.checked`.
    """
    lender = lender_of(spec, scale)
    if lender is None:
        return tuned.checked(spec, scale, resolve=resolve)
    return tuned.checked(lender, scale, resolve=resolve).only(row.name for row in spec.rows)


def shipped(spec: TableSpec, scale: str) -> Tuned | None:
    """Return the tuned settings that come with a table for one of its scales, or None if none come with it.

    Raises:
        InputError: If the settings do not fit the table, or the table that should lend them cannot.
    """
    path = catalogue.shipped_settings_file(lender_of(spec, scale) or spec, scale)
    return None if path is None else fitting(read_tuned(path), spec, scale)
