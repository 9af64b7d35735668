"""`postmax noise`: its commands, their options and help texts."""

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

app = typer.Typer(
    help="Corrupt labels reproducibly, show label noise, and estimate it.", no_args_is_help=True, rich_markup_mode=None
)

_Out = Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.", show_default="beside FILE")]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]


@app.command()
def inject(
    file: Annotated[
        Path, typer.Argument(help="A CSV, Parquet, Arrow or .npy file of labels.", metavar="FILE", show_default=False)
    ],
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            "-n",
            help="Such as symmetric:0.4, pair:0.3, instance:0.3 (by the features), or a matrix file; all kinds: "
            "`postmax list noise`.",
        ),
    ],
    label: Label = None,
    drop: Drop = None,
    missing: MissingNumbers = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same labels.")] = 0,
    independent: Annotated[
        bool, typer.Option("--independent", help="Draw each row on its own; by default the counts match the matrix.")
    ] = False,
    out: _Out = None,
    force: _Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write FILE with noisy labels, and beside it a .noise.npz file that records how they were drawn.

    Only instance:ETA uses features, so only there --drop and --missing have a meaning.

    \b
    postmax noise inject train.csv --noise symmetric:0.4
    postmax noise inject train.parquet --label species --noise pair:0.3 --seed 7 --out noisy.parquet
    postmax noise inject train.csv --noise instance:0.3 --drop id,name --missing median
    postmax noise inject labels.npy --noise matrix.csv
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import noise as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.inject(file, noise, options, seed=seed, independent=independent, out=out, force=force, as_json=as_json)


@app.command()
def show(
    file: Annotated[
        Path,
        typer.Argument(help="A .noise.npz, or a CSV, Parquet, Arrow or .npy file.", metavar="FILE", show_default=False),
    ],
    label: Label = None,
    drop: Drop = None,
    missing: MissingNumbers = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    clean: Annotated[
        str | None, typer.Option("--clean", "-c", help="The true labels: a column of FILE, or another file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the matrix as .png, .svg or .pdf.")] = None,
    force: _Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the noise in labels whose true labels are known, and verify a .noise.npz file.

    No features are used, so --drop and --missing have no meaning here.

    \b
    postmax noise show train.noisy.noise.npz
    postmax noise show train.csv --label given --clean checked
    postmax noise show noisy.npy --clean clean.npy
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import noise as work

    options = TableOptions(label, drop, missing, decimal, encoding, merge_labels)
    work.show(file, options, clean=clean, plot=plot, force=force, as_json=as_json)


@app.command()
def estimate(
    file: Annotated[
        str,
        typer.Argument(
            help="A CSV, Parquet or Arrow table, an .npz, IDX images, a folder of images, or the name of a data set.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    label: Label = None,
    drop: Drop = None,
    missing: MissingNumbers = None,
    decimal: DecimalSign = None,
    encoding: EncodingName = None,
    merge_labels: MergeLabels = False,
    size: Annotated[
        int | None, typer.Option(help="Side of the images of a folder, if they have different sizes.", min=1)
    ] = None,
    method: Annotated[str | None, typer.Option(help="One of `postmax list estimators`.", show_default="fpml")] = None,
    out: _Out = None,
    plot: Annotated[
        Path | None, typer.Option(help="The heat map: .png, .svg or .pdf.", show_default="beside FILE")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of folds, networks and bootstrap.")] = 0,
    force: _Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Estimate the noise in the labels of FILE: the matrix, the share of wrong labels, and intervals.

    Writes FILE.transition.json, which `postmax noise inject --noise` and `TransitionEstimate.load` read, and a heat
    map. An .npz holds features as x and labels as y, or out-of-sample probabilities as "probabilities".

    \b
    postmax noise estimate train.csv
    postmax noise estimate train.parquet --label species --drop id
    postmax noise estimate embeddings.npz --method hoc
    postmax noise estimate photos --size 32
    postmax noise estimate cifar10n-worst
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import noise as work

    work.estimate(
        file,
        TableOptions(label, drop, missing, decimal, encoding, merge_labels),
        size=size,
        method=method,
        replicates=replicates,
        seed=seed,
        out=out,
        plot=plot,
        force=force,
        as_json=as_json,
    )
