"""Choosing the settings of rows by noisy validation labels: what anyone can do, and the same budget for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from postmax.errors import DataError, InputError
from postmax.report.tuned_text import in_short
from postmax.runs.folder import RunFolder
from postmax.tables.cells import Resolve, Resolver, TableJob
from postmax.tables.spec import Protocol
from postmax.tables.tuned import Score, Tuned, TunedRow, digest_of, trial_runs, tuning_of
from postmax.train.own_files import resolve

_Accuracies = dict[str, float | None]


@dataclass(frozen=True)
class Trial:
    """One combination of settings of a row, and the runs that try it."""

    row: str
    settings: dict[str, Any]
    jobs: tuple[TableJob, ...]


def trials(
    protocol: Protocol, scale: str, rows: Iterable[str] | None = None, *, resolve: Resolve = resolve
) -> tuple[Trial, ...]:
    """Every combination of the grid of every row, each with its runs.

    Args:
        protocol: The table.
        scale: One of its scales.
        rows: Names of rows with a grid; "all" for the optional ones too.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If nothing is to be tuned, a name is unknown, a configuration makes no sense, or it keeps no rows
            for validation.
    """
    tuning_of(protocol, scale)  # before anything else: that there is nothing to choose may be because of this
    wanted = None if rows is None else tuple(rows)
    picked = protocol.chosen_rows(scale, wanted)
    named = {name.strip().lower() for name in wanted or ()}
    for row in picked:
        if not row.grid and row.name.lower() in named:
            raise InputError(f"row {row.name!r} of {protocol.name} has no grid: there is nothing to choose.")
    if not any(row.grid for row in picked):
        raise InputError(f"{protocol.name}: no row has a grid, so there is nothing to choose.")
    complete = Resolver(resolve)  # one for all, so that your own files are hashed once
    found = []
    for row in picked:
        for settings in row.settings if row.grid else ():
            todo = trial_runs(protocol, scale, row, settings, resolve=complete)
            _check_validation(protocol, todo)
            named_jobs = (replace(job, label=f"{job.label} · {in_short(settings)}") for job in todo)
            found.append(Trial(row.name, settings, tuple(named_jobs)))
    return tuple(found)


def trial_jobs(tried: Iterable[Trial]) -> tuple[TableJob, ...]:
    """All runs of the trials, each once."""
    return tuple({job.run_id: job for trial in tried for job in trial.jobs}.values())


def choose(protocol: Protocol, scale: str, tried: Sequence[Trial], store: str | Path) -> Tuned:
    """The best settings of each row.

    In every panel and tuning column, the accuracy of a setting on the noisy validation rows after the last epoch, the
    mean over the seeds, is divided by the best of the row's settings there. The mean of these is its score; the highest
    wins, the first of equals. Where a setting diverged it has 0. No test row is looked at.

    Args:
        protocol: The table.
        scale: The scale the trials are of.
        tried: All of them done, or failed.
        store: The folder of run folders.

    Raises:
        DataError: If a run is not done, or its record is damaged.
        InputError: If a run has recorded no validation accuracy.
    """
    store = Path(store).expanduser()
    rows: dict[str, TunedRow] = {}
    for name in dict.fromkeys(trial.row for trial in tried):
        mine = [trial for trial in tried if trial.row == name]
        accuracies = [_accuracies(trial, store, panels=len(protocol.panels) > 1) for trial in mine]
        top = {place: max(found[place] or 0.0 for found in accuracies) for place in accuracies[0]}
        scores = [
            # Means of equal values may differ in the last bit.
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
    return nothing_chosen(protocol, scale).model_copy(update={"rows": rows})


def nothing_chosen(protocol: Protocol, scale: str) -> Tuned:
    """How settings are chosen, before any are.

    Raises:
        InputError: If the scale does not say.
    """
    tuning = tuning_of(protocol, scale)
    return Tuned(
        table=protocol.name, scale=scale, budget=tuning.budget, columns=tuning.columns, seeds=tuning.seeds, rows={}
    )


def _check_validation(protocol: Protocol, todo: Iterable[TableJob]) -> None:
    """A row, panel or column may have taken away what decides; that is no news for after the last run."""
    for job in todo:
        if not job.config.data.validation_share:
            use = job.uses[0]
            raise InputError(
                f"{protocol.name}, {use.panel}, {use.row}, {use.column}: data.validation_share must not be 0 where "
                "settings are tuned."
            )


def _accuracies(trial: Trial, store: Path, *, panels: bool) -> _Accuracies:
    """Noisy-validation accuracy by panel and column: the mean over all seeds, None if any of them diverged."""
    values: dict[str, list[float] | None] = {}
    for job in trial.jobs:
        found = _of_run(job, RunFolder(store / job.run_id))
        for use in job.uses:
            place = f"{use.panel} · {use.column}" if panels else use.column
            before = values.get(place, [])
            values[place] = None if before is None or found is None else before + found
    return {place: None if found is None else fmean(found) for place, found in values.items()}


def _of_run(job: TableJob, folder: RunFolder) -> list[float] | None:
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
