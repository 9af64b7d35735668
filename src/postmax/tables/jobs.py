"""From a protocol to the runs it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from postmax.errors import InputError
from postmax.tables.cells import Resolve, Resolver, TableJob, Use, runs
from postmax.tables.spec import Protocol
from postmax.tables.tuned import Tuned, fitting, shipped
from postmax.train.own_files import resolve
from postmax.train.settings import DEFAULT_NAMES

__all__ = ["Resolve", "Resolver", "TableJob", "Use", "jobs", "runs"]


def jobs(
    protocol: Protocol,
    scale: str,
    *,
    seeds: int | Sequence[int] | None = None,
    rows: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    overrides: Iterable[str] = (),
    tuned: Tuned | None = None,
    resolve: Resolve = resolve,
) -> tuple[TableJob, ...]:
    """The runs a table takes.

    Args:
        protocol: The table.
        scale: One of its scales.
        seeds: How many, or which, instead of those of the scale. Each run trains as many side by side as the scale's
            `stack` says, cut from seed 0 on: with a stack of 10, five seeds are another run than ten, not its half.
        rows: Names of rows, without regard to case; "all" for the optional ones too.
        columns: The same of columns.
        overrides: `key=value` texts, put in last.
        tuned: Settings that were chosen for rows, instead of those that come with the table; for a table that borrows
            them, those of the lender.
        resolve: Completes a configuration before its run is named; by default with the hash of your own files.

    Raises:
        InputError: If a name or key is unknown, a configuration makes no sense, or an override changes what the table
            is about.

    Example:
        >>> from postmax.tables.spec import load
        >>> todo = jobs(load("breast-cancer"), "quick", rows=["kl"], columns=["posterior", "no correction"])
        >>> len(todo), [use.column for use in todo[0].uses]  # one run for both columns, in each of two panels
        (2, ['no correction', 'posterior'])
    """
    size = protocol.scale(scale)
    picked = protocol.chosen_rows(scale, rows), protocol.chosen_columns(scale, columns)
    overrides = tuple(overrides)
    complete = Resolver(resolve)  # one for all, so that your own files are hashed once
    tuned = shipped(protocol, scale) if tuned is None else fitting(tuned, protocol, scale, resolve=complete)
    settings = {} if tuned is None else tuned.settings
    # How a row is trained at a scale, which its `at` says, is no heading: that may be changed for all rows alike.
    varied = [part.changes(scale) for part in (*protocol.panels, *picked[1])]
    varied += [(*row.changes(), *((key, None) for key in row.grid)) for row in picked[0]]
    varied += [tuple(settings.get(row.name, {}).items()) for row in picked[0]]  # the report says what was tuned
    _refuse_lies(overrides, (key for pairs in varied for key in _keys(pairs)))
    numbers = _numbers(size.seeds if seeds is None else seeds)
    if tuned is not None and (common := sorted(set(numbers) & set(tuned.seeds))):
        raise InputError(f"seed {common[0]} chose the settings of rows of {protocol.name}, so it cannot judge them.")
    return runs(protocol, scale, *picked, seeds=numbers, settings=settings, overrides=overrides, resolve=complete)


def _numbers(seeds: int | Sequence[int]) -> tuple[int, ...]:
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds: expected one or more, each once, got {seeds!r}.")
    return numbers


def _keys(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Dotted keys down to single values: a section that is set as a whole has those of its content."""
    for key, value in pairs:
        if isinstance(value, Mapping):
            yield from _keys((f"{key}.{inner}", content) for inner, content in value.items())
        else:
            yield f"{key}.name" if key in DEFAULT_NAMES else key


def _refuse_lies(overrides: Sequence[str], varied: Iterable[str]) -> None:
    """A cell must be what its headings say, so what they set cannot be overridden."""
    keys = set(varied)
    for text in overrides:
        given = text.partition("=")[0].strip()
        if given == "seeds":
            raise InputError(f"{text!r}: a table has its own seeds; choose how many with the option for seeds.")
        if taken := [key for key in sorted(keys) if key == given or key.startswith(f"{given}.")]:
            raise InputError(f"{text!r}: the table itself varies {taken[0]}; choose rows and columns instead.")
