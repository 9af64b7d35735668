"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, show_default="one for each core, or one in all on a GPU")
]
Model = Annotated[
    Path,
    typer.Argument(help="The folder of a finished run, or of a model.", metavar="MODEL", show_default=False),
]
ModelSeed = Annotated[
    int | None, typer.Option("--seed", help="Use the model of this seed alone.", show_default="the mean of all seeds")
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder for runs and reports.")]

# Wherever a command reads a data table, it has these options.
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        metavar="COLUMN",
        help="The column of the labels.",
        show_default="the one called label, y, target or class",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMNS",
        help="Columns that are not features, such as id,name. May be repeated. A name with a comma: '\"a, b\",c'.",
        show_default=False,
    ),
]
MissingNumbers = Annotated[
    str | None, typer.Option("--missing", metavar="error|median", help="Missing numbers.", show_default="error")
]
DecimalSign = Annotated[
    str | None, typer.Option("--decimal", metavar=".|,", help="The decimal sign of numbers.", show_default=".")
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="The encoding of a text file, such as cp1252.", show_default="UTF-8"
    ),
]
MergeLabels = Annotated[
    bool,
    typer.Option(
        "--merge-labels", help="Labels that differ only in upper and lower case or white space are one class."
    ),
]

# What `fit` and `audit` have.
OwnData = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A CSV, Parquet or Arrow table, an .npz file, or a folder with a subfolder of images for each class.",
        show_default=False,
    ),
]
KeptMissing = Annotated[
    str | None,
    typer.Option("--missing", metavar="error|median", help="Missing numbers.", show_default="kept, as a feature"),
]
EmbeddingName = Annotated[
    str | None,
    typer.Option(
        "--embedding",
        metavar="NAME",
        help="The frozen network that turns images into features, such as timm:resnet18.",
        show_default="efficientnet-lite0",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The seed of everything random.")]


class TableOptions(NamedTuple):
    """What a person said about reading a data table. None is what was not said."""

    label: str | None
    drop: list[str] | None
    missing: str | None
    decimal: str | None
    encoding: str | None
    merge_labels: bool = False
