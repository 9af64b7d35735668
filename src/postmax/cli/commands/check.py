"""`postmax check`: its options and help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import (
    DecimalSign,
    Drop,
    EncodingName,
    JsonFlag,
    Label,
    MergeLabels,
    MissingNumbers,
    TableOptions,
)
from postmax.cli.stopping import starting


def check(
    file: Annotated[
        Path,
        typer.Argument(
            help="A CSV, Parquet or Arrow table, an .npz, or a folder of images.", metavar="FILE", show_default=False
        ),
    ],
    label: Label = None,
    drop: Drop = None,
    missing: MissingNumbers = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 1 if there is a problem.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Look at the data in FILE before training: everything that would make a result wrong, and what mends it.

    \b
    postmax check train.csv --label species
    postmax check train.csv --label species --drop id --merge-labels
    postmax check photos --strict

    It finds labels that are written in two ways, copies of rows, columns that give the label away or count the rows,
    dates, values such as -999, classes that are too small, features that say nothing, and more. Nothing is changed. A
    problem makes a result wrong; a note is good to know.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import check as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.check(file, options, strict=strict, as_json=as_json)
