"""`postmax audit`: its options and help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import (
    DecimalSign,
    Drop,
    EmbeddingName,
    EncodingName,
    JsonFlag,
    KeptMissing,
    Label,
    MergeLabels,
    OwnData,
    Seed,
    TableOptions,
)
from postmax.cli.stopping import starting


def audit(
    file: OwnData,
    label: Label = None,
    drop: Drop = None,
    missing: KeptMissing = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    network: EmbeddingName = None,
    seed: Seed = 0,
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
