"""Settings that were chosen for the rows of a table, with the evidence: one YAML file for a table and a scale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.locks import hold
from postmax.registry import unknown_name
from postmax.tables import spec as protocols
from postmax.tables.cells import Resolve, Resolver, TableJob, runs
from postmax.tables.parts import Row, Section, Tuning
from postmax.tables.spec import Protocol
from postmax.train.config import explain
from postmax.train.own_files import resolve
from postmax.train.settings import read_yaml

# What one file says once for all its rows.
_SHARED = ("budget", "columns", "seeds")


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
    """What was chosen for a row, and out of what.

    Attributes:
        chosen: Dotted keys of the configuration, with their values.
        scores: All that was tried.
        digest: Which runs tried it, see `digest`; None in files that are older than this key.
    """

    chosen: dict[str, Any]
    scores: tuple[Score, ...]
    digest: str | None = None


class Tuned(Section):
    """What was chosen for a table at a scale; see `postmax.tables.parts.Tuning` for how it was tried."""

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
        others = [name for name in before.rows if name not in self.rows]
        for key in ("table", "scale", *_SHARED) if others else ():
            old, new = getattr(before, key), getattr(self, key)
            if old != new:
                raise InputError(
                    f"the rows that are there ({', '.join(others)}) were tuned with another {key} ({old!r}, now "
                    f"{new!r}): tune them too, or write to another folder."
                )
        return self.model_copy(update={"rows": {**before.only(others).rows, **self.rows}})

    def only(self, rows: Iterable[str]) -> Tuned:
        """What was chosen for these rows."""
        return self.model_copy(update={"rows": {name: self.rows[name] for name in rows if name in self.rows}})

    def checked(self, protocol: Protocol, scale: str, *, resolve: Resolve = resolve) -> Tuned:
        """The same, if it is about this table at this scale as they are now.

        Args:
            protocol: The table.
            scale: One of its scales.
            resolve: Completes a configuration before its run is named.

        Raises:
            InputError: If it is about another one, names rows or settings that the table does not have, or was tried
                with other runs than the table has now.
        """
        if (self.table, self.scale) != (protocol.name, scale):
            raise InputError(
                f"the tuned settings are for {self.table} at scale {self.scale}, not for {protocol.name} at {scale}."
            )
        again = f"run `postmax tune {protocol.name} --scale {scale}` again."
        tuning = tuning_of(protocol, scale)
        for key in _SHARED:
            old, new = getattr(self, key), getattr(tuning, key)
            if old != new:
                raise InputError(f"the settings were tuned with another {key} ({old!r}, now {new!r}): {again}")
        rows = {row.name: row for row in protocol.rows}
        complete = Resolver(resolve)
        for name, found in self.rows.items():
            if name not in rows:
                raise unknown_name("row in the tuned settings", name, rows)
            if found.chosen not in rows[name].settings:
                raise InputError(
                    f"the tuned settings of row {name!r}, {found.chosen}, are not in its grid any more: {again}"
                )
            if found.digest is not None and found.digest != digest(protocol, scale, name, resolve=complete):
                raise InputError(
                    f"row {name!r} was tuned when {protocol.name} trained it in another way (network, optimiser, data "
                    f"or grid have changed since): {again}"
                )
        return self


def tuning_of(protocol: Protocol, scale: str) -> Tuning:
    """How settings are chosen at a scale.

    Raises:
        InputError: If the scale does not say, or takes them from another table.
    """
    size = protocol.scale(scale)
    if size.tuned_by is not None:
        raise InputError(f"{protocol.name} takes its settings from {size.tuned_by} at scale {scale}: tune that.")
    if size.tuning is None:
        having = [name for name, other in protocol.scales.items() if other.tuning is not None]
        hint = f" Scales that do: {', '.join(having)}." if having else ""
        raise InputError(f"{protocol.name} does not say how to tune at scale {scale} (scales.{scale}.tuning).{hint}")
    return size.tuning


def trial_runs(
    protocol: Protocol, scale: str, row: Row, settings: dict[str, Any], *, resolve: Resolve = resolve
) -> tuple[TableJob, ...]:
    """The runs that try one combination of settings of a row.

    Raises:
        InputError: If the scale does not say how to tune, or a configuration makes no sense.
    """
    tuning = tuning_of(protocol, scale)
    columns = protocol.chosen_columns(scale, tuning.columns)
    return runs(protocol, scale, [row], columns, seeds=tuning.seeds, settings={row.name: settings}, resolve=resolve)


def digest(protocol: Protocol, scale: str, row: str, *, resolve: Resolve = resolve) -> str:
    """Which runs choose the settings of a row: another one as soon as anything about them is changed.

    Args:
        protocol: The table.
        scale: One of its scales that says how to tune.
        row: The name of a row.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If there is no such row, or the scale does not say how to tune.
    """
    rows = {part.name: part for part in protocol.rows}
    if row not in rows:
        raise unknown_name("row", row, rows)
    complete = Resolver(resolve)
    tried = (trial_runs(protocol, scale, rows[row], one, resolve=complete) for one in rows[row].settings)
    return digest_of(job for todo in tried for job in todo)


def digest_of(jobs: Iterable[TableJob]) -> str:
    """The same, of the runs themselves."""
    return hashlib.sha256("\n".join(sorted({job.run_id for job in jobs})).encode()).hexdigest()


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


def rows_to_keep(path: Path, now: Tuned, protocol: Protocol) -> Tuned:
    """What a file says about rows that are not tried now.

    Args:
        path: The file, which may not be there yet.
        now: What is tried now, chosen or not.
        protocol: The table.

    Raises:
        DataError: If the file cannot be read.
        InputError: If it holds something else, or these rows were tried in another way than the table says now.
    """
    nothing = now.only(())
    if not path.exists():
        return nothing
    before = read_tuned(path)
    kept = before.only(name for name in before.rows if name not in now.rows)
    if not kept.rows:
        return nothing
    now.merged_into(kept)  # says best what is different
    return kept.checked(protocol, now.scale)


def add_to_file(tuned: Tuned, path: Path, protocol: Protocol) -> None:
    """Write what was chosen, and keep what the file says about other rows by now: others may tune them meanwhile.

    Raises:
        DataError: If the file cannot be read or written.
        InputError: If the other rows were tried in another way than the table says now.
    """
    # The file itself is replaced when it is written, so it cannot carry the lock.
    with hold(path.with_name(f".{path.name}.lock"), wait=True):
        write_tuned(tuned.merged_into(rows_to_keep(path, tuned, protocol)), path)


def lender_of(protocol: Protocol, scale: str) -> Protocol | None:
    """The table whose chosen settings count here, if that is another one.

    Raises:
        InputError: If there is no such table, it does not have the scale, or borrows itself.
        DataError: If it is a file that is missing or no YAML.
    """
    name = protocol.scale(scale).tuned_by
    if name is None:
        return None
    where = f"{protocol.name}, scales.{scale}.tuned_by"
    lender = protocols.load(name)
    if scale not in lender.scales:
        raise InputError(f"{where}: {name} has no scale {scale}, only {', '.join(lender.scales)}.")
    if (further := lender.scales[scale].tuned_by) is not None:
        raise InputError(f"{where}: {name} has no settings of its own, it takes them from {further}.")
    return lender


def fitting(tuned: Tuned, protocol: Protocol, scale: str, *, resolve: Resolve = resolve) -> Tuned:
    """What of it counts for a table at a scale: all, or the common rows where the table borrows.

    Args:
        tuned: What was chosen for the table, or for the one it borrows from.
        protocol: The table.
        scale: One of its scales.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If it does not fit; see `Tuned.checked`.
    """
    lender = lender_of(protocol, scale)
    if lender is None:
        return tuned.checked(protocol, scale, resolve=resolve)
    return tuned.checked(lender, scale, resolve=resolve).only(row.name for row in protocol.rows)


def shipped(protocol: Protocol, scale: str) -> Tuned | None:
    """What comes with postmax for this table at this scale, if anything does.

    Raises:
        InputError: If it does not fit the table, or the table borrows from one that cannot lend.
    """
    source = lender_of(protocol, scale) or protocol
    path = protocols.tuned_file(source.name, scale)
    # A table of your own may have the name of one of ours; then nothing was tuned for it.
    if not path.is_file() or source.name not in protocols.names() or protocols.load(source.name) != source:
        return None
    return fitting(read_tuned(path), protocol, scale)
