"""`postmax audit`: its options and help text."""

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
    TableOptions,
)
from postmax.cli.stopping import starting


def audit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A CSV or Parquet table, an .npz file, or a folder with one subfolder of images for each class.",
            show_default=False,
        ),
    ],
    label: Label = None,
    drop: Drop = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing", metavar="error|median", help="Missing numbers.", show_default="they say something of their own"
        ),
    ] = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    network: Annotated[
        str | None,
        typer.Option(
            "--embedding",
            metavar="NAME",
            help="The frozen network that turns images into features, such as timm:resnet18.",
            show_default="efficientnet-lite0",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write.", show_default="postmax-audits/NAME")
    ] = None,
    fail_above: Annotated[
        str | None,
        typer.Option(
            "--fail-above",
            metavar="SHARE",
            help="End with exit code 3 if surely more labels are wrong, such as 5%: if the lower end of the interval "
            "is above it.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the audit that the folder holds.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find out which labels are wrong, and what they should be.

    \b
    postmax audit train.csv --label species
    postmax audit photos
    postmax audit embeddings.npz
    postmax audit train.csv --label species --fail-above 5%     a check for a pipeline

    The folder gets issues.csv, the rows worth a look, the most doubtful first; a copy of the file in which only those
    labels are changed that are more probably wrong than right (corrected.csv; every other byte stays); labels.csv with
    what is believed about each label; a page; and the model. It also looks for duplicates, outliers, rows that are not
    in random order, classes that look merged or split, and groups of rows on which the model is poor.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import audit as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.audit(file, options, network=network, seed=seed, out=out, fail_above=fail_above, force=force, as_json=as_json)
