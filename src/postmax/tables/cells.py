"""The cells of a table and the runs that fill them: each computation once, however many cells it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from postmax.runs.job import Job
from postmax.tables.parts import Column, Part, Row
from postmax.tables.spec import Protocol
from postmax.train.build import check_loss
from postmax.train.config import RunConfig, make_config
from postmax.train.own_files import resolve
from postmax.train.settings import set_key, with_overrides

Resolve = Callable[[RunConfig], RunConfig]


@dataclass(frozen=True)
class Use:
    """A cell that a run fills, which reading of the run it shows, and the settings that were tuned for its row."""

    panel: str
    row: str
    column: str
    reading: str = "model"
    tuned: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class TableJob(Job):
    """One run of a table, and the cells of the table that it fills."""

    uses: tuple[Use, ...] = ()


def runs(
    protocol: Protocol,
    scale: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    seeds: Sequence[int],
    settings: Mapping[str, Mapping[str, Any]],
    overrides: Sequence[str] = (),
    resolve: Resolve = resolve,
) -> tuple[TableJob, ...]:
    """The runs of these rows and columns, in all panels; see `postmax.tables.jobs.jobs`.

    Args:
        protocol: The table.
        scale: One of its scales.
        rows: Some of its rows.
        columns: Some of its columns.
        seeds: Cut into as many as one run trains.
        settings: Dotted keys with values, by the name of a row; put in after what the column says.
        overrides: `key=value` texts, put in last.
        resolve: Completes a configuration before its run is named.

    Raises:
        InputError: If a configuration makes no sense.
    """
    size = protocol.scale(scale)
    stacks = [tuple(seeds[start : start + size.stack]) for start in range(0, len(seeds), size.stack)]
    complete, losses = Resolver(resolve), set[str]()
    found: dict[str, tuple[RunConfig, list[Use]]] = {}
    for panel, row, column in product(protocol.panels, rows, columns):
        where = f"{protocol.name}, {panel.name}, {row.name}, {column.name}"
        tuned = settings.get(row.name, {})
        content = with_overrides(protocol.run, ())
        parts_in_order = (panel.changes(scale), row.changes(scale, column.group), column.changes(scale))
        for changes in (size.set.items(), *parts_in_order, tuned.items()):
            for key, value in changes:
                set_key(content, key, value)
        content = with_overrides(content, overrides)
        use = Use(panel.name, row.name, column.name, column.reading, tuned)
        for stack in stacks:
            config = complete(make_config({**content, "seeds": stack}, where=where))
            if (loss := config.loss.model_dump_json()) not in losses:
                check_loss(config.loss, where=where)  # now, not when the runs before it are done
                losses.add(loss)
            found.setdefault(config.run_id, (config, []))[1].append(use)
    parts: tuple[Sequence[Part], ...] = (protocol.panels, rows, columns)
    axes = tuple(tuple(part.name for part in axis) for axis in parts)
    return tuple(
        TableJob(config, _label(uses, axes, config.seeds if len(stacks) > 1 else ()), tuple(uses))
        for config, uses in found.values()
    )


class Resolver:
    """Your own files are hashed once, not once for each cell."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._known: dict[str, Any] = {}

    def __call__(self, config: RunConfig) -> RunConfig:
        """The configuration, completed."""
        key = config.data.model_dump_json()
        if key not in self._known:
            self._known[key] = self._resolve(config).data
        return config.model_copy(update={"data": self._known[key]})


def _label(uses: Sequence[Use], axes: Sequence[Sequence[str]], seeds: Sequence[int]) -> str:
    """Row, column and panel, without those that say nothing because all of them are meant."""
    parts = []
    for axis, name in ((axes[1], "row"), (axes[2], "column"), (axes[0], "panel")):
        used = list(dict.fromkeys(getattr(use, name) for use in uses))
        if len(used) < len(axis) or (name == "row" and len(axis) == 1):
            parts.append("/".join(used))
    if seeds:
        parts.append(f"seeds {seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}")
    return " · ".join(parts) or "all cells"
