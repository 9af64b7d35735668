"""Choose the settings of rows by noisy validation labels: no true label is used, and every row has the same budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from postmax.errors import DataError, InputError
from postmax.runs.folder import RunFolder
from postmax.tables.cells import Resolve, Resolver, TableJob
from postmax.tables.spec import TableSpec
from postmax.tables.trials import digest_of, runs_of_trial, tuning_of
from postmax.tables.tuned import SHARED_BY_ROWS, Score, Tuned, TunedRow
from postmax.train.own_files import resolve
from postmax.train.settings import as_overrides

_Accuracies = dict[str, float | None]


@dataclass(frozen=True)
class Trial:
    """One combination of settings of a row, and the runs that try it."""

    row: str
    settings: dict[str, Any]
    jobs: tuple[TableJob, ...]


def trials(
    spec: TableSpec, scale: str, rows: Iterable[str] | None = None, *, resolve: Resolve = resolve
) -> tuple[Trial, ...]:
    """Return a trial for every combination of the grid of every row.

    Args:
        spec: The table.
        scale: The name of one of its scales.
        rows: Names of rows with a grid; "all" for every row. By default all that are not optional.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If no row has a grid, a name is unknown, a configuration is not valid, or it keeps no rows for
            validation.
    """
    tuning_of(spec, scale)  # first of all: a scale without tuning is the better explanation of what comes below
    wanted = None if rows is None else tuple(rows)
    picked = spec.chosen_rows(scale, wanted)
    named = {name.strip().lower() for name in wanted or ()}
    for row in picked:
        if not row.grid and row.name.lower() in named:
            raise InputError(f"row {row.name!r} of {spec.name} has no grid: there is nothing to choose.")
    if not any(row.grid for row in picked):
        raise InputError(f"{spec.name}: no row has a grid, so there is nothing to choose.")
    complete = Resolver(resolve)  # one for everything below, so that the user's own files are hashed once
    found = []
    for row in picked:
        for settings in row.settings if row.grid else ():
            todo = runs_of_trial(spec, scale, row, settings, resolve=complete)
            _check_validation(spec, todo)
            named_jobs = (replace(job, label=f"{job.label} · {as_overrides(settings)}") for job in todo)
            found.append(Trial(row.name, settings, tuple(named_jobs)))
    return tuple(found)


def trial_jobs(tried: Iterable[Trial]) -> tuple[TableJob, ...]:
    """Return all runs of some trials, each once."""
    return tuple({job.run_id: job for trial in tried for job in trial.jobs}.values())


def choose(spec: TableSpec, scale: str, tried: Sequence[Trial], store: str | Path) -> Tuned:
    """Return the best settings of each row.

    The accuracy of a setting in a panel and column is its accuracy on the noisy validation rows after the last epoch,
    the mean over the seeds. It is divided by the best accuracy that any setting of the row has there. The mean of these
    quotients is the score of the setting, and the highest score wins; of equal scores, the first. A setting that
    diverged counts as 0 where it did. Test rows are not used.

    Args:
        spec: The table.
        scale: The scale of the trials.
        tried: The trials. All of their runs are done or have failed.
        store: The folder that holds the run folders.

    Raises:
        DataError: If a run is not done, or its record is damaged.
        InputError: If a run has recorded no validation accuracy.
    """
    store = Path(store).expanduser()
    rows: dict[str, TunedRow] = {}
    for name in dict.fromkeys(trial.row for trial in tried):
        mine = [trial for trial in tried if trial.row == name]
        accuracies = [_accuracies(trial, store, panels=len(spec.panels) > 1) for trial in mine]
        top = {place: max(found[place] or 0.0 for found in accuracies) for place in accuracies[0]}
        scores = [
            # Rounded, because the means of equal values may differ in the last bit.
            round(fmean((value or 0.0) / top[place] if top[place] else 0.0 for place, value in found.items()), 9)
            for found in accuracies
        ]
        best = mine[scores.index(max(scores))]
        evidence = zip(mine, scores, accuracies, strict=True)
        rows[name] = TunedRow(
            chosen=best.settings,
            scores=tuple(Score(settings=t.settings, score=score, accuracy=found) for t, score, found in evidence),
            digest=digest_of(trial_jobs(mine)),
        )
    return nothing_chosen(spec, scale).model_copy(update={"rows": rows})


def nothing_chosen(spec: TableSpec, scale: str) -> Tuned:
    """Return tuned settings without any rows yet: they say how settings are chosen at this scale.

    Raises:
        InputError: If the scale does not say how to tune.
    """
    tuning = tuning_of(spec, scale)
    return Tuned(table=spec.name, scale=scale, rows={}, **{key: getattr(tuning, key) for key in SHARED_BY_ROWS})


def _check_validation(spec: TableSpec, todo: Iterable[TableJob]) -> None:
    """Check that every run has validation rows: a row, panel or column may have set their share to 0."""
    for job in todo:
        if not job.config.data.validation_share:
            place = job.placements[0]
            raise InputError(
                f"{spec.name}, {place.panel}, {place.row}, {place.column}: data.validation_share must not be 0 where "
                "settings are tuned."
            )


def _accuracies(trial: Trial, store: Path, *, panels: bool) -> _Accuracies:
    """Return the noisy-validation accuracy by panel and column: the mean over the seeds, None if one diverged."""
    values: dict[str, list[float] | None] = {}
    for job in trial.jobs:
        found = _of_run(job, RunFolder(store / job.run_id))
        for place in job.placements:
            key = f"{place.panel} · {place.column}" if panels else place.column
            before = values.get(key, [])
            values[key] = None if before is None or found is None else before + found
    return {key: None if found is None else fmean(found) for key, found in values.items()}


def _of_run(job: TableJob, folder: RunFolder) -> list[float] | None:
    """Return the noisy-validation accuracy of each seed after the last epoch; None if the run diverged."""
    if folder.state == "failed":
        return None
    if folder.state != "done":
        raise DataError(f"{folder.path} ({job.label}) is not done; run it before settings are chosen.")
    last = {record["seed"]: record for record in folder.metrics() if record["epoch"] == job.config.epochs}
    if missing := [seed for seed in job.config.seeds if "val_accuracy" not in last.get(seed, {})]:
        raise InputError(
            f"{folder.path} ({job.label}): seed {missing[0]} has no validation accuracy in epoch {job.config.epochs}; "
            "data.validation_share must not be 0 where settings are tuned."
        )
    return [last[seed]["val_accuracy"] for seed in job.config.seeds]
