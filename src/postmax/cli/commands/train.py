"""`postmax train` and `postmax resume`: their options and help texts."""

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
    OutFolder,
    TableOptions,
)
from postmax.cli.stopping import starting


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA] [KEY=VALUE]...",
            help="A data set (see `postmax list datasets`) or a file or folder of your own, then settings.",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    drop: Drop = None,
    missing: MissingNumbers = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file to start from.")] = None,
    out: OutFolder = Path("postmax-results"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run and how long it will take.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Train on a data set or on your own data, and write the result and a page.

    \b
    postmax train digits noise=symmetric:0.4 loss.correction=forward
    postmax train digits noise=symmetric:0.4 method=divide-mix loss=ce
    postmax train digits noise=pair:0.3 loss.divergence=sl loss.correction=objective seeds=[0,1,2]
    postmax train train.csv --label species --drop id loss.correction=forward transition=estimated
    postmax train train.csv --label species --missing median --decimal , loss=sharpened-pml
    postmax train train-images-idx3-ubyte.gz --label train-labels-idx1-ubyte.gz
    postmax train cifar10 noise=uniform:low model=cnn8 --dry-run
    postmax train --config postmax-results/runs/ID/config.yaml optimiser.lr=0.1

    DATA is the name of a data set, or a file or folder of your own: CSV, Parquet, Arrow, .npz, IDX images, or a folder
    with one subfolder of images for each class. The run gets its own folder. If it is stopped or killed, give the same
    command again and it continues.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import train as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.train(arguments or [], options, config, out, dry_run=dry_run, as_json=as_json)


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="FOLDER", show_default=False)],
    previous: Annotated[
        bool, typer.Option("--previous", help="Continue from the checkpoint before the last one.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Delete what was trained, and start again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Continue a run that was stopped.

    \b
    postmax resume postmax-results/runs/0123456789abcdef
    postmax resume postmax-results/runs/0123456789abcdef --restart
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import train as work

    work.resume(folder, previous=previous, restart=restart, as_json=as_json)
