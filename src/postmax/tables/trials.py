"""The runs that try settings of a row, so that the best settings can be chosen.

They are here, and not in `postmax.tuning`, because a table that is run with tuned settings checks that they were chosen
with the runs that the table would try today.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tables.cells import Resolve, Resolver, TableJob, cell_jobs
from postmax.tables.parts import Row, Tuning
from postmax.tables.spec import TableSpec
from postmax.train.own_files import resolve


def tuning_of(spec: TableSpec, scale: str) -> Tuning:
    """Return how settings are chosen at a scale.

    Raises:
        InputError: If the scale has no `tuning` section, or takes its settings from another table.
    """
    size = spec.scale(scale)
    if size.tuned_by is not None:
        raise InputError(f"{spec.name} takes its settings from {size.tuned_by} at scale {scale}: tune that.")
    if size.tuning is None:
        having = [name for name, other in spec.scales.items() if other.tuning is not None]
        hint = f" Scales that do: {', '.join(having)}." if having else ""
        raise InputError(f"{spec.name} does not say how to tune at scale {scale} (scales.{scale}.tuning).{hint}")
    return size.tuning


def runs_of_trial(
    spec: TableSpec, scale: str, row: Row, settings: dict[str, Any], *, resolve: Resolve = resolve
) -> tuple[TableJob, ...]:
    """Return the runs that try one combination of settings of a row.

    Raises:
        InputError: If the scale does not say how to tune, or a configuration is not valid.
    """
    tuning = tuning_of(spec, scale)
    columns = spec.chosen_columns(scale, tuning.columns)
    last = {row.name: {**tuning.set, **settings}}
    return cell_jobs(spec, scale, [row], columns, seeds=tuning.seeds, settings=last, resolve=resolve)


def digest(spec: TableSpec, scale: str, row: str, *, resolve: Resolve = resolve) -> str:
    """Return a hash of all runs that choose the settings of a row. It changes as soon as one of these runs changes.

    Args:
        spec: The table.
        scale: The name of a scale that says how to tune.
        row: The name of a row.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If there is no such row, or the scale does not say how to tune.
    """
    rows = {part.name: part for part in spec.rows}
    if row not in rows:
        raise unknown_name("row", row, rows)
    complete = Resolver(resolve)
    tried = (runs_of_trial(spec, scale, rows[row], one, resolve=complete) for one in rows[row].settings)
    return digest_of(job for todo in tried for job in todo)


def digest_of(jobs: Iterable[TableJob]) -> str:
    """Return the hash of some runs; their order does not matter."""
    return hashlib.sha256("\n".join(sorted({job.run_id for job in jobs})).encode()).hexdigest()
