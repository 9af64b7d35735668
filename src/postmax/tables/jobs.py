"""The runs that a table needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from postmax.errors import InputError
from postmax.tables.cells import Resolve, Resolver, TableJob, cell_jobs
from postmax.tables.spec import TableSpec
from postmax.tables.tuned import Tuned, fitting, shipped
from postmax.train.own_files import resolve
from postmax.train.settings import single_keys


def jobs(
    spec: TableSpec,
    scale: str,
    *,
    seeds: int | Sequence[int] | None = None,
    rows: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
    overrides: Iterable[str] = (),
    tuned: Tuned | None = None,
    resolve: Resolve = resolve,
) -> tuple[TableJob, ...]:
    """Return the runs that a table needs at a scale.

    Args:
        spec: The table.
        scale: The name of one of its scales.
        seeds: How many seeds, or a list of them, instead of the seeds of the scale. Each run trains as many seeds side
            by side as the scale's `stack` says, counted from the first. With a stack of 10, five seeds are therefore
            another run than ten seeds, not half of it.
        rows: Names of rows, in upper or lower case; "all" for every row. By default all that are not optional.
        columns: Names of columns, in the same way.
        overrides: `key=value` texts that change every run. They are put in last.
        tuned: Tuned settings to use instead of those that come with the table. A table that borrows its settings
            expects those of the table it borrows from.
        resolve: Completes a configuration before its run is named. By default it adds the hash of the user's own files.

    Raises:
        InputError: If a name or key is unknown, a configuration is not valid, or an override changes what a heading of
            the table says.

    Example:
        >>> from postmax.tables import load
        >>> todo = jobs(load("breast-cancer"), "quick", rows=["kl"], columns=["posterior", "no correction"])
        >>> len(todo), [place.column for place in todo[0].placements]  # one run for both columns, in each of two panels
        (2, ['no correction', 'posterior'])
    """
    size = spec.scale(scale)
    picked = spec.chosen_rows(scale, rows), spec.chosen_columns(scale, columns)
    overrides = tuple(overrides)
    complete = Resolver(resolve)  # one for everything below, so that the user's own files are hashed once
    tuned = shipped(spec, scale) if tuned is None else fitting(tuned, spec, scale, resolve=complete)
    settings = {} if tuned is None else tuned.settings
    # What a row sets for one scale is not part of its heading. It may be overridden for all rows alike.
    varied = [part.changes(scale) for part in (*spec.panels, *picked[1])]
    varied += [(*row.changes(), *((key, None) for key in row.grid)) for row in picked[0]]
    # The report lists the tuned settings of each row, so an override must not change them.
    varied += [tuple(settings.get(row.name, {}).items()) for row in picked[0]]
    _check_overrides(overrides, (key for pairs in varied for key in single_keys(pairs)))
    numbers = _numbers(size.seeds if seeds is None else seeds)
    if tuned is not None and (common := sorted(set(numbers) & set(tuned.seeds))):
        raise InputError(f"seed {common[0]} chose the settings of rows of {spec.name}, so it cannot judge them.")
    return cell_jobs(spec, scale, *picked, seeds=numbers, settings=settings, overrides=overrides, resolve=complete)


def _numbers(seeds: int | Sequence[int]) -> tuple[int, ...]:
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds: expected one or more, each once, got {seeds!r}.")
    return numbers


def _check_overrides(overrides: Sequence[str], varied: Iterable[str]) -> None:
    """Refuse overrides of keys that a heading sets: otherwise a cell would not be what its headings say."""
    keys = set(varied)
    for text in overrides:
        given = text.partition("=")[0].strip()
        if given == "seeds":
            raise InputError(f"{text!r}: a table has its own seeds; choose how many with the option for seeds.")
        if taken := [key for key in sorted(keys) if key == given or key.startswith(f"{given}.")]:
            raise InputError(f"{text!r}: the table itself varies {taken[0]}; choose rows and columns instead.")
