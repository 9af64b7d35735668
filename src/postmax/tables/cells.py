"""The runs that fill the cells of a table. A computation that fills several cells is one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from postmax import methods
from postmax.runs.job import Job
from postmax.tables.parts import Column, Part, Row
from postmax.tables.spec import TableSpec
from postmax.train.build import check_loss
from postmax.train.config import RunConfig, make_config
from postmax.train.own_files import resolve
from postmax.train.settings import set_key, with_overrides

# Completes a configuration before its run is named, for example with the hash of the user's own files.
Resolve = Callable[[RunConfig], RunConfig]


@dataclass(frozen=True)
class Placement:
    """A place in the table where the result of a run is shown.

    Attributes:
        panel: The name of the panel.
        row: The name of the row.
        column: The name of the column.
        reading: Which reading of the run is shown there.
        tuned: The settings that were tuned for the row, by dotted key; empty if none were.
    """

    panel: str
    row: str
    column: str
    reading: str = "model"
    tuned: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class TableJob(Job):
    """One run of a table, and the cells of the table that it fills."""

    placements: tuple[Placement, ...] = ()


def cell_jobs(
    spec: TableSpec,
    scale: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    seeds: Sequence[int],
    settings: Mapping[str, Mapping[str, Any]],
    overrides: Sequence[str] = (),
    resolve: Resolve = resolve,
) -> tuple[TableJob, ...]:
    """Return the runs of some rows and columns, in all panels. Most callers want `postmax.tables.jobs.jobs`.

    Args:
        spec: The table.
        scale: The name of one of its scales.
        rows: Some of its rows.
        columns: Some of its columns.
        seeds: All seeds. One run trains as many of them as the scale's `stack` says.
        settings: Dotted keys with values, by the name of a row. They are put in after what the column says.
        overrides: `key=value` texts, put in last.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If a configuration is not valid. The message names its cell.
    """
    size = spec.scale(scale)
    complete, checked_losses = Resolver(resolve), set[str]()
    found: dict[str, tuple[RunConfig, list[Placement]]] = {}
    for panel, row, column in product(spec.panels, rows, columns):
        where = f"{spec.name}, {panel.name}, {row.name}, {column.name}"
        tuned = settings.get(row.name, {})
        content = with_overrides(spec.run, ())
        parts_in_order = (panel.changes(scale), row.changes_in(column, scale), column.changes(scale))
        for changes in (size.set.items(), *parts_in_order, tuned.items()):
            for key, value in changes:
                set_key(content, key, value)
        content = with_overrides(content, overrides)
        place = Placement(panel.name, row.name, column.name, column.reading, tuned)
        for stack in _stacks(seeds, size.stack, make_config({**content, "seeds": tuple(seeds)}, where=where)):
            config = complete(make_config({**content, "seeds": stack}, where=where))
            if (loss := config.loss.model_dump_json()) not in checked_losses:
                # A wrong option is reported before the first run, not hours later when its own run begins.
                check_loss(config.loss, where=where)
                checked_losses.add(loss)
            found.setdefault(config.run_id, (config, []))[1].append(place)
    parts: tuple[Sequence[Part], ...] = (spec.panels, rows, columns)
    axes = tuple(tuple(part.name for part in axis) for axis in parts)
    return tuple(
        TableJob(config, _label(places, axes, config.seeds if len(config.seeds) < len(seeds) else ()), tuple(places))
        for config, places in found.values()
    )


def _stacks(seeds: Sequence[int], size: int, config: RunConfig) -> list[tuple[int, ...]]:
    """Return the seeds of each run. A method that cannot train seeds side by side has one seed in each run."""
    size = size if methods.describe(config.method.name).one_network_one_loss else 1
    return [tuple(seeds[start : start + size]) for start in range(0, len(seeds), size)]


class Resolver:
    """A `Resolve` that remembers its answers, so that the user's own files are hashed once and not for every cell."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._known: dict[str, Any] = {}

    def __call__(self, config: RunConfig) -> RunConfig:
        """Return the completed configuration."""
        key = config.data.model_dump_json()
        if key not in self._known:
            self._known[key] = self._resolve(config).data
        return config.model_copy(update={"data": self._known[key]})


def _label(places: Sequence[Placement], axes: Sequence[Sequence[str]], seeds: Sequence[int]) -> str:
    """Return row, column and panel of a run; an axis is left out where the run fills all of it."""
    parts = []
    for axis, name in ((axes[1], "row"), (axes[2], "column"), (axes[0], "panel")):
        used = list(dict.fromkeys(getattr(place, name) for place in places))
        if len(used) < len(axis) or (name == "row" and len(axis) == 1):
            parts.append("/".join(used))
    if seeds:
        parts.append(f"seeds {seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}")
    return " · ".join(parts) or "all cells"
