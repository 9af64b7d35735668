"""What a person said about reading a file, as the readers and the configuration of a run take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import typer

from postmax.cli.options import TableOptions
from postmax.data.number_text import Decimal
from postmax.data.problems import columns_from_text
from postmax.data.reading import ReadingOptions
from postmax.data.table_encoder import Missing
from postmax.errors import InputError

_KEYS = {"label": "labels", "missing": "missing", "decimal": "decimal", "encoding": "encoding"}


def as_reading(options: TableOptions) -> ReadingOptions:
    """Return the options for the readers of data.

    Raises:
        InputError: If a value is not allowed, or if the encoding is unknown.
    """
    if options.missing == "keep":  # for programs only
        raise InputError("--missing is error or median, not 'keep'.")
    return ReadingOptions(
        label=options.label,
        drop=columns_from_text(options.drop or ()),
        # `ReadingOptions` checks the words.
        missing=cast("Missing", options.missing or "error"),
        decimal=cast("Decimal", options.decimal or "."),
        encoding=options.encoding,
        merge_labels=options.merge_labels,
    )


def put_into(content: dict[str, Any], options: TableOptions, typed: Iterable[str]) -> None:
    """Put the options into the `data` section of a configuration. Columns to drop are added to those that are there.

    Args:
        content: The plain values of the configuration, with the settings that were typed.
        options: What the person said.
        typed: The settings that the person typed, such as `data.labels=species`.

    Raises:
        InputError: If an option and a typed setting say different things, or if a value is not allowed.
    """
    as_reading(options)
    section = dict(content.get("data") or {})
    said = {text.partition("=")[0].strip() for text in typed}
    for option, key in _KEYS.items():
        value, before = getattr(options, option), section.get(key)
        if value is None:
            continue
        if f"data.{key}" in said and str(before) != value:
            raise InputError(f"--{option} {value} and data.{key}={before} say different things. Give one of them.")
        section[key] = value
    if options.merge_labels:
        if section.get("merge_labels") is False and "data.merge_labels" in said:
            raise InputError("--merge-labels and data.merge_labels=false say different things. Give one of them.")
        section["merge_labels"] = True
    if options.drop:
        before = section.get("drop") or []
        before = before if isinstance(before, list) else [before]
        section["drop"] = list(dict.fromkeys([*before, *columns_from_text(options.drop)]))
    content["data"] = section


def tell_notes(notes: Iterable[str]) -> None:
    """Print what the reader noticed to standard error."""
    for note in notes:
        typer.echo(f"postmax: note: {note}", err=True)
