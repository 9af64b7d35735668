"""From a protocol to the runs it takes: each computation once, however many cells it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from postmax.bench.protocol import Column, Protocol, chosen
from postmax.errors import InputError
from postmax.train.config import RunConfig, make_config
from postmax.train.own_files import resolve
from postmax.train.settings import set_key, with_overrides

Resolve = Callable[[RunConfig], RunConfig]


@dataclass(frozen=True)
class Use:
    """A cell that a run fills, and which reading of the run it shows."""

    panel: str
    row: str
    column: str
    reading: str = "model"


@dataclass(frozen=True)
class Job:
    """One run, and the cells it fills.

    Attributes:
        config: What is run.
        label: What a person calls it.
        uses: The cells.
    """

    config: RunConfig
    label: str
    uses: tuple[Use, ...] = ()

    @property
    def run_id(self) -> str:
        """The name of its folder."""
        return self.config.run_id


def jobs(
    protocol: Protocol,
    scale: str,
    *,
    seeds: int | Sequence[int] | None = None,
    rows: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    overrides: Iterable[str] = (),
    resolve: Resolve = resolve,
) -> tuple[Job, ...]:
    """The runs a table takes.

    Args:
        protocol: The table.
        scale: One of its scales.
        seeds: How many, or which, instead of those of the scale. Each run trains as many side by side as the scale's
            `stack` says, cut from seed 0 on: with a stack of 10, five seeds are another run than ten, not its half.
        rows: Names of rows, without regard to case; "all" for the optional ones too.
        columns: The same of columns.
        overrides: `key=value` texts, put in last.
        resolve: Completes a configuration before its run is named; by default with the hash of your own files.

    Raises:
        InputError: If a name or key is unknown, a configuration makes no sense, or an override changes what the table
            is about.

    Example:
        >>> from postmax.bench.protocol import load
        >>> todo = jobs(load("breast-cancer"), "quick", rows=["kl"], columns=["posterior", "no correction"])
        >>> len(todo), [use.column for use in todo[0].uses]  # one run for both columns, in each of two panels
        (2, ['no correction', 'posterior'])
    """
    size = protocol.scale(scale)
    picked = (protocol.panels, chosen("row", protocol.rows, rows), chosen("column", protocol.columns, columns))
    overrides = tuple(overrides)
    _refuse_lies(overrides, [set(part.set) for parts in picked for part in parts])
    stacks = _stacks(size.seeds if seeds is None else seeds, size.stack)
    complete = _Resolver(resolve)
    found: dict[str, tuple[RunConfig, list[Use]]] = {}
    for panel, row, column in product(*picked):
        where = f"{protocol.name}, {panel.name}, {row.name}, {column.name}"
        content = with_overrides(protocol.run, ())
        for part in (size, panel, row, column):
            for key, value in part.set.items():
                set_key(content, key, value)
        content = with_overrides(content, overrides)
        use = Use(panel.name, row.name, column.name, cast("Column", column).reading)
        for stack in stacks:
            config = complete(make_config({**content, "seeds": stack}, where=where))
            found.setdefault(config.run_id, (config, []))[1].append(use)
    axes = tuple(tuple(part.name for part in parts) for parts in picked)
    return tuple(
        Job(config, _label(uses, axes, config.seeds if len(stacks) > 1 else ()), tuple(uses))
        for config, uses in found.values()
    )


class _Resolver:
    """Your own files are hashed once, not once for each cell."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._known: dict[str, Any] = {}

    def __call__(self, config: RunConfig) -> RunConfig:
        key = config.data.model_dump_json()
        if key not in self._known:
            self._known[key] = self._resolve(config).data
        return config.model_copy(update={"data": self._known[key]})


def _stacks(seeds: int | Sequence[int], size: int) -> list[tuple[int, ...]]:
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds: expected one or more, each once, got {seeds!r}.")
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def _refuse_lies(overrides: Sequence[str], varied: Iterable[set[str]]) -> None:
    """A cell must be what its headings say, so what they set cannot be overridden."""
    keys = set().union(*varied)
    for text in overrides:
        given = text.partition("=")[0].strip()
        if given == "seeds":
            raise InputError(f"{text!r}: a table has its own seeds; choose how many with the option for seeds.")
        if taken := [key for key in sorted(keys) if key == given or key.startswith(f"{given}.")]:
            raise InputError(f"{text!r}: the table itself varies {taken[0]}; choose rows and columns instead.")


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
