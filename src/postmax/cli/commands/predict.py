"""`postmax predict`: its options and help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import Drop, Model, ModelSeed, TableOptions
from postmax.cli.stopping import starting

_AS_IN_TRAINING = "as in training"


def predict(
    model: Model,
    file: Annotated[
        Path,
        typer.Argument(
            help="The rows: a CSV, Parquet or Arrow table, an .npz, .npy or IDX file, or a folder of images.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    drop: Drop = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            metavar="error|median",
            help="Missing numbers. The medians are those of the training rows.",
            show_default=_AS_IN_TRAINING,
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar=".|,", help="The decimal sign of numbers.", show_default=_AS_IN_TRAINING),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="The encoding of a text file, such as utf-8 or cp1252.",
            show_default=_AS_IN_TRAINING,
        ),
    ] = None,
    unknown: Annotated[
        str,
        typer.Option(
            "--unknown",
            metavar="error|ignore",
            help="Categories that the training rows did not have. Ignored, they belong to none of the known ones.",
        ),
    ] = "error",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="COLUMNS", help="Columns to copy into the output, such as id,name.", show_default=False
        ),
    ] = None,
    seed: ModelSeed = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .csv, .tsv or .parquet file to write.", show_default="standard output"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a line for each row, or with --out a summary.")
    ] = False,
) -> None:
    """Predict the class of each row of FILE with a trained model.

    \b
    postmax predict postmax-models/train new.csv
    postmax predict postmax-results/runs/0123456789abcdef new.csv -o predictions.csv --keep id
    postmax predict model-folder photos -o photos.parquet
    postmax predict model-folder new.csv --missing median --unknown ignore --json | head

    The output has the predicted class and the probability of each class, p_CLASS, for the true class: if the model
    corrects label noise, it is gone. Columns are found by their names, in any order; the label may be among them and
    is not used. The file may be larger than the memory.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import predict as work

    work.predict(
        model,
        file,
        TableOptions(None, drop, missing, decimal, encoding),
        unknown=unknown,
        keep=keep or [],
        seed=seed,
        device=device,
        out=out,
        force=force,
        as_json=as_json,
    )
