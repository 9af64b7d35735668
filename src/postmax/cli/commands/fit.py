"""`postmax fit`: its options and help text."""

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


def fit(
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
        Path | None, typer.Option("--out", "-o", help="The folder to write.", show_default="postmax-models/NAME")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that the folder holds.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Get a good classifier from data of your own, though some of its labels are wrong.

    \b
    postmax fit train.csv --label species
    postmax fit survey.csv --label answer --drop id,name --decimal , -o survey-model
    postmax fit photos
    postmax predict postmax-models/train new.csv

    There is nothing to set. It finds out how the columns are to be read, how many labels are wrong, and which networks
    suit the data. It shows the noise with an interval, the accuracy that can be expected on right labels, and the
    labels that are doubted most. The folder gets the model, labels.csv with the probability that each label is right,
    and a page. To choose losses, methods and networks yourself, use `postmax train`.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import fit as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.fit(file, options, network=network, seed=seed, out=out, force=force, as_json=as_json)
